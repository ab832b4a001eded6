package storm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// victim is a process that a storm kills.
type victim struct {
	name string
	// kill kills it and, if it has no supervisor, restarts it. It returns the time of the
	// kill.
	kill func() time.Time
}

// killProcess returns a victim that kills a process and restarts it.
func (w *harness) killProcess(p *process.Process) victim {
	return victim{p.Name, func() time.Time {
		at := time.Now()
		p.Kill(w.t)
		p.Begin(w.t)
		return at
	}}
}

// killCollectors kills the collectors of all pods at once.
func (w *harness) killCollectors() victim {
	return victim{"collect", func() time.Time {
		for late := time.Now().Add(waitTimeout); ; time.Sleep(tick) {
			at, killed := time.Now(), 0
			for _, pid := range process.PodProcesses(w.dir, "collect") {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
			}
			if killed > 0 {
				return at
			}
			if time.Now().After(late) {
				w.t.Fatal("no pod has a collector")
			}
		}
	}}
}

// killPuller kills the puller of a run that has much to bring. The whole attempt
// is tried again.
func (s *storm) killPuller() victim {
	return victim{"puller", func() time.Time {
		w := s.w
		c := w.submit(fmt.Sprintf("pull-%d", len(s.kills)), w.descriptor(20, 0, false, "/large"), 20, false)
		if c == nil {
			w.t.FailNow()
		}
		s.probes = append(s.probes, c)
		for late := time.Now().Add(waitTimeout); ; time.Sleep(2 * time.Millisecond) {
			for _, pid := range process.PodProcesses(w.dir, "pull") {
				at := time.Now()
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					return at
				}
			}
			if c.isDone() || time.Now().After(late) {
				w.t.Fatal("no puller was seen")
			}
		}
	}}
}

func (w *harness) killBroker() victim {
	return victim{"broker", func() time.Time {
		at := time.Now()
		w.broker.Kill(w.t)
		w.broker.Restart(w.t)
		return at
	}}
}

func (w *harness) killStore() victim {
	return victim{"store", func() time.Time {
		at := time.Now()
		w.store.Kill(w.t)
		w.store.Restart(w.t)
		return at
	}}
}

// storm counts the kills during a load.
type storm struct {
	w        *harness
	load     *load
	from, to time.Time
	before   int64 // numbers stored when it began
	during   int64 // numbers stored during it
	kills    []kill
	probes   []*countingRun
}

type kill struct {
	victim        string
	recovery, gap time.Duration // until all worked again; until the next kill, 0 for the last
}

// killInTurn kills victims in turn, each once at least, for a span. A kill is followed
// by the next after twice the time at least until everything worked again: every
// process says so, of every run that was under way more was stored, and a run
// that was submitted after it has brought its data and is complete.
func (s *storm) killInTurn(span time.Duration, victims ...victim) {
	w := s.w
	w.t.Helper()
	s.from, s.before = time.Now(), s.load.stored()
	for i := 0; (i < len(victims) || time.Since(s.from) < span) && !w.t.Failed(); i++ {
		v, was := victims[i%len(victims)], s.load.progress()
		killed := v.kill()
		s.probe()
		s.load.awaitProgress(was, time.Now().Add(waitTimeout))
		w.awaitReady()
		took := time.Since(killed)
		s.kills = append(s.kills, kill{victim: v.name, recovery: took})
		w.t.Logf("%s: %s killed, all worked again after %s; %d numbers stored so far", time.Since(s.from).Round(time.Second), v.name, took.Round(10*time.Millisecond), s.load.stored()-s.before)
		if i+1 >= len(victims) && time.Since(s.from) >= span {
			break
		}
		if !wait(w.t.Context(), time.Until(killed.Add(2*took))) {
			return
		}
		s.kills[i].gap = time.Since(killed)
	}
	s.to, s.during = time.Now(), s.load.stored()-s.before
}

// probe has a run go all the way.
func (s *storm) probe() {
	n := len(s.probes)
	c := s.w.submit(fmt.Sprintf("probe-%d", n), s.w.descriptor(20, 0, false, fmt.Sprintf("/probe-%d", n)), 20, false)
	if c == nil {
		s.w.t.FailNow()
	}
	s.probes = append(s.probes, c)
	select {
	case <-c.done:
	case <-time.After(waitTimeout):
		r, err := s.w.api.GetRun(s.w.t.Context(), &baiv1.GetRunRequest{Run: c.id})
		s.w.t.Fatalf("run %s, submitted after a kill, has not come through: %v, %v", c.id, r, err)
	}
}

