package watcher_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/watcher"
)

// States of an attempt, in the order in which it passes them.
func preparing() cluster.Snapshot {
	return cluster.Snapshot{Job: job(), Pods: pods(newPod(scheduled()))}
}

func running() cluster.Snapshot {
	return cluster.Snapshot{Job: job(), Pods: pods(newPod(scheduled(), collectorRunning(), runs(cluster.ContainerBenchmark, 3)))}
}

func done() cluster.Snapshot {
	return cluster.Snapshot{Job: job(complete(11)), Pods: pods(newPod(ended(corev1.PodSucceeded), collectorRunning(), exits(cluster.ContainerBenchmark, 0, "Completed", "")))}
}

func lostNode() cluster.Snapshot {
	return cluster.Snapshot{Job: job(failed(11, "")), Pods: pods(newPod(ended(corev1.PodFailed), disrupted("DeletionByTaintManager", "gone")))}
}

func TestARunIsWatchedToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		l := launchedRun("r1", 0)
		w.cluster.set(refOf(l), preparing()) // the watch shows it before its launch is received
		synctest.Wait()
		p.deliver(l)
		p.deliver(l)
		time.Sleep(time.Second)
		for _, s := range []cluster.Snapshot{running(), running(), done(), done(), {}} {
			w.cluster.set(refOf(l), s)
			time.Sleep(time.Second)
		}
		p.deliver(l)
		time.Sleep(time.Minute)
		p.stop()
		want := []string{
			"bai.status attempt 1: pending: preparing the pod on n1",
			"bai.status attempt 1: running: running the benchmark",
			"bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)",
		}
		if diff := cmp.Diff(want, w.publishedLines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{}, w.liveKeys()); diff != "" {
			t.Errorf("watched (-want +got):\n%s", diff)
		}
		if w.duplicates > 0 {
			t.Errorf("%d words were said twice", w.duplicates)
		}
	})
}

// scenario is a sequence of states of one attempt in the cluster, and its expected end.
type scenario struct {
	states   []cluster.Snapshot // each for a second
	retries  int
	canceled bool // the run is canceled in its second state
	want     string
}

// TestKilledAnywhere kills the process at each of its effects, before or right after it, then starts it again, while the cluster goes on.
func TestKilledAnywhere(t *testing.T) {
	for name, s := range map[string]scenario{
		"a run that ends well": {
			states: []cluster.Snapshot{preparing(), running(), done()},
			want:   "bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)",
		},
		"a run that is canceled": {
			states: []cluster.Snapshot{preparing(), running(), {}}, canceled: true,
			want: "bai.finished attempt 1: canceled CanceledByUser: canceled; its objects are deleted",
		},
		"an attempt that another follows": {
			states: []cluster.Snapshot{preparing(), running(), lostNode()}, retries: 1,
			want: "bai.retried attempt 2: infra NodeLost: its pod had to leave node n1, which is lost or drained: DeletionByTaintManager: gone",
		},
		"a job that disappears": {
			states: []cluster.Snapshot{preparing(), running(), {}},
			want:   "bai.finished attempt 1: failed infra JobDisappeared: its job was deleted from outside the platform",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for p := range crashtest.Points() {
				synctest.Test(t, func(t *testing.T) { s.play(t, p) })
			}
		})
	}
}

// play shows the scenario to a watcher in a process that may be killed, then continues with another watcher.
func (s scenario) play(t *testing.T, crashing *crashtest.Process) {
	t.Helper()
	w := newFixture(t)
	p := w.startIn(crashing, watcher.Settings{})
	l := launchedRun("r1", s.retries)
	s.showTo(w, p, l)
	p.stop()
	if len(w.endLines()) > 0 { // the executor has received the end and deleted the objects
		w.cluster.set(refOf(l), cluster.Snapshot{})
	}
	p = w.start(watcher.Settings{})
	p.deliver(l)
	time.Sleep(time.Minute)
	p.stop()
	if diff := cmp.Diff([]string{s.want}, w.endLines()); diff != "" {
		t.Errorf("%s: ends (-want +got):\n%s", crashing, diff)
	}
	if diff := cmp.Diff([]string{}, w.liveKeys()); diff != "" {
		t.Errorf("%s: watched (-want +got):\n%s", crashing, diff)
	}
}

func (s scenario) showTo(w *fixture, p *process, l event.Launched) {
	delivered := false
	for i, seen := range s.states {
		w.cluster.set(refOf(l), seen)
		delivered = delivered || p.deliver(l)
		if i == 1 && s.canceled {
			p.deliver(w.cancel("r1"))
		}
		time.Sleep(time.Second)
	}
	time.Sleep(10 * time.Second)
}

