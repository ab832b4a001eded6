package shim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shim"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

var t0 = time.Unix(1000, 0)

func at(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }

// pod has an init container, a sidecar, another init container and two mains.
func pod() shimapi.Pod {
	return shimapi.Pod{Grace: 10 * time.Second, Containers: []shimapi.Container{
		{Name: "init", Kind: shimapi.Init},
		{Name: "side", Kind: shimapi.Sidecar},
		{Name: "init2", Kind: shimapi.Init},
		{Name: "main", Kind: shimapi.Main},
		{Name: "main2", Kind: shimapi.Main},
	}}
}

func runs() shimapi.ContainerStatus { return shimapi.ContainerStatus{PID: 2, Started: at(0)} }

func ended(code int) shimapi.ContainerStatus {
	return shimapi.ContainerStatus{Started: at(0), Termination: &shimapi.Termination{Code: code, Started: at(0), Ended: at(50)}}
}

func termed(s shimapi.ContainerStatus, ms int) shimapi.ContainerStatus {
	s.TermSentAt = at(ms)
	return s
}

func isFrozen(s shimapi.ContainerStatus) shimapi.ContainerStatus {
	s.Frozen = true
	return s
}

func killed(s shimapi.ContainerStatus, ms int) shimapi.ContainerStatus {
	s.KillSentAt = at(ms)
	return s
}

func restartSidecar(s shimapi.ContainerStatus, restarts int) shimapi.ContainerStatus {
	s.Restarts = restarts
	return s
}

func signaled(n int) shimapi.ContainerStatus {
	s := ended(128 + n)
	s.Termination.Signal = n
	return s
}

func unable() shimapi.ContainerStatus {
	s := ended(128)
	s.Termination.Problem = "no such file"
	return s
}

