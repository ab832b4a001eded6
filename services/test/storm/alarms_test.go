package storm_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // what the IDs of commits are
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/receivers"
)

// alarmStorm has incidents open and end while processes are killed.
type alarmStorm struct {
	w      *harness
	places *receivers.Servers
	series int          // of each task, each of which has an incident at a time
	least  int          // cycles of each task
	stop   atomic.Bool  // no further cycle begins
	cycles atomic.Int64 // of all tasks

	mu     sync.Mutex
	firing map[string]int // by task, as it was looked at last; absent if it has no open incident
	open   map[string]int
	commit map[string]string // by commit, its task
}

// cycleTimeout is how long a half of a cycle may take while processes are killed.
const cycleTimeout = 4 * waitTimeout

// startWithAnalysts starts a platform on real servers with two analysts, whose receivers are those of the settings.
func startWithAnalysts(t *testing.T, places map[string]any) *harness {
	t.Helper()
	needsReal(t)
	w := newHarness(t)
	w.startReal("gateway,metrics-pusher,analyst")
	w.startService("gateway", map[string]any{"listen": w.addr, "receivers": places})
	w.startService("metrics-pusher", nil, "index")
	for _, name := range analysts() {
		w.startInstance(name, "analyst", map[string]any{"receivers": places, "analyst": map[string]any{"interval": "1s", "lease": "3s"}})
	}
	w.awaitReady()
	return w
}

// analysts are the names of the processes.
func analysts() []string { return []string{"analyst-1", "analyst-2"} }

// rated returns the descriptor of a run of a task that prints a rate for each series.
func (s *alarmStorm) rated(task, commit string, rate int) string {
	return fmt.Sprintf(`spec_version = "0.1.0"
[info]
description = "rates"
[info.labels]
task_name = %q
commit = %q
pull_request = %q
[hardware]
instance_type = "t3.small"
[env]
docker_image = "debian:12-slim"
[limits]
retries = 3
[ml]
benchmark_code = '''
#!/bin/sh
for i in $(seq %d); do echo "rate of $i is %d"; done
'''
[output]
[[output.metrics]]
name = "rate"
units = "B/s"
pattern = 'rate of (?P<n>\d+) is (?P<value>\d+)'
direction = "higher"
[[alarms]]
metric = "rate"
below = 100
for = 1
notify = %s
`, task, commit, strings.TrimPrefix(task, "task-"), s.series, rate, receivers.Names)
}

// submit has a run made.
func (s *alarmStorm) submit(key, descriptor string) bool {
	return s.w.retry("submit", func(ctx context.Context) error {
		_, err := s.w.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{IdempotencyKey: key, DescriptorToml: []byte(descriptor), Owner: "tester"})
		return err
	})
}

// cycle has all series of a task be bad once, and good thereafter.
func (s *alarmStorm) cycle(task string, n int) bool {
	commit := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "%s-%d", task, n))) //nolint:gosec // as above
	s.mu.Lock()
	s.commit[commit] = task
	s.mu.Unlock()
	if !s.submit(fmt.Sprintf("%s-%d-bad", task, n), s.rated(task, commit, 50)) || !s.await(task, s.series) {
		return false
	}
	for k := range 3 {
		if !s.submit(fmt.Sprintf("%s-%d-good-%d", task, n, k), s.rated(task, commit, 200+k)) {
			return false
		}
	}
	if !s.await(task, 0) {
		return false
	}
	s.cycles.Add(1)
	return true
}

// await waits until a number of incidents of a task fire, and no others are open.
func (s *alarmStorm) await(task string, want int) bool {
	for late := time.Now().Add(cycleTimeout); ; {
		if !wait(s.w.t.Context(), 100*time.Millisecond) || s.w.t.Failed() {
			return false
		}
		s.mu.Lock()
		firing, open := s.firing[task], s.open[task]
		s.mu.Unlock()
		if firing == want && open == want {
			return true
		}
		if time.Now().After(late) {
			s.w.t.Errorf("%s has %d incidents that fire, of %d open ones, want %d", task, firing, open, want)
			return false
		}
	}
}

// look counts the open incidents of all tasks.
func (s *alarmStorm) look() {
	var all []*baiv1.Incident
	if !s.w.retry("list incidents", func(ctx context.Context) (err error) {
		all, err = s.list(ctx, &baiv1.ListIncidentsRequest{Open: true})
		return err
	}) {
		return
	}
	firing, open := map[string]int{}, map[string]int{}
	for _, i := range all {
		open[i.GetTask()]++
		if i.GetState() == "firing" {
			firing[i.GetTask()]++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firing, s.open = firing, open
}

// list returns the incidents of all pages.
func (s *alarmStorm) list(ctx context.Context, request *baiv1.ListIncidentsRequest) (all []*baiv1.Incident, err error) {
	for request.PageSize = 1000; ; {
		page, err := s.w.alarms.ListIncidents(ctx, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetIncidents()...)
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return all, nil
		}
	}
}

// notices returns all notices that were made.
func (s *alarmStorm) notices() (all []*baiv1.Notice) {
	s.w.t.Helper()
	s.w.retry("list notices", func(ctx context.Context) error {
		all = nil
		for request := (&baiv1.ListNoticesRequest{PageSize: 1000}); ; {
			page, err := s.w.alarms.ListNotices(ctx, request)
			if err != nil {
				return err
			}
			all = append(all, page.GetNotices()...)
			if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
				return nil
			}
		}
	})
	return all
}