func TestACanceledRunIsCanceledOnlyWhenItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		l := launchedRun("r1", 3)
		w.cluster.set(refOf(l), running())
		p.deliver(l)
		time.Sleep(time.Second)
		p.deliver(w.cancel("r1"))
		time.Sleep(time.Second)
		killed := cluster.Snapshot{Job: job(jobDeleting(5), failed(20, "")), Pods: pods(newPod(ended(corev1.PodFailed), collectorRunning(), exits(cluster.ContainerBenchmark, 143, "Error", "")))}
		w.cluster.set(refOf(l), killed)
		time.Sleep(time.Minute)
		w.cluster.set(refOf(l), cluster.Snapshot{})
		time.Sleep(time.Second)
		p.stop()
		want := []string{
			"bai.status attempt 1: running: running the benchmark",
			"bai.status attempt 1: canceling: waiting until its objects are deleted",
			"bai.finished attempt 1: canceled CanceledByUser: canceled; its objects are deleted",
		}
		if diff := cmp.Diff(want, w.publishedLines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		last, ok := w.published[len(w.published)-1].(event.Finished)
		if diff := cmp.Diff([]string{"uid-0"}, last.Collectors); !ok || diff != "" {
			t.Errorf("collectors of a run that is gone (-want +got):\n%s", diff)
		}
	})
}

// TestAJobThatSomebodyMadeAnewIsNotTheOneThatWasLaunched: it has another UID.
func TestAJobThatSomebodyMadeAnewIsNotTheOneThatWasLaunched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		l := launchedRun("r1", 0)
		l.UID = "another"
		w.cluster.set(refOf(l), running())
		p.deliver(l)
		time.Sleep(10 * time.Second)
		p.stop()
		if diff := cmp.Diff([]string{"bai.finished attempt 1: failed infra JobDisappeared: its job was deleted from outside the platform"}, w.publishedLines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// ofRoles returns the state of an attempt with a server that runs, and a main job.
func ofRoles(main ...func(*batchv1.Job)) cluster.Snapshot {
	server := job()
	server.Name, server.UID, server.Labels = "bai-r1-1-server", "server-uid", map[string]string{cluster.LabelRole: "server"}
	p := newPod(collectorRunning(), runs(cluster.ContainerBenchmark, 3))
	p.Labels = map[string]string{cluster.LabelRole: "server", batchv1.JobNameLabel: server.Name}
	main = append(main, func(j *batchv1.Job) { j.Labels = map[string]string{cluster.LabelRole: "client"} })
	return cluster.Snapshot{Job: job(main...), Others: []batchv1.Job{*server}, Pods: pods(p)}
}

func TestARunOfSeveralRolesEndsWhenTheJobOfOneIsGone(t *testing.T) {
	noMain, noServer, complete := ofRoles(), ofRoles(), ofRoles(complete(11))
	noMain.Job = nil
	noServer.Others, noServer.Pods = nil, nil
	complete.Others, complete.Pods = nil, pods(newPod(ended(corev1.PodSucceeded), exits(cluster.ContainerBenchmark, 0, "Completed", "")))
	asMain := noMain // as a watch shows it that takes the server's job for the main one
	asMain.Job, asMain.Others = &noMain.Others[0], nil
	for name, tt := range map[string]struct {
		states []cluster.Snapshot
		role   string
	}{
		"the main one":                     {[]cluster.Snapshot{ofRoles(), noMain, noMain}, "client"},
		"the main one, for a watch":        {[]cluster.Snapshot{ofRoles(), asMain, noMain}, "client"},
		"another one":                      {[]cluster.Snapshot{ofRoles(), noServer, noServer}, "server"},
		"another one, and the end is good": {[]cluster.Snapshot{ofRoles(), noServer, complete}, "server"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t)
				p := w.start(watcher.Settings{})
				l := launchedRun("r1", 0)
				p.deliver(l)
				for _, seen := range tt.states {
					w.cluster.set(refOf(l), seen)
					time.Sleep(time.Second)
				}
				time.Sleep(10 * time.Second)
				p.stop()
				want := []string{"bai.finished attempt 1: failed infra JobDisappeared: the job of the " + tt.role + " was deleted from outside the platform"}
				if diff := cmp.Diff(want, w.endLines()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestWhyAPodHadToGoIsKnownAlsoWhenItIsGoneBeforeItsJobHasFailed: the snapshots of that time, and of a moment before, have no pod.
func TestWhyAPodHadToGoIsKnownAlsoWhenItIsGoneBeforeItsJobHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		l := launchedRun("r1", 0)
		p.deliver(l)
		evicted := running()
		evicted.Pods = pods(newPod(runs(cluster.ContainerBenchmark, 3), disrupted("EvictionByEvictionAPI", "Eviction API: evicting")))
		without := running()
		without.Pods = nil
		over := without
		over.Job = job(failed(20, "BackoffLimitExceeded"))
		for _, seen := range []cluster.Snapshot{running(), evicted, without, over} {
			w.cluster.set(refOf(l), seen)
			time.Sleep(time.Second)
		}
		p.stop()
		if got := strings.Join(w.endLines(), "\n"); !strings.Contains(got, "failed infra Evicted: its pod had to leave node") {
			t.Errorf("it ended %q", got)
		}
	})
}

// TestAClusterThatIsAwayEndsNoRun, however long.
func TestAClusterThatIsAwayEndsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		w.cluster.failWith(errors.New("connection refused"))
		l := launchedRun("r1", 0)
		p.deliver(l)
		time.Sleep(time.Hour)
		if got := w.publishedLines(); len(got) > 0 {
			t.Errorf("while the cluster is away: %q", got)
		}
		if looks := w.cluster.observeCount(); looks > 600 { // one in 8 s, and one in each reconcile: after the recovery no attempt waits for 15 s
			t.Errorf("%d looks in an hour at a cluster that is away", looks)
		}
		w.cluster.failWith(nil)
		w.cluster.set(refOf(l), done())
		time.Sleep(time.Minute)
		p.stop()
		if diff := cmp.Diff([]string{"bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)"}, w.publishedLines()); diff != "" {
			t.Errorf("once it is back (-want +got):\n%s", diff)
		}
	})
}