func TestDecide(t *testing.T) {
	t.Parallel()
	none, good := shimapi.ContainerStatus{}, ended(0)
	for name, test := range map[string]struct {
		containers [5]shimapi.ContainerStatus
		ours       bool          // the sidecar
		stopped    int           // ms; 0 is never
		deadline   int           // ms; 0 is never
		grace      time.Duration // zero is that of pod
		owed       time.Duration
		now        int
		want       shim.Actions
	}{
		"the first init container begins":                     {want: shim.Actions{Start: []int{0}}},
		"the next waits for it":                               {containers: [5]shimapi.ContainerStatus{runs()}},
		"the sidecar begins in its place":                     {containers: [5]shimapi.ContainerStatus{good}, want: shim.Actions{Start: []int{1}}},
		"after a sidecar the next begins at once":             {containers: [5]shimapi.ContainerStatus{good, runs()}, want: shim.Actions{Start: []int{2}}},
		"all main containers begin together":                  {containers: [5]shimapi.ContainerStatus{good, runs(), good}, want: shim.Actions{Start: []int{3, 4}}},
		"while they run there is nothing to do":               {containers: [5]shimapi.ContainerStatus{good, runs(), good, runs(), runs()}, now: 100},
		"one that ended does not end the others":              {containers: [5]shimapi.ContainerStatus{good, runs(), good, ended(1), runs()}, now: 100},
		"the deadline is waited for":                          {containers: [5]shimapi.ContainerStatus{good, runs(), good, runs(), runs()}, deadline: 500, now: 100, want: shim.Actions{Wake: at(500)}},
		"the deadline passes":                                 {containers: [5]shimapi.ContainerStatus{good, runs(), good, runs(), runs()}, deadline: 500, now: 500, want: shim.Actions{Deadline: true}},
		"a sidecar that crashed waits a moment":               {containers: [5]shimapi.ContainerStatus{good, ended(1), good, runs(), runs()}, now: 60, want: shim.Actions{Wake: at(150)}},
		"then it begins again":                                {containers: [5]shimapi.ContainerStatus{good, ended(1), good, runs(), runs()}, now: 150, want: shim.Actions{Start: []int{1}}},
		"a sidecar that ended well begins again too":          {containers: [5]shimapi.ContainerStatus{good, good, good, runs(), runs()}, now: 150, want: shim.Actions{Start: []int{1}}},
		"each time it waits longer":                           {containers: [5]shimapi.ContainerStatus{good, restartSidecar(ended(1), 3), good, runs(), runs()}, now: 150, want: shim.Actions{Wake: at(850)}},
		"but not for ever":                                    {containers: [5]shimapi.ContainerStatus{good, restartSidecar(ended(1), 99), good, runs(), runs()}, now: 150, want: shim.Actions{Wake: at(30050)}},
		"a sidecar that crashed holds up nothing else":        {containers: [5]shimapi.ContainerStatus{good, ended(1), none}, now: 60, want: shim.Actions{Start: []int{2}, Wake: at(150)}},
		"a sidecar that never ran holds up all":               {containers: [5]shimapi.ContainerStatus{good, unable(), none}, now: 60, want: shim.Actions{Wake: at(150)}},
		"an init container that fails ends the pod":           {containers: [5]shimapi.ContainerStatus{good, runs(), ended(3)}, now: 60, want: shim.Actions{Term: []int{1}}},
		"when the mains have ended the sidecar is told to":    {containers: [5]shimapi.ContainerStatus{good, runs(), good, good, ended(1)}, now: 60, want: shim.Actions{Term: []int{1}}},
		"it is given its grace":                               {containers: [5]shimapi.ContainerStatus{good, termed(runs(), 60), good, good, good}, now: 100, want: shim.Actions{Wake: at(10060)}},
		"then it is killed":                                   {containers: [5]shimapi.ContainerStatus{good, termed(runs(), 60), good, good, good}, now: 10060, want: shim.Actions{Kill: []int{1}}},
		"what is killed is waited for":                        {containers: [5]shimapi.ContainerStatus{good, killed(termed(runs(), 60), 10060), good, good, good}, now: 10061},
		"one that a signal stopped has less time":             {containers: [5]shimapi.ContainerStatus{good, termed(runs(), 60), good, isFrozen(termed(runs(), 60)), good}, stopped: 60, now: 9000, want: shim.Actions{Wake: at(10060)}},
		"it is killed however long the grace is":              {containers: [5]shimapi.ContainerStatus{good, termed(runs(), 60), good, isFrozen(termed(runs(), 60)), good}, grace: time.Hour, stopped: 60, now: 10060, want: shim.Actions{Kill: []int{3}}},
		"a sidecar goes on while data are owed":               {owed: time.Hour, containers: [5]shimapi.ContainerStatus{good, termed(runs(), 60), good, good, good}, now: 1200_000, want: shim.Actions{Wake: at(3600_060)}},
		"also in a pod that is stopped":                       {owed: time.Hour, stopped: 60, containers: [5]shimapi.ContainerStatus{good, termed(runs(), 60), good, good, good}, now: 1200_000, want: shim.Actions{Wake: at(3600_060)}},
		"but no longer than is set":                           {owed: time.Hour, containers: [5]shimapi.ContainerStatus{good, termed(runs(), 60), good, good, good}, now: 3600_060, want: shim.Actions{Kill: []int{1}}},
		"one that is killed while data are owed begins again": {owed: time.Hour, containers: [5]shimapi.ContainerStatus{good, termed(signaled(9), 40), good, good, good}, now: 1200_000, want: shim.Actions{Start: []int{1}}},
		"the mains have no more for that":                     {owed: time.Hour, containers: [5]shimapi.ContainerStatus{good, runs(), good, termed(runs(), 60), good}, stopped: 60, now: 10060, want: shim.Actions{Kill: []int{3}}},
		"when all have ended it is over":                      {containers: [5]shimapi.ContainerStatus{good, good, good, good, good}, now: 60, want: shim.Actions{Done: true}},
		"a sidecar that fails at its end changes nothing":     {containers: [5]shimapi.ContainerStatus{good, termed(ended(1), 40), good, good, good}, now: 60, want: shim.Actions{Done: true}},
		"a sidecar that SIGTERM ended has ended":              {containers: [5]shimapi.ContainerStatus{good, termed(signaled(15), 40), good, good, good}, now: 60, want: shim.Actions{Done: true}},
		"a sidecar that is killed while it ends begins again": {containers: [5]shimapi.ContainerStatus{good, termed(signaled(9), 40), good, good, good}, now: 200, want: shim.Actions{Start: []int{1}}},
		"a sidecar that crashed before the end begins again":  {containers: [5]shimapi.ContainerStatus{good, ended(1), good, good, good}, now: 60, want: shim.Actions{Wake: at(150)}},
		"but not after the grace":                             {containers: [5]shimapi.ContainerStatus{good, signaled(9), good, good, good}, now: 10050, want: shim.Actions{Done: true}},
		"a sidecar of ours is not told while it starts":       {ours: true, containers: [5]shimapi.ContainerStatus{good, runs(), good, good, good}, now: 60, want: shim.Actions{Wake: at(500)}},
		"but then": {ours: true, containers: [5]shimapi.ContainerStatus{good, runs(), good, good, good}, now: 500, want: shim.Actions{Term: []int{1}}},
		"one of ours that SIGTERM ended did not listen yet":      {ours: true, containers: [5]shimapi.ContainerStatus{good, termed(signaled(15), 40), good, good, good}, now: 200, want: shim.Actions{Start: []int{1}}},
		"one of ours that said it failed has ended":              {ours: true, containers: [5]shimapi.ContainerStatus{good, termed(ended(1), 40), good, good, good}, now: 200, want: shim.Actions{Done: true}},
		"a sidecar that could not start is let be":               {containers: [5]shimapi.ContainerStatus{good, unable(), good, good, good}, now: 200, want: shim.Actions{Done: true}},
		"a sidecar that was killed for its lateness is let be":   {containers: [5]shimapi.ContainerStatus{good, killed(termed(signaled(9), 0), 40), good, good, good}, now: 200, want: shim.Actions{Done: true}},
		"a stopped pod's mains are told to end first":            {containers: [5]shimapi.ContainerStatus{good, runs(), good, runs(), runs()}, stopped: 60, now: 60, want: shim.Actions{Term: []int{3, 4}}},
		"and have the pod's grace":                               {containers: [5]shimapi.ContainerStatus{good, runs(), good, termed(runs(), 60), termed(runs(), 60)}, stopped: 60, now: 100, want: shim.Actions{Wake: at(10060)}},
		"and are killed then":                                    {containers: [5]shimapi.ContainerStatus{good, runs(), good, termed(runs(), 60), termed(runs(), 60)}, stopped: 60, now: 10060, want: shim.Actions{Kill: []int{3, 4}}},
		"then its sidecars":                                      {containers: [5]shimapi.ContainerStatus{good, runs(), good, signaled(15), signaled(9)}, stopped: 60, now: 70, want: shim.Actions{Term: []int{1}}},
		"which have what is left of the grace":                   {containers: [5]shimapi.ContainerStatus{good, termed(runs(), 70), good, signaled(15), signaled(9)}, stopped: 60, now: 80, want: shim.Actions{Wake: at(10060)}},
		"and never less than a moment":                           {containers: [5]shimapi.ContainerStatus{good, termed(runs(), 10050), good, signaled(15), signaled(9)}, stopped: 60, now: 10060, want: shim.Actions{Wake: at(12050)}},
		"a pod that is stopped while it begins begins no more":   {containers: [5]shimapi.ContainerStatus{runs()}, stopped: 60, now: 60, want: shim.Actions{Term: []int{0}}},
		"a pod that is stopped before it begins is over":         {stopped: 60, now: 60, want: shim.Actions{Done: true}},
		"the deadline does not pass twice":                       {containers: [5]shimapi.ContainerStatus{good, good, good, signaled(15), good}, stopped: 500, deadline: 500, now: 501, want: shim.Actions{Done: true}},
		"the deadline means nothing to a pod that is at its end": {containers: [5]shimapi.ContainerStatus{good, termed(runs(), 60), good, good, good}, deadline: 20000, now: 100, want: shim.Actions{Wake: at(10060)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := pod(), shimapi.State{Containers: test.containers[:]}
			p.Containers[1].RunsPodBinary = test.ours
			if test.grace > 0 {
				p.Grace = test.grace
			}
			p.SidecarGrace = test.owed
			if test.stopped > 0 {
				s.Stopped = at(test.stopped)
			}
			if test.deadline > 0 {
				p.Deadline = at(test.deadline)
			}
			if diff := cmp.Diff(test.want, shim.Decide(p, s, at(test.now))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever containers do, a stopped pod ends in time: its grace, and a moment for each sidecar.
func TestEveryPodThatIsStoppedIsOverInTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, s := pod(), shimapi.State{Containers: make([]shimapi.ContainerStatus, 5)}
		now := t0
		stop := rapid.IntRange(0, 30).Draw(t, "stop")
		for step := 0; ; step++ {
			if step == stop {
				s.Stopped = now
			}
			if !s.Stopped.IsZero() && now.After(s.Stopped.Add(p.Grace+3*time.Second)) {
				t.Fatalf("not over %s after it was stopped: %+v", now.Sub(s.Stopped), s)
			}
			plan := shim.Decide(p, s, now)
			if plan.Done {
				return
			}
			now = act(t, &s, plan, now)
		}
	})
}

// act carries out actions, and lets containers end or not.
func act(t *rapid.T, s *shimapi.State, actions shim.Actions, now time.Time) time.Time {
	for _, i := range actions.Start {
		if s.Containers[i].Running() {
			t.Fatalf("container %d is started while it runs", i)
		}
		s.Containers[i] = shimapi.ContainerStatus{PID: 9, Started: now, Restarts: s.Containers[i].Restarts + 1}
	}
	for _, i := range actions.Term {
		s.Containers[i].TermSentAt = now
	}
	for _, i := range actions.Kill {
		endPod(&s.Containers[i], 137, 9, now)
		s.Containers[i].KillSentAt = now
	}
	for i := range s.Containers {
		if st := &s.Containers[i]; st.Running() && rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
			endPod(st, rapid.SampledFrom([]int{0, 0, 1, 137, 143}).Draw(t, "code"), 0, now)
		}
	}
	if actions.Wake.After(now) {
		return actions.Wake
	}
	return now.Add(100 * time.Millisecond)
}

func endPod(st *shimapi.ContainerStatus, code, signal int, now time.Time) {
	st.PID, st.Termination = 0, &shimapi.Termination{Code: code, Signal: signal, Started: st.Started, Ended: now}
}
