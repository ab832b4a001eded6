package flow_test

import (
	"context"
	"slices"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// Services, as the table calls them.
const (
	gatewayService  = "gateway"
	fetcherService  = "fetcher"
	executorService = "executor"
	pullerService   = "puller"
	watcherService  = "watcher"
	collectService  = "metrics-pusher collect"
	indexService    = "metrics-pusher index"
	summaryService  = "metrics-pusher summarise"
	recordService   = "gateway record"
)

// book notes which topics each service hears, and which it was heard on.
type book struct {
	mu    sync.Mutex
	hears map[string][]string
	says  map[string][]string
}

func newBook() *book {
	return &book{hears: make(map[string][]string), says: make(map[string][]string)}
}

func (b *book) heard(name, topic string) { b.note(b.hears, name, topic) }

func (b *book) said(name string, events []event.Event) {
	for _, ev := range events {
		b.note(b.says, name, ev.Topic())
	}
}

func (b *book) note(in map[string][]string, name, topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(in[name], topic) {
		in[name] = append(in[name], topic)
	}
}

// row returns what is noted of a service, topics in the order of the flow.
func (b *book) row(name string) row {
	b.mu.Lock()
	defer b.mu.Unlock()
	return row{Hears: inOrder(b.hears[name]), Says: inOrder(b.says[name])}
}

// inOrder returns topics in the order of the flow.
func inOrder(topics []string) []string {
	return slices.DeleteFunc(event.Topics(), func(t string) bool { return !slices.Contains(topics, t) })
}

// voice is the bus as one service knows it: what it hears and says is noted.
type voice struct {
	bus  *eventtest.Bus
	book *book
	name string
	ears string // who hears, where that is another; empty means name
}

// Consume notes what is heard, and what is answered to it.
func (v voice) Consume(group string, step service.Step) service.Part {
	name := v.name
	if v.ears != "" {
		name = v.ears
	}
	v.book.heard(name, step.Topic)
	handle := step.Handle
	step.Handle = func(ctx context.Context, ms []event.Message) ([]event.Event, error) {
		out, err := handle(ctx, ms)
		v.book.said(name, out)
		return out, err
	}
	return v.bus.Consume(group, step)
}

// Publish notes what is said.
func (v voice) Publish(ctx context.Context, events ...event.Event) error {
	name := v.name
	if as, ok := ctx.Value(speaker{}).(string); ok {
		name = as
	}
	v.book.said(name, events)
	return v.bus.Publish(ctx, events...)
}

// speaker is the key under which a part's context says who it is, where one
// service of the table is only some parts of what runs.
type speaker struct{}

// as returns part, known by another name.
func as(name string, part service.Part) service.Part {
	return func(ctx context.Context) error { return part(context.WithValue(ctx, speaker{}, name)) }
}
