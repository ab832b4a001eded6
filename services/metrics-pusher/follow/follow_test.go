package follow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/follow"
)

const (
	run        = "01h00000000000000000000000"
	descriptor = `spec_version = "1.0"
[info]
description = "an entrypoint"
[hardware]
cpus = 1
[env]
docker_image = "image:1"
[[output.metrics]]
name = "n"
units = "count"
pattern = 'n=(\d+)'
[[output.metrics]]
name = "member"
units = "count"
parser = "json"
pattern = '^member=(\d+)$'
[[output.metrics]]
name = "block"
units = "count"
parser = "blocks"
block = '^epoch'
pattern = '(?s)^epoch.*loss=(\d+)'
`
)

// podCreated is when the pod was.
func podCreated() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// logLine returns a line of the log as the cluster returns it, written after the pod's creation by the given time.
func logLine(after time.Duration, text string) string {
	return podCreated().Add(after).Format(time.RFC3339Nano) + " " + text + "\n"
}

// fakeCluster is a cluster with one pod, whose container's log grows.
type fakeCluster struct {
	mu      sync.Mutex
	log     []string
	ended   bool
	deleted bool
	wrapped bool
	broken  bool // connections break at once
	opened  int
	changed chan struct{} // closed and made anew at each change
}

func newFakeCluster(log ...string) *fakeCluster {
	return &fakeCluster{log: log, changed: make(chan struct{})}
}

func (s *fakeCluster) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *fakeCluster) seen() (cluster.Snapshot, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := cluster.Snapshot{Ref: cluster.Ref{Run: run, Attempt: 1, Scope: "benchmarks", Job: "bai-x-1"}}
	if !s.deleted {
		seen.Pods = []corev1.Pod{podOf(s.ended, s.wrapped)}
	}
	return seen, s.changed
}

func podOf(ended, wrapped bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: types.UID("u1"), CreationTimestamp: metav1.NewTime(podCreated())}}
	p.Spec.Containers = []corev1.Container{{Name: cluster.ContainerBenchmark}}
	if wrapped {
		p.Spec.Containers[0].Command = []string{"/bai/bin/bai-pod", "exec"}
	}
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	if ended {
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: cluster.ContainerBenchmark, State: state}}
	return p
}

func (s *fakeCluster) Observe(context.Context, cluster.Ref) (cluster.Snapshot, error) {
	seen, _ := s.seen()
	if len(seen.Pods) == 0 {
		return cluster.Snapshot{}, cluster.ErrNotFound
	}
	return seen, nil
}

