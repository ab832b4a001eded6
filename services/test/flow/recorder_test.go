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
	analystService  = "analyst"
	recordService   = "gateway record"
)

// topicRecorder notes which topics each service hears, and which it was heard on.
type topicRecorder struct {
	mu        sync.Mutex
	consumed  map[string][]string
	published map[string][]string
}

func newTopicRecorder() *topicRecorder {
	return &topicRecorder{consumed: make(map[string][]string), published: make(map[string][]string)}
}

func (b *topicRecorder) recordConsumed(name, topic string) { b.record(b.consumed, name, topic) }

func (b *topicRecorder) recordPublished(name string, events []event.Event) {
	for _, ev := range events {
		b.record(b.published, name, ev.Topic())
	}
}

func (b *topicRecorder) record(in map[string][]string, name, topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(in[name], topic) {
		in[name] = append(in[name], topic)
	}
}

// topicsOf returns the recorded topics of a service, in the order of the flow.
func (b *topicRecorder) topicsOf(name string) serviceTopics {
	b.mu.Lock()
	defer b.mu.Unlock()
	return serviceTopics{Consumes: inOrder(b.consumed[name]), Publishes: inOrder(b.published[name])}
}

// inOrder returns topics in the order of the flow.
func inOrder(topics []string) []string {
	return slices.DeleteFunc(event.Topics(), func(t string) bool { return !slices.Contains(topics, t) })
}

// recordingBus is one service's bus: it records the topics that the service consumes and
// publishes.
type recordingBus struct {
	bus      *eventtest.Bus
	recorder *topicRecorder
	name     string
	consumer string // the consumer, if that is another; empty means name
}

// Consume records consumed topics, and the topics of the answers.
func (v recordingBus) Consume(group string, step service.Step) service.Runnable {
	name := v.name
	if v.consumer != "" {
		name = v.consumer
	}
	v.recorder.recordConsumed(name, step.Topic)
	handle := step.Handle
	step.Handle = func(ctx context.Context, ms []event.Message) ([]event.Event, error) {
		out, err := handle(ctx, ms)
		v.recorder.recordPublished(name, out)
		return out, err
	}
	return v.bus.Consume(group, step)
}

// Publish records published topics.
func (v recordingBus) Publish(ctx context.Context, events ...event.Event) error {
	name := v.name
	if service, ok := ctx.Value(serviceKey{}).(string); ok {
		name = service
	}
	v.recorder.recordPublished(name, events)
	return v.bus.Publish(ctx, events...)
}

// serviceKey is the context key for the name of the service, where one service of the
// table is only some of the runnables.
type serviceKey struct{}

// asService returns part, known by another name.
func asService(name string, part service.Runnable) service.Runnable {
	return func(ctx context.Context) error { return part(context.WithValue(ctx, serviceKey{}, name)) }
}
