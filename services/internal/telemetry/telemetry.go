// Package telemetry exports the state of a process to its operators: metrics for
// Prometheus, and traces for OpenTelemetry.
package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/kafka"
)

// Settings name the receiver of traces. Metrics are always served.
type Settings struct {
	// URL of an OpenTelemetry collector that takes OTLP over HTTP, as http://127.0.0.1:4318; empty means that nothing is traced
	Traces string `toml:"traces"`
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	if s.Traces == "" {
		return nil
	}
	u, err := url.Parse(s.Traces)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return errors.New("telemetry.traces: want the URL of a collector, as http://127.0.0.1:4318, without a password")
	}
	return nil
}

// Telemetry counts and traces the work of a process. It implements kafka.Meter and
// kafka.Tracer, and may be used by several goroutines.
type Telemetry struct {
	registry  *prometheus.Registry
	consumed  *prometheus.CounterVec
	failures  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	published *prometheus.CounterVec
	retries   *prometheus.CounterVec
	refused   *prometheus.CounterVec
	lag       *prometheus.GaugeVec
	copied    *prometheus.CounterVec
	notice    noticeStats

	lagMu sync.Mutex
	lags  map[[2]string][]int // partitions of a group and topic that lag names

	provider *sdk.TracerProvider // nil where nothing is traced
	tracer   trace.Tracer
}

// New returns the telemetry of a service. Where a collector is away spans are
// lost, which is logged once, and nothing waits for it.
func New(ctx context.Context, s Settings, service string, log *zap.Logger) (*Telemetry, error) {
	t := &Telemetry{
		registry:  prometheus.NewRegistry(),
		consumed:  counter("bai_events_heard_total", "Events that were handled.", "group", "topic"),
		failures:  counter("bai_handling_failures_total", "Times that handling failed, and was tried again or given up.", "group", "topic"),
		published: counter("bai_events_said_total", "Events that were published; those to bai.dead are dead letters.", "topic"),
		retries:   counter("bai_retries_total", "Times that something failed which is tried again.", "part", "step"),
		refused: counter("bai_messages_refused_total", "Messages that lacked the seal or the token of their run, and were not handled.",
			"group", "topic"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bai_handling_seconds", Help: "How long it took to handle the events that were handed over at once.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"group", "topic"}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bai_consumer_lag",
			Help: "Events of a partition that this process reads and has not handled yet; absent while that is not known.",
		}, []string{"group", "topic", "partition"}),
		copied: counter("bai_sink_copied_total", "Samples, and ends of runs, that a sink has taken, or refused for good.", "sink",
			"became"),
		lags:   make(map[[2]string][]int),
		tracer: noop.NewTracerProvider().Tracer(""),
	}
	t.registry.MustRegister(t.consumed, t.failures, t.published, t.retries, t.refused, t.duration, t.lag, t.copied,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t.notice = newNoticeStats(t.registry)
	if s.Traces == "" {
		return t, nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(s.Traces), otlptracehttp.WithTimeout(5*time.Second))
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", s.Traces, err)
	}
	var once sync.Once
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { // of the process: the exporter has no other
		once.Do(func() { log.Warn("traces are lost", zap.String("collector", s.Traces), zap.Error(err)) })
	}))
	t.provider = sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithIDGenerator(ids{}),
		sdk.WithResource(resource.NewSchemaless(semconv.ServiceName(service))))
	t.tracer = t.provider.Tracer("github.com/benchmark-ai/bai/services")
	return t, nil
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Close sends the spans that are ended, as long as ctx lasts.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// Handler answers Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{Registry: t.registry})
}

// Register adds numbers of a part of the process.
func (t *Telemetry) Register(c prometheus.Collector) error {
	if err := t.registry.Register(c); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	return nil
}

// RecordHandled implements kafka.Meter.
func (t *Telemetry) RecordHandled(group, topic string, events int, took time.Duration, err error) {
	if err != nil {
		t.failures.WithLabelValues(group, topic).Inc()
		return
	}
	t.consumed.WithLabelValues(group, topic).Add(float64(events))
	t.duration.WithLabelValues(group, topic).Observe(took.Seconds())
}

// RecordPublished implements kafka.Meter.
func (t *Telemetry) RecordPublished(topic string, events int) {
	t.published.WithLabelValues(topic).Add(float64(events))
}

// RecordRetry implements kafka.Meter.
func (t *Telemetry) RecordRetry(part, step string) { t.retries.WithLabelValues(part, step).Inc() }

// RecordRefused implements kafka.RefusalMeter.
func (t *Telemetry) RecordRefused(group, topic string) { t.refused.WithLabelValues(group, topic).Inc() }

// RecordLag implements kafka.Meter.
func (t *Telemetry) RecordLag(group, topic string, behind map[int]int64) {
	t.lagMu.Lock()
	defer t.lagMu.Unlock()
	key := [2]string{group, topic}
	for _, partition := range t.lags[key] {
		if _, still := behind[partition]; !still {
			t.lag.DeleteLabelValues(group, topic, strconv.Itoa(partition))
		}
	}
	for partition, events := range behind {
		t.lag.WithLabelValues(group, topic, strconv.Itoa(partition)).Set(float64(events))
	}
	t.lags[key] = slices.Collect(maps.Keys(behind))
}

// Copied implements sink.Meter.
func (t *Telemetry) Copied(sink string, taken, refused int) {
	t.copied.WithLabelValues(sink, "taken").Add(float64(taken))
	t.copied.WithLabelValues(sink, "refused").Add(float64(refused))
}

// Begin implements kafka.Tracer.
func (t *Telemetry) Begin(s kafka.Span) (string, func(error)) {
	if t.provider == nil {
		return s.Parent, func(error) {}
	}
	parent := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": s.Parent})
	kind, ctx := trace.SpanKindConsumer, parent
	if s.Group == "" {
		kind = trace.SpanKindProducer
	}
	if s.Root {
		ctx = context.WithValue(context.Background(), rootKey{}, trace.SpanContextFromContext(parent))
	}
	ctx, span := t.tracer.Start(ctx, s.Name, trace.WithSpanKind(kind), trace.WithAttributes(
		attribute.String("bai.run", s.Run), semconv.MessagingDestinationName(s.Topic), semconv.MessagingSystemKafka,
		semconv.MessagingBatchMessageCount(s.Events),
	))
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"], func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// rootKey is where a context carries the span context of a run's first span.
type rootKey struct{}

// ids gives spans random IDs, but the first of a run the one that everybody knows
// it by.
type ids struct{}

// NewIDs implements sdk.IDGenerator.
func (i ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if root, ok := ctx.Value(rootKey{}).(trace.SpanContext); ok && root.IsValid() {
		return root.TraceID(), root.SpanID()
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails
	return id, i.NewSpanID(ctx, id)
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	_, _ = rand.Read(id[:]) // never fails
	return id
}