func (s *fakeCluster) Watch(ctx context.Context, see func(cluster.Snapshot)) error {
	for {
		seen, changed := s.seen()
		see(seen)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// Log implements cluster.Logger.
func (s *fakeCluster) Log(ctx context.Context, l cluster.Log) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleted {
		return nil, cluster.ErrNotFound
	}
	s.opened++
	r, w := io.Pipe()
	go s.write(ctx, w, l.Since)
	return r, nil
}

// write writes the lines since a time, and then new ones.
func (s *fakeCluster) write(ctx context.Context, w *io.PipeWriter, since time.Time) {
	for i := 0; ; {
		s.mu.Lock()
		lines, ended, broken, changed := s.log, s.ended || s.deleted, s.broken, s.changed
		s.mu.Unlock()
		if broken {
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
			return
		}
		if writeSince(w, lines[i:], since) != nil {
			return
		}
		i = len(lines)
		if ended {
			_ = w.Close()
			return
		}
		select {
		case <-ctx.Done():
			_ = w.CloseWithError(ctx.Err())
			return
		case <-changed:
		}
	}
}

// writeSince writes the lines since a time.
func writeSince(w io.Writer, lines []string, since time.Time) error {
	for _, line := range lines {
		if isBefore(line, since) {
			continue
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// isBefore reports whether a line of the log was written before a time.
func isBefore(line string, since time.Time) bool {
	stamp, _, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	return err == nil && at.Before(since)
}

// fakeBus records published events.
type fakeBus struct {
	mu        sync.Mutex
	published []event.Event
	failures  int // number of calls to fail
}

func (b *fakeBus) Publish(_ context.Context, events ...event.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures > 0 {
		b.failures--
		return errors.New("away")
	}
	for _, e := range events {
		if err := e.Validate(); err != nil {
			return err
		}
	}
	b.published = append(b.published, events...)
	return nil
}

// stored is the content of a store: each line and sample once, and the ends.
type stored struct {
	Lines, Samples []string
	LogEnd, End    event.End
	Repeated       int
}

func (b *fakeBus) stored() stored {
	b.mu.Lock()
	defer b.mu.Unlock()
	var s stored
	seen := map[string]bool{}
	keep := func(to *[]string, text string) {
		key := fmt.Sprintf("%p %s", to, text)
		if seen[key] {
			s.Repeated++
			return
		}
		seen[key] = true
		*to = append(*to, text)
	}
	for _, e := range b.published {
		if logs, ok := e.(event.Logs); ok {
			for _, l := range logs.Lines {
				keep(&s.Lines, fmt.Sprintf("%d %s", l.Seq, l.Text))
			}
			s.LogEnd = lastEnd(s.LogEnd, logs.End)
		}
		if metrics, ok := e.(event.Metrics); ok {
			for _, v := range metrics.Samples {
				keep(&s.Samples, fmt.Sprintf("%d %s=%g", v.Seq, v.Name, v.Float()))
			}
			s.End = lastEnd(s.End, metrics.End)
		}
	}
	return s
}

// lastEnd returns end, or the earlier end if end is nil.
func lastEnd(was event.End, end *event.End) event.End {
	if end == nil {
		return was
	}
	return *end
}

type fixture struct {
	*fakeCluster
	*fakeBus

	store *storetest.Memory
}

func newFixture(t *testing.T, s *fakeCluster) fixture {
	t.Helper()
	return newFixtureOf(t, s, descriptor)
}

// newFixtureOf returns a fixture whose run has the given descriptor.
func newFixtureOf(t *testing.T, s *fakeCluster, descriptor string) fixture {
	t.Helper()
	w := fixture{s, &fakeBus{}, storetest.NewMemory()}
	r := store.Run{ID: run, Namespace: "default", Owner: "me", Descriptor: descriptor, Phase: event.PhaseRunning, Attempt: 1, Created: podCreated(), Updated: podCreated(), Revision: 1}
	if err := w.store.PutRun(t.Context(), r, store.Change{Run: run, Revision: 1, Event: "e", Topic: event.TopicLaunched, Time: podCreated(), Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	return w
}

// process starts a follower in a process of its own, with a lease that ends soon after the process is killed.
func (w fixture) process(t *testing.T, name string) (kill func()) {
	t.Helper()
	return w.processWith(t, name, 150*time.Millisecond)
}

// processWith is process with a lease that lasts for a while.
func (w fixture) processWith(t *testing.T, name string, lease time.Duration) (kill func()) {
	t.Helper()
	p := crashtest.New(0, false)
	ctx, stop := p.Context(t.Context())
	var done sync.WaitGroup
	for _, part := range follow.New(follow.Settings{Lease: lease, RetryBackoff: 5 * time.Millisecond, Reconcile: 100 * time.Millisecond},
		follow.Deps{Bus: p.Bus(w.fakeBus), Store: p.Store(w.store), Cluster: w.fakeCluster, Holder: name}) {
		done.Go(func() {
			if err := part(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	kill = func() { p.Kill(); stop(); done.Wait() }
	t.Cleanup(kill)
	return kill
}

// fail makes the next n calls fail.
func (w fixture) fail(n int) {
	w.fakeBus.mu.Lock()
	defer w.fakeBus.mu.Unlock()
	w.failures = n
}

// progress returns the stored progress of the log that is not shipped to its end.
func (w fixture) progress(t *testing.T) follow.Progress {
	t.Helper()
	p, _, err := store.Get[follow.Progress](t.Context(), w.store, store.KindLogProgress, "open/u1")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return p
}

// until waits until cond returns true.
func until(t *testing.T, description string, cond func() bool) {
	t.Helper()
	for late := time.Now().Add(time.Minute); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%s: not in time", description)
		}
	}
}

func (w fixture) shipped(t *testing.T) func() bool {
	t.Helper()
	return func() bool {
		_, err := w.store.Doc(t.Context(), store.KindLogProgress, store.LogShippedKey("u1"))
		return err == nil
	}
}

func TestWhatAnEntrypointWritesIsShippedWithItsSamples(t *testing.T) {
	w := newFixture(t, newFakeCluster(logLine(time.Second, "begins"), logLine(2*time.Second, "n=1"), logLine(2*time.Second, "n=2")))
	w.process(t, "a")
	until(t, "the first lines", func() bool { return len(w.stored().Lines) == 3 })
	w.change(func() {
		w.log = append(w.log, logLine(3*time.Second, "n=3"), strings.TrimSuffix(logLine(4*time.Second, "open n=4"), "\n"))
	})
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	want := stored{
		Lines:   []string{"1000000000 begins", "2000000000 n=1", "2000000001 n=2", "3000000000 n=3", "4000000000 open n=4"},
		Samples: []string{"2000000000 n=1", "2000000001 n=2", "3000000000 n=3", "4000000000 n=4"},
		LogEnd:  event.End{Count: 5, Last: 4e9}, End: event.End{Count: 4, Last: 4e9},
	}
	got := w.stored()
	got.Repeated = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := w.store.Doc(t.Context(), store.KindLogProgress, "open/u1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is still begun: %v", err)
	}
}

func TestMembersAndBlocksOfWhatAnEntrypointWritesAreSamples(t *testing.T) {
	w := newFixture(t, newFakeCluster(
		logLine(time.Second, "epoch 1"), logLine(2*time.Second, "loss=5"), logLine(3*time.Second, `{"member": 7}`),
		logLine(4*time.Second, "epoch 2"), logLine(5*time.Second, "loss=6"),
	))
	w.process(t, "a")
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	if diff := cmp.Diff([]string{"3000000000 member=7", "3000000001 block=5", "5000000001 block=6"}, w.stored().Samples); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestABlockIsReadToItsEndWhoeverReadsIt stops the reader within a block, by a kill, a broken connection or the end of the log, and checks
// that the samples of each block are shipped and counted once.
func TestABlockIsReadToItsEndWhoeverReadsIt(t *testing.T) {
	for name, interrupt := range map[string]func(t *testing.T, w fixture, kill func()){
		"a kill": func(_ *testing.T, _ fixture, kill func()) { kill() },
		"a broken connection": func(t *testing.T, w fixture, _ func()) {
			t.Helper()
			opened := func() (n int) { w.change(func() { n = w.opened }); return n }
			before := opened()
			w.change(func() { w.broken = true })
			until(t, "another connection", func() bool { return opened() > before })
			w.change(func() { w.broken = false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, newFakeCluster(
				logLine(time.Second, "epoch 1"), logLine(2*time.Second, "loss=5"), logLine(3*time.Second, "epoch 2"), logLine(4*time.Second, "x"),
			))
			kill := w.process(t, "a")
			until(t, "progress", func() bool { return w.progress(t).Seq == 4e9 })
			interrupt(t, w, kill)
			w.process(t, "b")
			w.change(func() {
				w.log = append(w.log, logLine(5*time.Second, "loss=6"), logLine(6*time.Second, "epoch 3 loss=7"))
			})
			w.change(func() { w.ended = true })
			until(t, "the end", w.shipped(t))
			got := w.stored()
			if diff := cmp.Diff([]string{"2000000001 block=5", "5000000001 block=6", "6000000001 block=7"}, got.Samples); diff != "" || got.End.Count != 3 {
				t.Errorf("%d counted (-want +got):\n%s", got.End.Count, diff)
			}
		})
	}
}

func TestABlockOfAPodThatIsGoneIsNamed(t *testing.T) {
	w := newFixture(t, newFakeCluster(logLine(time.Second, "epoch 1"), logLine(2*time.Second, "loss=5")))
	kill := w.process(t, "a")
	until(t, "progress", func() bool { return w.progress(t).Seq == 2e9 })
	kill()
	w.change(func() { w.deleted = true })
	w.process(t, "b")
	until(t, "the end", w.shipped(t))
	if got := w.stored(); got.End.Dropped != 1 || got.End.Reason != "the pod was gone before a block of its log was read to the end" {
		t.Errorf("%+v", got.End)
	}
}

func TestAContainerThatOurProgramRunsIsNotFollowed(t *testing.T) {
	s := newFakeCluster(logLine(time.Second, "x"))
	s.wrapped = true
	w := newFixture(t, s)
	w.process(t, "a")
	w.change(func() { w.ended = true })
	w.change(func() { w.deleted = true })
	until(t, "a lease", func() bool { _, err := w.store.Doc(t.Context(), store.KindLease, "follow"); return err == nil })
	if w.opened > 0 || len(w.published) > 0 {
		t.Errorf("opened %d times, said %d events", w.opened, len(w.published))
	}
}

func TestWhoeverComesAfterOneThatWasKilledLosesAndRepeatsNothing(t *testing.T) {
	const lines, kills = 400, 8
	w := newFixture(t, newFakeCluster())
	var want []string
	add := func(from, to int) {
		w.change(func() {
			for i := from; i < to; i++ { // several in a nanosecond, many in a second
				at := time.Second + time.Duration(i/2)*7*time.Millisecond
				w.log = append(w.log, logLine(at, fmt.Sprintf("n=%d", i)))
				want = append(want, fmt.Sprintf("%d n=%d", int64(at)+int64(i%2), i))
			}
		})
	}
	for k := range kills {
		kill := w.process(t, fmt.Sprint("p", k))
		add(k*lines/kills, (k+1)*lines/kills)
		until(t, "progress", func() bool { return len(w.stored().Lines) > (k+1)*lines/kills-10 })
		kill()
	}
	w.change(func() { w.ended = true })
	w.process(t, "last")
	until(t, "the end", w.shipped(t))
	got := w.stored()
	if diff := cmp.Diff(want, got.Lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if len(got.Samples) != lines || got.LogEnd.Count < lines {
		t.Errorf("%d samples, %+v", len(got.Samples), got.LogEnd)
	}
	t.Logf("%d of %d lines were shipped twice", got.Repeated, lines)
}

func TestOneOfTwoProcessesFollows(t *testing.T) {
	w := newFixture(t, newFakeCluster(logLine(time.Second, "n=1")))
	w.processWith(t, "a", time.Hour) // however late it is renewed
	w.processWith(t, "b", time.Hour)
	until(t, "a line", func() bool { return len(w.stored().Lines) == 1 })
	w.change(func() {
		if w.opened != 1 {
			t.Errorf("the log was opened %d times", w.opened)
		}
		w.ended = true
	})
	until(t, "the end", w.shipped(t))
}

func TestWhatCannotBeSaidIsReadAgain(t *testing.T) {
	w := newFixture(t, newFakeCluster(logLine(time.Second, "n=1"), logLine(2*time.Second, "n=2")))
	w.failures = 3
	w.process(t, "a")
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	if got := w.stored(); len(got.Lines) != 2 || len(got.Samples) != 2 || got.LogEnd.Count != 2 {
		t.Errorf("%+v", got)
	}
}

func TestAPodThatIsGoneEndsItsLogWithWhatWasRead(t *testing.T) {
	w := newFixture(t, newFakeCluster(logLine(time.Second, "n=1")))
	kill := w.process(t, "a")
	until(t, "a line", func() bool { return len(w.stored().Lines) == 1 })
	kill()
	w.change(func() { w.deleted = true }) // while no follower runs
	w.process(t, "b")
	until(t, "the end", w.shipped(t))
	if got := w.stored(); len(got.Lines) != 1 || got.LogEnd.Count > 1 || !strings.Contains(got.LogEnd.Reason, "gone before its log was read") {
		t.Errorf("%+v", got.LogEnd)
	}
}

func TestALineWithoutEndIsCutAndALogBeyondItsLimitIsNotKept(t *testing.T) {
	w := newFixture(t, newFakeCluster(logLine(time.Second, strings.Repeat("x", 3<<20)), logLine(2*time.Second, "n=2"), "failed to open the log\n"))
	w.process(t, "a")
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	got := w.stored()
	if len(got.Lines) != 2 || len(got.Lines[0]) > 66<<10 || got.Lines[1] != "2000000000 n=2" {
		t.Errorf("%d lines", len(got.Lines))
	}
	if got.LogEnd.Dropped != 0 || !strings.Contains(got.LogEnd.Reason, "failed to open the log") {
		t.Errorf("%+v", got.LogEnd)
	}
}

// TestALineThatIsCutIsAsOneOfACollector: no character is cut apart, and no number
// that ends at the cut is a sample.
func TestALineThatIsCutIsAsOneOfACollector(t *testing.T) {
	const limit = 64 << 10
	long := func(end string) string { return strings.Repeat("x", limit-len(end)) + end }
	w := newFixture(t, newFakeCluster(
		logLine(time.Second, long(" n=1")+"23"), logLine(2*time.Second, long("")[1:]+"ö"), logLine(3*time.Second, "n=2\r"), logLine(4*time.Second, `{"member": 3, "loss": NaN}`),
	))
	w.process(t, "a")
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	got := w.stored()
	if len(got.Lines) != 4 || got.Lines[0] != "1000000000 "+long(" n=1") || got.Lines[1] != "2000000000 "+long("")[1:] || got.Lines[2] != "3000000000 n=2\r" {
		t.Errorf("%d lines", len(got.Lines))
	}
	if diff := cmp.Diff([]string{"3000000000 n=2", "4000000000 member=3"}, got.Samples); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.End.Dropped != 1 || !strings.Contains(got.End.Reason, "longer than 65536 bytes") {
		t.Errorf("%+v", got.End)
	}
}

// The follower of one engine leaves the logs of another one alone, whose pods it does not see.
func TestAFollowerLeavesTheLogsOfOtherEnginesAlone(t *testing.T) {
	t.Parallel()
	w := newFixture(t, newFakeCluster(logLine(time.Second, "n=1")))
	w.process(t, "near")
	for late := time.Now().Add(5 * time.Minute); w.progress(t).Seq == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the log is not followed")
		}
	}
	own := map[string]any{"engine": "far", "uid": "u2", "pod": "gone", "role": "benchmark", "made": podCreated(), "ref": cluster.Ref{Run: run, Attempt: 1}}
	if err := store.Create(t.Context(), w.store, store.KindLogProgress, "open/u2", own); err != nil {
		t.Fatal(err)
	}
	empty := newFakeCluster()
	empty.change(func() { empty.deleted = true })
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	for _, part := range follow.New(follow.Settings{Reconcile: 10 * time.Millisecond}, follow.Deps{Bus: w.fakeBus, Store: w.store, Cluster: empty, Engine: "far", Holder: "far"}) {
		done.Go(func() { _ = part(ctx) })
	}
	for late := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) { // it looks at u1 before
		if _, err := w.store.Doc(t.Context(), store.KindLogProgress, store.LogShippedKey("u2")); err == nil {
			break
		}
		if time.Now().After(late) {
			t.Fatal("the log of its own engine is not ended")
		}
	}
	stop()
	done.Wait()
	if _, err := w.store.Doc(t.Context(), store.KindLogProgress, store.LogShippedKey("u1")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the other engine's follower ended the log: %v", err)
	}
}
