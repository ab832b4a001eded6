package gateway_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

const descriptor = `spec_version = "0.1.0"
[info]
description = "hello"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "alpine"
[ml]
benchmark_code = "echo hello"
`

// start runs the service on a store and a bus, and returns a client of it.
func start(t *testing.T, s gateway.Settings, st gateway.Store, bus gateway.Bus) baiv1.RunServiceClient {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	parts := gateway.New(s, gateway.Deps{Bus: bus, Store: st, Listener: l, Entropy: rand.Reader, Log: zap.NewNop()})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	for name, part := range parts {
		wg.Go(func() {
			if err := part(ctx); err != nil {
				t.Errorf("%s stopped with %v, want nil", name, err)
			}
		})
	}
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		stop()
		wg.Wait()
	})
	return baiv1.NewRunServiceClient(conn)
}

func open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "bai.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fakePlatform publishes the events that the other services would publish for each
// submitted run.
func fakePlatform(bus *eventtest.Bus) {
	bus.Consume("platform", service.On(func(_ context.Context, sub event.Submitted) ([]event.Event, error) {
		h := sub.Header
		return []event.Event{
			event.Status{Header: h.Cause("status", "fetching"), Phase: event.PhaseFetching, Message: "0 of 1"},
			event.Fetched{Header: h.Cause("fetched", ""), Descriptor: sub.Descriptor, Data: []event.Data{}},
			event.Launched{Header: h.Cause("launched", ""), Cluster: "local", Scope: "default", Job: "job"},
			event.Status{Header: h.Cause("status", "running"), Phase: event.PhaseRunning, Message: "runs"},
			event.Finished{Header: h.Cause("finished", ""), Outcome: event.Succeeded, Message: "done"},
		}, nil
	}))
}

func TestARunIsSubmittedWatchedAndOver(t *testing.T) {
	st, bus := open(t), eventtest.NewBus(t)
	fakePlatform(bus)
	client := start(t, gateway.Settings{}, st, bus)
	var ids []string
	for range 5 {
		resp, err := client.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(descriptor)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, resp.GetRunId())
	}
	for _, id := range ids {
		if diff := cmp.Diff([]string{
			"PHASE_SUBMITTED", "PHASE_FETCHING", "PHASE_QUEUED", "PHASE_PENDING", "PHASE_RUNNING", "PHASE_FINISHED",
		}, watch(t, client, id)); diff != "" {
			t.Errorf("run %s (-want +got):\n%s", id, diff)
		}
	}
	before := runs(t, st)
	bus.TakeLines()
	bus.Replay()
	if diff := cmp.Diff(before, runs(t, st)); diff != "" {
		t.Errorf("replayed:\n%s", diff)
	}
	if got := bus.TakeLines(); len(got) != 0 {
		t.Errorf("a replay says %v", got)
	}
}

func watch(t *testing.T, client baiv1.RunServiceClient, id string) []string {
	t.Helper()
	stream, err := client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	var phases []string
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return phases
		}
		if err != nil {
			t.Fatal(err)
		}
		phases = append(phases, resp.GetChange().GetPhase().String())
	}
}

func runs(t *testing.T, st *sqlite.Store) []store.Run {
	t.Helper()
	all, _, err := st.Runs(t.Context(), store.RunFilter{}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestARunThatNobodyTakesIsGivenUp(t *testing.T) {
	s := gateway.Settings{}
	s.Projection.Interval, s.Projection.NoProgress = 10*time.Millisecond, 50*time.Millisecond
	client := start(t, s, open(t), eventtest.NewBus(t))
	resp, err := client.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(descriptor)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"PHASE_SUBMITTED", "PHASE_FINISHED"}, watch(t, client, resp.GetRunId())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	run, err := client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: resp.GetRunId()})
	if err != nil || run.GetRun().GetReason() != string(event.NoProgress) || run.GetRun().GetFailureClass() != baiv1.FailureClass_FAILURE_CLASS_PLATFORM {
		t.Errorf("got %v, %v", run, err)
	}
}

func TestTheServiceHasItsParts(t *testing.T) {
	parts := gateway.New(gateway.Settings{}, gateway.Deps{Bus: eventtest.NewBus(t), Store: open(t), Log: zap.NewNop()})
	want := []string{
		"gateway/api", "gateway/confirmations", "gateway/outbox", "gateway/port", "gateway/reconcile", "gateway/record/bai.commands", "gateway/record/bai.fetched",
		"gateway/record/bai.finished", "gateway/record/bai.launched", "gateway/record/bai.retried", "gateway/record/bai.status",
		"gateway/record/bai.submitted", "gateway/rest", "gateway/schedules", "gateway/sets",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(parts))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func BenchmarkSubmit(b *testing.B) {
	st, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bai.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close() //nolint:errcheck // the benchmark is over
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	bus := eventtest.NewBus(b)
	parts := gateway.New(gateway.Settings{}, gateway.Deps{Bus: bus, Store: st, Listener: l, Entropy: rand.Reader, Log: zap.NewNop()})
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- parts["gateway/api"](ctx) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	client := baiv1.NewRunServiceClient(conn)
	fakePlatform(bus)
	for b.Loop() {
		if _, err := client.SubmitRun(b.Context(), &baiv1.SubmitRunRequest{IdempotencyKey: rand.Text(), DescriptorToml: []byte(descriptor)}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	stop()
	if err := errors.Join(<-done, conn.Close()); err != nil {
		b.Error(err)
	}
}
