package bai_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const (
	cuts   = 100
	events = 4000
)

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

func TestEveryChangeComesOnceThoughConnectionsBreak(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Name: "n", Owner: "ann"})
	network := baitest.Break(t, p.Addr(), cuts, 900)
	go func() { // some before the watch begins, some while it goes on
		for range events - 1 {
			p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
		}
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
	}()
	var got []int
	for _, change := range collect(t, dial(t, network.Addr(), fastSettings()).Watch(testContext(t), "n", 0)) {
		got = append(got, int(change.GetRevision()))
	}
	wantEachOnce(t, numbers(events), got, network)
}

func TestEveryLineComesOnceThoughConnectionsBreak(t *testing.T) {
	for name, follow := range map[string]bool{"following": true, "reading what is there": false} {
		t.Run(name, func(t *testing.T) {
			p := baitest.Start(t)
			id := p.Add(&baiv1.Run{})
			write := func() {
				for _, text := range words(events) {
					p.Log(id, &baiv1.LogLine{Text: text})
				}
				p.SetCompleteness(id, &baiv1.Completeness{Complete: true})
			}
			if follow {
				go write()
			} else {
				write()
			}
			network := baitest.Break(t, p.Addr(), cuts, 900)
			var got []string
			for _, line := range collect(t, dial(t, network.Addr(), fastSettings()).Logs(testContext(t), id, bai.LogOptions{Follow: follow})) {
				got = append(got, line.GetText())
			}
			wantEachOnce(t, words(events), got, network)
		})
	}
}

// busy is the answer of a platform at a limit, which asks to try again soon.
func busy() error {
	return baitest.Status(codes.ResourceExhausted, "too many", &errdetails.RetryInfo{RetryDelay: durationpb.New(20 * time.Millisecond)})
}

func TestAPlatformAtALimitIsAskedAgainWhenItSays(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Name: "n", Owner: "ann"})
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
	p.Log(id, &baiv1.LogLine{Text: "x"})
	p.SetCompleteness(id, &baiv1.Completeness{Complete: true})
	for _, method := range []string{"GetRun", "WatchRun", "StreamLogs"} {
		p.Fail(method, busy(), busy())
	}
	c, begin := dial(t, p.Addr(), fastSettings()), time.Now()
	if _, err := c.Get(testContext(t), id); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("asked again after %s, want 20 ms each time", took)
	}
	if got := collect(t, c.Watch(testContext(t), id, 0)); len(got) != 1 {
		t.Errorf("%d changes, want 1", len(got))
	}
	if got := collect(t, c.Logs(testContext(t), id, bai.LogOptions{Follow: true})); len(got) != 1 {
		t.Errorf("%d lines, want 1", len(got))
	}
}

func TestAPlatformThatStaysAtALimitIsUnavailable(t *testing.T) {
	p := baitest.Start(t)
	p.Fail("GetRun", baitest.Status(codes.ResourceExhausted, "the disk is full", &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)}))
	settings := fastSettings()
	settings.RetryTimeout = time.Second
	_, err := dial(t, p.Addr(), settings).Get(testContext(t), "x")
	want := &bai.UnavailableError{Target: p.Addr(), Reason: "ResourceExhausted", Message: "the disk is full", RetryAfter: time.Minute}
	if diff := cmp.Diff(want, errors.Unwrap(err)); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// wantEachOnce checks that everything came once though every connection was cut that
// was to be.
func wantEachOnce[T any](t *testing.T, want, got []T, network *baitest.Network) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if network.Cuts() != cuts {
		t.Errorf("%d connections were cut, want %d", network.Cuts(), cuts)
	}
}

func words(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i + 1)
	}
	return all
}

func TestEverySampleComesOnceThoughConnectionsBreak(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	for i := range events {
		p.Sample(id, &baiv1.Sample{Metric: "m", Value: float64(i + 1)})
	}
	network := baitest.Break(t, p.Addr(), cuts, 900)
	samples := dial(t, network.Addr(), fastSettings()).Metrics(testContext(t), id)
	for range 2 { // the second time from the beginning again
		var got []int
		for _, s := range collect(t, samples) {
			got = append(got, int(s.GetValue()))
		}
		wantEachOnce(t, numbers(events), got, network)
	}
}

func TestAWatchOutlivesPatience(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
	network := baitest.Break(t, p.Addr(), 0, 0)
	s := fastSettings()
	s.RetryTimeout = 10 * time.Millisecond
	losses := make(chan error, 1000)
	s.Lost = func(err error) { losses <- err }
	done := make(chan []int)
	go func() {
		var got []int
		for change, err := range dial(t, network.Addr(), s).Watch(testContext(t), id, 0) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, int(change.GetRevision()))
			if change.GetRevision() == 1 {
				network.Down()
			}
		}
		done <- got
	}()
	for range 10 {
		if err := <-losses; err == nil {
			t.Error("Lost was told nothing")
		}
	}
	network.Up()
	p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED})
	if diff := cmp.Diff([]int{1, 2}, <-done); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

func TestAReaderThatHasEnoughEndsItsStream(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	for range 20 {
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
		p.Log(id, &baiv1.LogLine{})
	}
	c := dial(t, p.Addr(), fastSettings())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range c.Watch(ctx, id, 0) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	for _, err := range c.Logs(ctx, id, bai.LogOptions{Follow: true}) {
		if err != nil {
			t.Error(err)
		}
		cancel() // both at once
		break
	}
}

func TestARevisionThatIsMissingIsAnError(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	for range 3 {
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
	}
	p.DropChange(id, 2)
	var got []int
	var last error
	for change, err := range dial(t, p.Addr(), fastSettings()).Watch(testContext(t), id, 0) {
		if last = err; err == nil {
			got = append(got, int(change.GetRevision()))
		}
	}
	if e, ok := errors.AsType[*bai.ServerError](last); !ok || len(got) != 1 {
		t.Errorf("got %v, then %v, want revision 1 and a ServerError", got, e)
	}
}

func TestWaitReturnsTheRunAfterItsEnd(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{})
	p.Fail("WatchRun", baitest.Status(codes.Canceled, "shutting down"))
	go func() {
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_FAILED})
	}()
	run, err := dial(t, p.Addr(), fastSettings()).Wait(testContext(t), id)
	if err != nil || run.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED {
		t.Errorf("Wait: %v, %v", run, err)
	}
}

func TestWaitDataReturnsWhatIsKnownWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Completeness: &baiv1.Completeness{Awaited: []string{"metrics of pod 0"}}})
	c := dial(t, p.Addr(), fastSettings())
	short, cancel := context.WithTimeout(t.Context(), 8*time.Second) // enough for a first answer
	defer cancel()
	run, err := c.WaitData(short, id)
	if !errors.Is(err, context.DeadlineExceeded) || len(run.GetCompleteness().GetAwaited()) != 1 {
		t.Errorf("WaitData: %v, %v", run, err)
	}
	p.SetCompleteness(id, &baiv1.Completeness{Complete: true, Samples: 3})
	if run, err := c.WaitData(testContext(t), id); err != nil || run.GetCompleteness().GetSamples() != 3 {
		t.Errorf("WaitData: %v, %v", run, err)
	}
}
