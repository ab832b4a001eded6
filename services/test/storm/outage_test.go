package storm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// recoveryLimit is the time in which all works again once servers are back, beyond the
// usual time of a run on this machine.
const recoveryLimit = 15 * time.Second

// server is a server with outages.
type server struct {
	name          string // as readiness says it
	kill, restart func(testing.TB)
}

// TestServersThatAreAwayAreWaitedFor has the broker, the store and both go away
// while a load goes through the platform.
func TestServersThatAreAwayAreWaitedFor(t *testing.T) {
	w := startSeparate(t)
	broker, store := server{"kafka", w.broker.Kill, w.broker.Restart}, server{"store", w.store.Kill, w.store.Restart}
	s := &storm{w: w, load: newLoad(w, 3, 4000, 400, 0, false), from: time.Now()}
	for _, servers := range [][]server{{broker}, {store}, {broker, store}} {
		begun := time.Now()
		s.probe()
		o := outage{storm: s, servers: servers, baseline: time.Since(begun)}
		o.run(duration(t, EnvAway, 20*time.Second))
	}
	s.to, s.during = time.Now(), s.load.stored()
	s.wantAll(30_000)
}

// outage is a time in which servers are away.
type outage struct {
	*storm

	servers  []server
	baseline time.Duration // that a run took before
}

func (o *outage) String() string {
	var names []string
	for _, s := range o.servers {
		names = append(names, s.name)
	}
	return strings.Join(names, " and ")
}

// run takes the servers away for a while, and checks the platform.
func (o *outage) run(span time.Duration) {
	w := o.w
	w.t.Helper()
	before := o.logLengths()
	for _, s := range o.servers {
		s.kill(w.t)
	}
	killedAt := time.Now()
	o.awaitNotReady()
	notReadyAfter := time.Since(killedAt)
	key := "refused-" + o.String()
	o.wantRefused(key)
	o.awaitNotReady() // still
	if !wait(w.t.Context(), time.Until(killedAt.Add(span))) {
		return
	}
	o.wantLoggedOnce(before)
	progressBefore := o.load.progress()
	for _, s := range o.servers {
		s.restart(w.t)
	}
	restartedAt := time.Now()
	w.awaitReady()
	ready := time.Since(restartedAt)
	o.load.awaitProgress(progressBefore, time.Now().Add(waitTimeout))
	o.probe()
	took := time.Since(restartedAt)
	w.t.Logf("%s away for %s: all said so within %s; back, all were ready after %s and all worked after %s; a run takes %s when all is well",
		o, restartedAt.Sub(killedAt).Round(time.Second), notReadyAfter.Round(10*time.Millisecond), ready.Round(10*time.Millisecond), took.Round(10*time.Millisecond), o.baseline.Round(10*time.Millisecond))
	if took > recoveryLimit+o.baseline {
		w.t.Errorf("all worked again %s after %s came back, want %s and what a run takes, %s, at the most", took, o, recoveryLimit, o.baseline)
	}
	if c := w.submit(key, w.descriptor(20, 0, false, ""), 20, false); c != nil { // the same once more
		o.probes = append(o.probes, c)
	}
}

// logLengths is how much each process has printed.
func (o *outage) logLengths() map[*process.Process]int {
	all := map[*process.Process]int{}
	for _, p := range o.w.processes() {
		all[p] = p.Log.Len()
	}
	return all
}

// awaitNotReady waits until every process says that it lacks the servers.
func (o *outage) awaitNotReady() {
	o.w.t.Helper()
	late := time.Now().Add(waitTimeout)
	for _, p := range o.w.processes() {
		for {
			err := p.Ready(o.w.t.Context())
			if err != nil && !slices.ContainsFunc(o.servers, func(s server) bool { return !strings.Contains(err.Error(), s.name+": ") }) {
				break
			}
			if time.Now().After(late) {
				o.w.t.Fatalf("%s does not say that it lacks %s: %v", p.Name, o, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// wantRefused checks that a submission is not accepted.
func (o *outage) wantRefused(key string) {
	o.w.t.Helper()
	ctx, cancel := context.WithTimeout(o.w.t.Context(), time.Minute)
	defer cancel()
	begun := time.Now()
	r, err := o.w.api.SubmitRun(ctx, &baiv1.SubmitRunRequest{IdempotencyKey: key, DescriptorToml: []byte(o.w.descriptor(20, 0, false, "")), Owner: "tester"})
	if status.Code(err) != codes.Unavailable {
		o.w.t.Errorf("a submission without %s: %v, %v; want UNAVAILABLE", o, r, err)
	}
	o.w.t.Logf("a submission without %s: after %s %v", o, time.Since(begun).Round(10*time.Millisecond), err)
}

// logEntry is a log entry without its variable fields.
type logEntry struct{ Level, Msg, Group, Topic, Step, Run string }

// wantLoggedOnce checks the processes' logs since before the outage, which still lasts:
// each process logs an unavailable server once.
func (o *outage) wantLoggedOnce(before map[*process.Process]int) {
	o.w.t.Helper()
	for _, p := range o.w.processes() {
		times := warningCounts(p.Log.Since(before[p]))
		if len(times) == 0 && o.servers[0].name == "kafka" {
			o.w.t.Errorf("%s has not logged that it waits for %s", p.Name, o)
		}
		for _, entry := range slices.SortedFunc(maps.Keys(times), func(a, b logEntry) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
			if times[entry] > 1 {
				o.w.t.Errorf("%s has logged %d times while %s were away: %+v", p.Name, times[entry], o, entry)
			}
		}
	}
}

// TestNothingIsLostWhileThePlatformIsAway ends the one process that a platform on
// one machine is, and begins it again after a while, in which benchmarks end.
func TestNothingIsLostWhileThePlatformIsAway(t *testing.T) {
	w := startEmbedded(t)
	s := &storm{w: w, load: newLoad(w, 3, 3000, 600, 0, false), from: time.Now()}
	s.probe()
	was := s.load.progress()
	w.platform.Kill(t)
	if !wait(t.Context(), duration(t, EnvAway, 20*time.Second)) {
		return
	}
	w.platform.Begin(t)
	back := time.Now()
	s.load.awaitProgress(was, time.Now().Add(waitTimeout))
	s.probe()
	t.Logf("all worked again %s after the platform was begun", time.Since(back).Round(10*time.Millisecond))
	const least = 1000 // numbers of benchmarks that were under way
	s.load.awaitStored(least, time.Now().Add(waitTimeout))
	s.to, s.during = time.Now(), s.load.stored()
	s.wantAll(least)
}

// warningCounts are the warnings and errors in a log, with their frequencies.
func warningCounts(log string) map[logEntry]int {
	times := map[logEntry]int{}
	for line := range strings.Lines(log) {
		var entry logEntry
		if json.Unmarshal([]byte(line), &entry) == nil && (entry.Level == "warn" || entry.Level == "error") {
			times[entry]++
		}
	}
	return times
}
