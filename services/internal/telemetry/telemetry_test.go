package telemetry_test

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/internal/telemetry"
	"github.com/benchmark-ai/bai/services/internal/telemetrytest"
)

func TestPrometheusReadsWhatWentThrough(t *testing.T) {
	tell, err := telemetry.New(t.Context(), telemetry.Settings{}, "fetcher", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	tell.RecordHandled("fetcher", "bai.submitted", 3, 2*time.Millisecond, nil)
	tell.RecordHandled("fetcher", "bai.submitted", 1, time.Millisecond, errors.New("the store is away"))
	tell.RecordPublished("bai.fetched", 2)
	tell.RecordPublished("bai.dead", 1)
	tell.RecordRetry("fetcher bai.submitted", "handle")
	tell.RecordLag("fetcher", "bai.submitted", map[int]int64{4: 11, 5: 12})
	tell.RecordLag("executor", "bai.submitted", map[int]int64{5: 13})
	tell.RecordLag("fetcher", "bai.submitted", map[int]int64{4: 17}) // the other partition moved away
	tell.Copied("folder", 5, 1)
	tell.RecordIncidents(map[string]int{"suspected": 1})
	tell.RecordIncidents(map[string]int{"firing": 2})
	tell.RecordNotice("perf-team", "sent")
	tell.RecordWaiting("perf-team", time.Minute)
	tell.RecordWaiting("oncall", time.Minute)
	tell.RecordWaiting("oncall", -1) // another process sends to it now
	counted := tell.Store(failingStore{storetest.Open(t)})
	tell.Runs(counted)
	putRuns(t, counted)
	answer := httptest.NewRecorder()
	tell.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`bai_events_heard_total{group="fetcher",topic="bai.submitted"} 3`,
		`bai_handling_failures_total{group="fetcher",topic="bai.submitted"} 1`,
		`bai_events_said_total{topic="bai.fetched"} 2`,
		`bai_events_said_total{topic="bai.dead"} 1`,
		`bai_retries_total{part="fetcher bai.submitted",step="handle"} 1`,
		`bai_consumer_lag{group="fetcher",partition="4",topic="bai.submitted"} 17`, `bai_consumer_lag{group="executor",partition="5",topic="bai.submitted"} 13`,
		`bai_handling_seconds_bucket{group="fetcher",topic="bai.submitted",le="0.002"} 1`,
		`bai_sink_copied_total{became="taken",sink="folder"} 5`, `bai_sink_copied_total{became="refused",sink="folder"} 1`,
		`bai_incidents{state="firing"} 2`, `bai_notices_total{became="sent",receiver="perf-team"} 1`, `bai_notice_waiting_seconds{receiver="perf-team"} 60`,
		`bai_store_errors_total{kind="away",verb="get"} 1`, `bai_store_errors_total{kind="refused",verb="append samples"} 1`,
		`bai_store_seconds_count{verb="put run"} 3`, `bai_runs{phase="queued"} 1`, `bai_runs{phase="running"} 0`, `bai_runs{phase="finished"} 1`,
		`bai_runs_ended{outcome="failed"} 1`, `bai_runs_ended{outcome="succeeded"} 0`,
		"process_resident_memory_bytes", "go_goroutines",
	} {
		if !strings.Contains(answer.Body.String(), want+"\n") && !strings.Contains(answer.Body.String(), want+" ") {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, gone := range []string{`bai_consumer_lag{group="fetcher",partition="5"`, `state="suspected"`, `receiver="oncall"`} {
		if strings.Contains(answer.Body.String(), gone) {
			t.Errorf("metrics still have %s", gone)
		}
	}
	if err := tell.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// failingStore is a store that cannot read documents.
type failingStore struct{ *sqlite.Store }

// Doc implements store.Docs.
func (failingStore) Doc(context.Context, store.Kind, string) (store.Doc, error) {
	return store.Doc{}, errors.New("no route to host")
}

// putRuns stores two runs, and makes requests that a store refuses or fails.
func putRuns(t *testing.T, s *telemetry.Store) {
	t.Helper()
	queued, first := storetest.NewRun("r1", time.Unix(1, 0).UTC())
	queued.Phase = event.PhaseQueued
	ended, second := storetest.NewRun("r2", time.Unix(1, 0).UTC())
	ended.Phase, ended.Outcome = event.PhaseFinished, event.Failed
	if err := errors.Join(s.PutRun(t.Context(), queued, first), s.PutRun(t.Context(), ended, second)); err != nil {
		t.Fatal(err)
	}
	if err := s.PutRun(t.Context(), queued, first); !errors.Is(err, store.ErrExists) {
		t.Errorf("the same again: %v", err)
	}
	if _, err := s.Doc(t.Context(), store.KindPlan, "x"); err == nil {
		t.Error("it has read what cannot be read")
	}
	if err := s.AppendSamples(t.Context(), []store.Samples{{}}); !errors.Is(err, store.ErrRefused) {
		t.Errorf("samples of nobody: %v", err)
	}
}

func TestARunHasOneTraceWhoeverWorksOnIt(t *testing.T) {
	collector := telemetrytest.Start(t)
	root := kafka.RootTrace("r1")
	first := runSpan(t, collector, kafka.Span{Name: "gateway", Run: "r1", Parent: root, Topic: "bai.submitted", Events: 1, Root: true})
	runSpan(t, collector, kafka.Span{Name: "fetcher", Run: "r1", Parent: first, Topic: "bai.submitted", Group: "fetcher", Events: 1})
	spans := collector.Spans("r1")
	if len(spans) != 2 {
		t.Fatalf("%d spans, want 2", len(spans))
	}
	parts := strings.Split(root, "-")
	if id := hex.EncodeToString(spans[0].GetSpanId()); first != root || id != parts[2] || len(spans[0].GetParentSpanId()) > 0 {
		t.Errorf("the first span is %s below %x and is followed by %s, want %s below none", id, spans[0].GetParentSpanId(), first, root)
	}
	for _, s := range spans {
		if id := hex.EncodeToString(s.GetTraceId()); id != parts[1] {
			t.Errorf("%s is of trace %s, want %s", s.GetName(), id, parts[1])
		}
	}
	if tree := telemetrytest.Tree(spans); !strings.HasPrefix(tree, "gateway  ") || !strings.Contains(tree, "\n  fetcher  ") {
		t.Errorf("tree:\n%s\nwant the fetcher below the gateway", tree)
	}
}

// runSpan traces one piece of work in a process of its own, and returns the traceparent
// of its successor.
func runSpan(t *testing.T, collector *telemetrytest.Collector, s kafka.Span) string {
	t.Helper()
	tell, err := telemetry.New(t.Context(), telemetry.Settings{Traces: collector.URL}, s.Name, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	next, end := tell.Begin(s)
	end(nil)
	if err := tell.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return next
}

func TestWithoutACollectorATraceGoesOnAsItIs(t *testing.T) {
	tell, err := telemetry.New(t.Context(), telemetry.Settings{}, "fetcher", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if next, end := tell.Begin(kafka.Span{Parent: "00-a-b-01"}); next != "00-a-b-01" {
		t.Errorf("goes on as %q", next)
	} else {
		end(errors.New("failed"))
	}
}

func TestACollectorThatIsAwayHoldsUpNobody(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	tell, err := telemetry.New(t.Context(), telemetry.Settings{Traces: "http://127.0.0.1:1"}, "fetcher", zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for range 5000 { // more than are kept
		_, end := tell.Begin(kafka.Span{Name: "x", Run: "r1", Parent: kafka.RootTrace("r1"), Events: 1})
		end(nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = tell.Close(ctx) // whether it sees that the last ones are lost depends on when
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	if n := logs.FilterMessage("traces are lost").Len(); n != 1 {
		t.Errorf("said %d times that traces are lost, want once", n)
	}
}

func TestOnlyAURLIsACollector(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "http://127.0.0.1:4318": true, "https://collector.example.org/v1/traces": true,
		"127.0.0.1:4318": false, "grpc://collector:4317": false, "http://user:secret@collector": false, "http://": false,
	} {
		if err := (telemetry.Settings{Traces: text}).Validate(); (err == nil) != ok {
			t.Errorf("%q: %v, want fine: %t", text, err, ok)
		}
	}
}