// TestTwoWatchersSayTheSame of every run, and one end.
func TestTwoWatchersSayTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		one, two := w.start(watcher.Settings{}), w.start(watcher.Settings{})
		var want []string
		for i := range 20 {
			l := launchedRun(fmt.Sprintf("r%d", i), i%2)
			w.cluster.set(refOf(l), running())
			one.deliver(l)
			two.deliver(l)
			time.Sleep(time.Second)
			end := map[int]cluster.Snapshot{0: done(), 1: lostNode()}[i%2]
			w.cluster.set(refOf(l), end)
			time.Sleep(time.Minute)
			want = append(want, map[int]string{
				0: "bai.finished attempt 1: succeeded: the benchmark finished (exit code 0)",
				1: "bai.retried attempt 2: infra NodeLost: its pod had to leave node n1, which is lost or drained: DeletionByTaintManager: gone",
			}[i%2])
		}
		one.stop()
		two.stop()
		if diff := cmp.Diff(want, w.endLines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestEverythingHeardAgainAfterTheEndChangesNothing, though the objects are gone.
func TestEverythingHeardAgainAfterTheEndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		var evs []event.Event
		for i := range 5 {
			l := launchedRun(fmt.Sprintf("r%d", i), 1)
			w.cluster.set(refOf(l), []cluster.Snapshot{done(), lostNode()}[i%2])
			p.deliver(l)
			c := w.cancel(fmt.Sprintf("r%d", i))
			evs = append(evs, l, c)
			time.Sleep(time.Second)
			w.cluster.set(refOf(l), cluster.Snapshot{})
			time.Sleep(10 * time.Second)
		}
		p.stop()
		before, dups := w.publishedLines(), w.duplicates
		p = w.start(watcher.Settings{})
		effects := p.Effects()
		for _, ev := range evs {
			p.deliver(ev)
		}
		time.Sleep(time.Hour)
		p.stop()
		if diff := cmp.Diff(before, w.publishedLines()); diff != "" || w.duplicates != dups {
			t.Errorf("said again: %d, (-before +after):\n%s", w.duplicates-dups, diff)
		}
		if p.Effects() != effects {
			t.Errorf("%d effects", p.Effects()-effects)
		}
	})
}

// TestAnEndThatTheTopicLostIsSaidAgain, as long as the run shows no end.
func TestAnEndThatTheTopicLostIsSaidAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		l := launchedRun("r1", 0)
		w.putRun(store.Run{ID: "r1", Attempt: 1, Phase: event.PhaseRunning, Revision: 1})
		w.cluster.set(refOf(l), done())
		p.deliver(l)
		time.Sleep(time.Minute)
		want, dups := w.endLines(), w.duplicates
		p.deliver(l)
		if len(want) != 1 || w.duplicates != dups+1 {
			t.Errorf("%q was said, %d times again, want it once more", want, w.duplicates-dups)
		}
		w.putRun(store.Run{ID: "r1", Attempt: 1, Phase: event.PhaseFinished, Revision: 2})
		p.deliver(l)
		if p.stop(); w.duplicates != dups+1 {
			t.Error("it was said again though the run knows it")
		}
	})
}

