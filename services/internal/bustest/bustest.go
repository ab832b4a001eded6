// Package bustest has the contract of a bus as a suite that every bus passes, the one in memory and the real one.
package bustest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Bus carries events between services.
type Bus interface {
	// Consume returns a runnable that passes the events of the topic of step to step, at least once, those of one run in their order, and
	// publishes the events that step returns. Every group gets every event; runnables of one group may share them.
	Consume(group string, step service.Step) service.Runnable
	// Publish returns when the events are safe, or with event.ErrPoison if they can never be published.
	Publish(ctx context.Context, events ...event.Event) error
}

// Run checks that the buses that open returns, each of them empty, fulfil the contract.
func Run(t *testing.T, open func(t *testing.T) Bus) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, b Bus){
		"every group gets every event, and the answers are published": testAnswers,
		"a step takes as many events at once as it may":               testBatches,
		"events of one run stay in order":                             testOrder,
		"steps and others may publish at any time":                    testPublishers,
		"what cannot be written is refused":                           testRefused,
		"publish ends with its context":                               testDone,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, open(t)) })
	}
}

func testAnswers(t *testing.T, b Bus) {
	t.Helper()
	var statuses, commands ids
	for _, group := range []string{"one", "two"} {
		run(t, b.Consume(group, service.On(func(_ context.Context, s event.Status) ([]event.Event, error) {
			statuses.add(group + " " + s.Message)
			return []event.Event{event.Command{Header: s.Cause(group, ""), Kind: event.CommandCancel}}, nil
		})))
	}
	run(t, b.Consume("three", service.On(func(_ context.Context, c event.Command) ([]event.Event, error) {
		commands.add(c.ID)
		return nil, nil
	})))
	first, second := status("r1", "a"), status("r2", "b")
	publish(t, b, first, second)
	statuses.want(t, "one a", "one b", "two a", "two b")
	commands.want(t, first.Cause("one", "").ID, first.Cause("two", "").ID, second.Cause("one", "").ID, second.Cause("two", "").ID)
}

func testBatches(t *testing.T, b Bus) {
	t.Helper()
	const most = 3
	var got ids
	run(t, b.Consume("g", service.Batch(most, func(_ context.Context, evs []event.Status) ([]event.Event, error) {
		if len(evs) < 1 || len(evs) > most {
			t.Errorf("a batch of %d events, want 1 to %d", len(evs), most)
		}
		for _, ev := range evs {
			got.add(ev.Message)
		}
		return nil, nil
	})))
	var want []string
	for i := range 10 {
		publish(t, b, status("r1", fmt.Sprint(i)))
		want = append(want, fmt.Sprint(i))
	}
	got.want(t, want...)
}

func testOrder(t *testing.T, b Bus) {
	t.Helper()
	const runs, each = 5, 40
	var mu sync.Mutex
	received := make(map[string][]string) // by run, each event once
	var all ids
	run(t, b.Consume("g", service.Batch(7, func(_ context.Context, evs []event.Status) ([]event.Event, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, ev := range evs {
			if !slices.Contains(received[ev.Run], ev.Message) {
				received[ev.Run] = append(received[ev.Run], ev.Message)
			}
			all.add(ev.ID)
		}
		return nil, nil
	})))
	var want []string
	for i := range each {
		var evs []event.Event
		for r := range runs {
			ev := status(fmt.Sprint("r", r), fmt.Sprintf("%02d", i))
			evs, want = append(evs, ev), append(want, ev.ID)
		}
		publish(t, b, evs...)
	}
	all.want(t, want...)
	mu.Lock()
	defer mu.Unlock()
	for run, messages := range received {
		if !slices.IsSorted(messages) {
			t.Errorf("the events of %s came as %q", run, messages)
		}
	}
}

func testPublishers(t *testing.T, b Bus) {
	t.Helper()
	var got ids
	run(t, b.Consume("one", service.On(func(ctx context.Context, s event.Status) ([]event.Event, error) {
		return nil, b.Publish(ctx, event.Command{Header: s.Cause("cancel", ""), Kind: event.CommandCancel})
	})))
	run(t, b.Consume("two", service.On(func(_ context.Context, c event.Command) ([]event.Event, error) {
		got.add(c.Run)
		return nil, nil
	})))
	var publishers sync.WaitGroup
	var want []string
	for i := range 10 {
		id := fmt.Sprint("r", i)
		want = append(want, id)
		publishers.Go(func() { publish(t, b, status(id, "hello")) })
	}
	publishers.Wait()
	got.want(t, want...)
}

func testRefused(t *testing.T, b Bus) {
	t.Helper()
	if err := b.Publish(t.Context(), event.Status{}); !errors.Is(err, event.ErrPoison) {
		t.Errorf("Publish: %v, want poison", err)
	}
}

func testDone(t *testing.T, b Bus) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Publish(ctx, status("r1", "a")); !errors.Is(err, context.Canceled) {
		t.Errorf("Publish: %v, want %v", err, context.Canceled)
	}
}

// ids are the different IDs that steps have received.
type ids struct {
	mu  sync.Mutex
	got map[string]bool
}

func (i *ids) add(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.got == nil {
		i.got = make(map[string]bool)
	}
	i.got[id] = true
}

func (i *ids) sorted() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Sorted(maps.Keys(i.got))
}

// want waits until the same number of IDs has come, and compares them.
func (i *ids) want(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	for end := time.Now().Add(5 * time.Minute); len(i.sorted()) < len(want) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if diff := cmp.Diff(want, i.sorted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func status(run, message string) event.Status {
	h := event.NewHeader(event.Derive(run, message), run, "pets", "ann", time.Unix(0, 0).UTC())
	return event.Status{Header: h, Phase: event.PhaseRunning, Message: message}
}

func publish(t *testing.T, b Bus, events ...event.Event) {
	t.Helper()
	if err := b.Publish(t.Context(), events...); err != nil {
		t.Error(err)
	}
}

// run runs a part of a service until the test ends.
func run(t *testing.T, part service.Runnable) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("stopped with %v, want nil", err)
		}
	})
}