// wantAll has all that was begun come to its end, and checks that nothing is lost
// and nothing there twice.
func (s *storm) wantAll(least int64) {
	w := s.w
	w.t.Helper()
	s.load.finish()
	runs := append(s.load.allRuns(), s.probes...)
	w.wantEnded(runs)
	w.wantInIndices(runs)
	total := int64(0)
	for _, c := range runs {
		total += c.samples.Load() + c.lines.Load()
	}
	w.t.Logf("%s\n%d runs with %d numbers, none lost, none twice; %d of them stored during the storm, at least %d were to be",
		s, len(runs), total, s.during, least)
	if s.during < least {
		w.t.Errorf("%d numbers were stored during the storm, want %d at least", s.during, least)
	}
	s.load.logPipes(len(slices.DeleteFunc(slices.Clone(s.kills), func(k kill) bool { return k.victim != "collect" })))
}

// String implements fmt.Stringer.
func (s *storm) String() string {
	by := map[string][]kill{}
	for _, k := range s.kills {
		by[k.victim] = append(by[k.victim], k)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d kills in %s:", len(s.kills), s.to.Sub(s.from).Round(time.Second))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		longest, gaps := time.Duration(0), []time.Duration{}
		for _, k := range by[name] {
			longest = max(longest, k.recovery)
			if k.gap > 0 {
				gaps = append(gaps, k.gap)
			}
		}
		fmt.Fprintf(&b, "\n  %-14s %2d times, all worked again after %6s at the most", name, len(by[name]), longest.Round(10*time.Millisecond))
		if len(gaps) > 0 {
			fmt.Fprintf(&b, ", the next kill came after %6s at the least", slices.Min(gaps).Round(10*time.Millisecond))
		}
	}
	return b.String()
}

// countDocuments asks Elasticsearch how many documents there are.
func (w *harness) countDocuments(ctx context.Context, query string) (int, error) {
	for _, url := range []string{w.store.URL + "/" + w.prefix + "-*/_refresh", w.store.URL + query} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return 0, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		text, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return 0, err
		}
		if url == w.store.URL+query {
			var answer struct{ Count int }
			return answer.Count, json.Unmarshal(text, &answer)
		}
	}
	return 0, nil
}

// TestNothingIsLostWhateverIsKilled kills each service, the broker and the store
// in turn. In the short form fewer numbers go through meanwhile.
func TestNothingIsLostWhateverIsKilled(t *testing.T) {
	w := startSeparate(t)
	s := &storm{w: w, load: newLoad(w, testbed.Size(3, 2), testbed.Size(4000, 1000), testbed.Size(400, 100), testbed.Size(100_000, 10_000), false)}
	s.killInTurn(duration(t, EnvSpan, 0),
		w.killProcess(w.services["gateway"]), w.killProcess(w.services["fetcher"]), w.killProcess(w.platform), s.killPuller(),
		w.killCollectors(), w.killProcess(w.services["metrics-pusher"]), w.killBroker(), w.killStore())
	s.wantAll(int64(testbed.Size(30_000, 2_000)))
}

// TestEveryNumberArrivesOnceWhileWhatBringsItIsKilled kills each process between emit()
// and the store.
func TestEveryNumberArrivesOnceWhileWhatBringsItIsKilled(t *testing.T) {
	w := startSeparate(t)
	s := &storm{w: w, load: newLoad(w, 4, 6000, 600, 200_000, true)}
	s.killInTurn(duration(t, EnvSpan, 0), w.killCollectors(), w.killProcess(w.services["metrics-pusher"]), w.killBroker(), w.killCollectors(), w.killStore())
	s.wantAll(40_000)
}

// TestEveryNumberArrivesOnceWhileOneProcessIsAllThereIs is the same where broker
// and store are embedded.
func TestEveryNumberArrivesOnceWhileOneProcessIsAllThereIs(t *testing.T) {
	w := startEmbedded(t)
	s := &storm{w: w, load: newLoad(w, 4, 6000, 600, 200_000, true)}
	s.killInTurn(duration(t, EnvSpan, 20*time.Second), w.killProcess(w.platform), w.killCollectors())
	s.wantAll(40_000)
}