// TestAnAttemptWhoseEndTheRunHasIsNotJudgedAnew: the store is older than the topics, and still has the attempt's document, or lacks its
// end.
func TestAnAttemptWhoseEndTheRunHasIsNotJudgedAnew(t *testing.T) {
	for name, run := range map[string]store.Run{
		"the run has ended":            {ID: "r1", Attempt: 1, Phase: event.PhaseFinished, Revision: 2},
		"another attempt has followed": {ID: "r1", Attempt: 2, Phase: event.PhaseRunning, Revision: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t)
				p := w.start(watcher.Settings{})
				l := launchedRun("r1", 1)
				w.putRun(store.Run{ID: "r1", Attempt: 1, Phase: event.PhaseRunning, Revision: 1})
				w.cluster.set(refOf(l), running())
				p.deliver(l)
				time.Sleep(time.Second)
				p.stop()
				w.putRun(run)
				w.cluster.set(refOf(l), cluster.Snapshot{})
				p = w.start(watcher.Settings{})
				p.deliver(l)
				time.Sleep(time.Hour)
				p.stop()
				if ends := w.endLines(); len(ends) > 0 {
					t.Errorf("it is said to have ended anew: %q", ends)
				}
				if live := w.liveKeys(); len(live) > 0 {
					t.Errorf("it is watched still: %q", live)
				}
			})
		})
	}
}

// TestWhatHasEndedIsNotLookedThroughAgain: the cost of a resync grows with the number of running attempts, not with that of ended ones.
func TestWhatHasEndedIsNotLookedThroughAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{Reconcile: time.Hour})
		for i := range 300 {
			l := launchedRun(fmt.Sprintf("r%03d", i), 0)
			w.cluster.set(refOf(l), done())
			p.deliver(l)
		}
		time.Sleep(time.Minute)
		before := w.listedCount()
		time.Sleep(time.Hour)
		p.stop()
		if n := len(w.endLines()); n != 300 {
			t.Errorf("%d runs ended, want 300", n)
		}
		if listed := w.listedCount() - before; listed > 200 { // a page
			t.Errorf("%d documents listed while nothing runs", listed)
		}
	})
}

// TestWhatIsHeardOfIsNotLookedAtLive: a live read costs the cluster two calls, for each running run.
func TestWhatIsHeardOfIsNotLookedAtLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{Reconcile: 30 * time.Second})
		l := launchedRun("r1", 0)
		p.deliver(l)
		for range 20 {
			w.cluster.set(refOf(l), running())
			time.Sleep(time.Minute)
		}
		looksWhileHeard := w.cluster.observeCount()
		time.Sleep(10 * time.Minute)
		looksUnheard := w.cluster.observeCount() - looksWhileHeard
		p.stop()
		if looksWhileHeard > 2 {
			t.Errorf("%d live looks while it was heard of each minute", looksWhileHeard)
		}
		if looksUnheard < 10 {
			t.Errorf("%d live looks in ten minutes in which nothing was heard of it", looksUnheard)
		}
	})
}

// TestARunOfManyPodsIsNotLookedAtForEachOfTheirChanges, which are as many as its
// pods.
func TestARunOfManyPodsIsNotLookedAtForEachOfTheirChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		p := w.start(watcher.Settings{})
		l := launchedRun("r1", 0)
		gang := running()
		for len(gang.Pods) < 1000 {
			gang.Pods = append(gang.Pods, gang.Pods[0])
		}
		w.cluster.set(refOf(l), gang)
		p.deliver(l)
		time.Sleep(time.Second)
		before := w.reconcileCount()
		for range 1000 {
			w.cluster.set(refOf(l), gang)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		if looks := w.reconcileCount() - before; looks < 1 || looks > 10 {
			t.Errorf("%d looks in a second, want a few", looks)
		}
		p.stop()
	})
}

func TestSettings(t *testing.T) {
	err := watcher.Settings{Grace: -1, Retry: -1}.Validate()
	if err == nil || err.Error() != "watcher.grace: must not be negative\nwatcher.retry: must not be negative" {
		t.Errorf("%v", err)
	}
}