// begin has tasks go through cycles, and returns a function that ends that.
func (s *alarmStorm) begin(tasks int) (finish func()) {
	var lanes, looking sync.WaitGroup
	ctx, end := context.WithCancel(s.w.t.Context())
	looking.Go(func() {
		for wait(ctx, 300*time.Millisecond) {
			s.look() //nolint:contextcheck // calls last as long as the test
		}
	})
	for n := range tasks {
		task := fmt.Sprintf("task-%d", n+1)
		lanes.Go(func() {
			s.submit(task+"-first", s.rated(task, strings.Repeat("0", 40), 200))
			for c := 0; (!s.stop.Load() || c < s.least) && s.cycle(task, c); c++ {
			}
		})
	}
	return func() {
		s.stop.Store(true)
		lanes.Wait()
		end()
		looking.Wait()
	}
}

// failInTurn has one receiver after the other fail in some way until the function that it returns is called.
func (s *alarmStorm) failInTurn(span time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(s.w.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		all := s.places.All()
		names := slices.Sorted(maps.Keys(all))
		faults := []receivers.Fault{receivers.Busy, receivers.Broken, receivers.Cut, receivers.Away}
		for n := 0; ctx.Err() == nil; n++ {
			one := all[names[n%len(names)]]
			one.Fail(faults[n%len(faults)])
			wait(ctx, span)
			one.Fail(receivers.None)
		}
	})
	return func() { cancel(); done.Wait() }
}

// killInTurn kills victims in a random order, round by round, so many times. A kill is followed by the next once every process is of use again, and a
// random time later.
func (s *alarmStorm) killInTurn(random *rand.Rand, times int, pause time.Duration, victims ...victim) {
	for kills := 0; kills < times; {
		for _, v := range random.Perm(len(victims)) {
			if kills == times || s.w.t.Failed() || !wait(s.w.t.Context(), time.Duration(random.Int64N(int64(pause)))) {
				return
			}
			victims[v].kill()
			s.w.awaitReady()
			kills++
			if kills%20 == 0 {
				s.w.t.Logf("%d kills, %d cycles", kills, s.cycles.Load())
			}
		}
	}
}

// awaitSent waits until each receiver was sent a notice of the beginning and one of the end of each cycle, and no notice waits, as long as some are sent.
// That an incident has ended is seen before the notice of it is made.
func (s *alarmStorm) awaitSent() []*baiv1.Notice {
	s.w.t.Helper()
	want, was := 2*int(s.cycles.Load())*len(s.places.All()), -1
	for late := time.Now().Add(waitTimeout); ; {
		all := s.notices()
		waiting := slices.DeleteFunc(slices.Clone(all), func(n *baiv1.Notice) bool { return n.GetStatus() != "waiting" })
		sent := len(all) - len(waiting)
		switch {
		case len(waiting) == 0 && sent >= want || s.w.t.Failed():
			return all
		case sent != was:
			was, late = sent, time.Now().Add(waitTimeout)
		case time.Now().After(late):
			s.w.t.Fatalf("%d notices are sent, want %d; these wait: %v", sent, want, waiting)
		}
		wait(s.w.t.Context(), pollInterval)
	}
}

// TestEveryNoticeIsSentOnceWhateverIsKilled kills analysts, gateway and metrics-pusher while incidents open and end, and receivers fail in turn. Then
// everything is delivered once more, and all topics are heard again from the beginning.
func TestEveryNoticeIsSentOnceWhateverIsKilled(t *testing.T) {
	needsReal(t)
	places := receivers.Start(t)
	w := startWithAnalysts(t, places.Settings)
	seed := uint64(os.Getpid()) //nolint:gosec // a process ID is not negative
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // moments of kills are no secret
	s := &alarmStorm{w: w, places: places, series: testbed.Size(20, 5), least: testbed.Size(5, 1), commit: map[string]string{}}
	finish := s.begin(testbed.Size(10, 2))
	end := s.failInTurn(time.Duration(testbed.Size(6, 2)) * time.Second)
	begun := time.Now()
	s.killInTurn(random, testbed.Size(200, 4), 2*time.Second,
		w.killProcess(w.services["gateway"]), w.killProcess(w.services["metrics-pusher"]), w.killProcess(w.services[analysts()[0]]), w.killProcess(w.services[analysts()[1]]))
	t.Logf("killed for %s", time.Since(begun).Round(time.Second))
	finish()
	end()
	w.awaitReady()
	notices := s.awaitSent()
	t.Logf("%d cycles and %d notices after %s", s.cycles.Load(), len(notices), time.Since(begun).Round(time.Second))
	s.wantIncidentsOnce()
	s.wantNoticesOnce(notices)
	s.wantArrivalsOnce(notices)
	if t.Failed() {
		return
	}
	s.wantNothingNew(notices, s.repeatEverything)
	s.wantNothingNew(notices, s.rewindEverything)
}
