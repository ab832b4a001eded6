package api_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/gateway/analysis"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/gateway/archive"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/bundle"
	"github.com/benchmark-ai/bai/services/gateway/catalog"
	"github.com/benchmark-ai/bai/services/gateway/projection"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const valid = `spec_version = "0.1.0"
[info]
description = "hello"
[info.labels]
color = "red"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "alpine"
[ml]
benchmark_code = "echo hello"
`

// fixture is a server with a store and a bus, and a client of the server.
type fixture struct {
	t           *testing.T
	store       *flakyStore
	bus         *eventtest.Bus
	client      baiv1.RunServiceClient
	descriptors baiv1.DescriptorServiceClient
	files       *artifact.Repository
	conn        *grpc.ClientConn
	stop        func()
}

// options change a fixture before it starts.
type options struct {
	settings     api.Settings
	submit       submit.Settings
	bus          submit.Publisher
	ready        func(context.Context) error
	preflight    api.Preflight
	source       catalog.Source
	parser       parser.Parser
	noNotify     bool // the store does not notify of writes
	noProjection bool // events are not projected
}

func newFixture(t *testing.T, o options) *fixture {
	t.Helper()
	w := &fixture{t: t, store: newFlakyStore(!o.noNotify), bus: eventtest.NewBus(t)}
	if o.bus == nil {
		o.bus = w.bus
	}
	if !o.noProjection {
		for _, step := range projection.NewProjector(w.store, func(store.Run) {}).Steps() {
			w.bus.Consume("gateway", step)
		}
	}
	objects, err := blob.Open(t.Context(), blob.Settings{URL: "file://" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	scripts := bundle.New(bundle.Settings{MaxSize: 4 << 20}, objects, w.store, time.Now)
	in := submit.New(o.submit, submit.Deps{
		Store: w.store, Bus: o.bus, Scripts: scripts, Parser: o.parser, IDs: submit.NewIDs(rand.Reader), Now: time.Now, Log: zap.NewNop(),
	})
	w.files = artifact.New(artifact.Settings{}, objects, w.store, time.Now)
	archiver := archive.New(archive.Deps{Store: w.store, Artifacts: w.files, Names: in, Version: "v1.2.3", Now: time.Now})
	server := api.New(o.settings, api.Deps{
		Archiver:  archiver,
		Submitter: in, Store: w.store, Catalog: catalog.New(catalog.Settings{}, w.store, o.source, o.parser, time.Now), Parser: o.parser, Renderer: upperRenderer{}, Artifacts: w.files, Scripts: scripts,
		Analyses:  analysis.New(analysis.Deps{Store: w.store, Sets: noSets{}, RunByName: in.RunByName, Now: time.Now}),
		Alarms:    alarm.New(alarm.Deps{Store: w.store, Receivers: map[string][]string{"chat": nil, "mail": {"other"}}, Now: time.Now}),
		Preflight: o.preflight, Ready: o.ready, Version: rpc.Version{Version: "v1.2.3", Commit: "abc"}, Log: zap.NewNop(),
	})

	l := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Serve(l)(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, objects.Close()); err != nil {
			t.Errorf("stopped with %v, want nil", err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		w.stop()
	})
	w.conn, w.client, w.descriptors = conn, baiv1.NewRunServiceClient(conn), baiv1.NewDescriptorServiceClient(conn)
	return w
}

// submit submits a valid descriptor.
func (w *fixture) submit(change func(*baiv1.SubmitRunRequest)) string {
	w.t.Helper()
	req := &baiv1.SubmitRunRequest{DescriptorToml: []byte(valid), DescriptorFile: "bench.toml"}
	if change != nil {
		change(req)
	}
	resp, err := w.client.SubmitRun(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.GetRunId()
}

// header returns the header of an event of a run.
func (w *fixture) header(run, id string) event.Header {
	return event.NewHeader(event.Derive(run, id), run, "default", "anonymous", time.Now())
}

func (w *fixture) reportStatus(run string, phase event.Phase, message string) {
	w.t.Helper()
	w.bus.PublishAndWait(event.Status{Header: w.header(run, message), Phase: phase, Message: message})
}

func (w *fixture) finishRun(run string, collectors ...string) {
	w.t.Helper()
	w.bus.PublishAndWait(event.Finished{Header: w.header(run, "finished"), Outcome: event.Succeeded, Message: "done", Collectors: collectors})
}

// checkRefused checks the code of err and that its message has text, and returns its
// faults.
func checkRefused(t *testing.T, err error, code codes.Code, text string) []*baiv1.Fault {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != code || !strings.Contains(s.Message(), text) {
		t.Errorf("answered %v, want %s with %q", err, code, text)
	}
	var faults []*baiv1.Fault
	for _, d := range s.Details() {
		if f, ok := d.(*baiv1.Fault); ok {
			faults = append(faults, f)
		}
	}
	return faults
}

// runFailureOf returns the RunFailure in err.
func runFailureOf(err error) *baiv1.RunFailure {
	for _, d := range status.Convert(err).Details() {
		if f, ok := d.(*baiv1.RunFailure); ok {
			return f
		}
	}
	return nil
}

func TestAServerThatIsStoppedBeforeItServesEndsWell(t *testing.T) {
	for range 200 { // either of the two calls may be first
		newFixture(t, options{}).stop()
	}
}

func TestARunIsFoundByItsIDAndByItsName(t *testing.T) {
	w := newFixture(t, options{})
	ann := metadata.AppendToOutgoingContext(t.Context(), baiv1.UserMetadata, "ann")
	resp, err := w.client.SubmitRun(ann, &baiv1.SubmitRunRequest{DescriptorToml: []byte(valid), Name: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		ctx  context.Context
		req  *baiv1.GetRunRequest
		want codes.Code
	}{
		"by ID, by anybody":         {t.Context(), &baiv1.GetRunRequest{Run: resp.GetRunId()}, codes.OK},
		"by ID in capitals":         {t.Context(), &baiv1.GetRunRequest{Run: strings.ToUpper(resp.GetRunId())}, codes.OK},
		"by name, by its owner":     {ann, &baiv1.GetRunRequest{Run: "nightly"}, codes.OK},
		"by name and owner":         {t.Context(), &baiv1.GetRunRequest{Run: "nightly", Owner: "ann"}, codes.OK},
		"not by another's name":     {t.Context(), &baiv1.GetRunRequest{Run: "nightly"}, codes.NotFound},
		"not by another ID":         {t.Context(), &baiv1.GetRunRequest{Run: "01k8h4fzqh3v7x9y2m5n8p0r4t"}, codes.NotFound},
		"not by nothing":            {t.Context(), &baiv1.GetRunRequest{}, codes.InvalidArgument},
		"not by a name too strange": {t.Context(), &baiv1.GetRunRequest{Run: strings.Repeat("\x00", 4096)}, codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.client.GetRun(tt.ctx, tt.req)
			if status.Code(err) != tt.want {
				t.Fatalf("answered %v, want %s", err, tt.want)
			}
			if err == nil && (got.GetRun().GetId() != resp.GetRunId() || got.GetRun().GetOwner() != "ann" || got.GetRun().GetDescriptorToml() != valid) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestARunThatIsNotRecordedYetIsKnownByWhatWasSubmitted(t *testing.T) {
	w := newFixture(t, options{noProjection: true})
	id := w.submit(func(r *baiv1.SubmitRunRequest) { r.Labels = map[string]string{"size": "small"} })
	got, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	run := got.GetRun()
	if run.GetPhase() != baiv1.Phase_PHASE_SUBMITTED || run.GetRevision() != 0 || run.GetAttempt() != 1 || run.GetDescriptorToml() != valid || run.GetCreateTime() == nil {
		t.Errorf("got %v", run)
	}
	if diff := cmp.Diff(map[string]string{"color": "red", "size": "small"}, run.GetLabels()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSubmitAnswersWhatIsWrong(t *testing.T) {
	w := newFixture(t, options{})
	send := func(change func(*baiv1.SubmitRunRequest)) (*baiv1.SubmitRunResponse, error) {
		req := &baiv1.SubmitRunRequest{IdempotencyKey: "k", DescriptorToml: []byte(valid), DescriptorFile: "bench.toml"}
		change(req)
		return w.client.SubmitRun(t.Context(), req)
	}
	first, err := send(func(*baiv1.SubmitRunRequest) {})
	if err != nil || first.GetRepeated() {
		t.Fatalf("submitted: %v, %v", first, err)
	}
	again, err := send(func(*baiv1.SubmitRunRequest) {})
	if err != nil || !again.GetRepeated() || again.GetRunId() != first.GetRunId() {
		t.Errorf("again: %v, %v", again, err)
	}
	_, err = send(func(r *baiv1.SubmitRunRequest) { r.Name = "other" })
	checkRefused(t, err, codes.AlreadyExists, `idempotency key "k" was used before`)
	if f := runFailureOf(err); f.GetRunId() != first.GetRunId() {
		t.Errorf("the run in the way is %v", f)
	}
	_, err = send(func(r *baiv1.SubmitRunRequest) {
		r.IdempotencyKey, r.Name = "", "a b"
		r.DescriptorToml = []byte(strings.Replace(valid, "docker_image", "docker_imag", 1))
	})
	faults := checkRefused(t, err, codes.InvalidArgument, "name:")
	if len(faults) < 2 || faults[0].GetPath() != "name" || faults[1].GetFile() != "bench.toml" || faults[1].GetLine() == 0 {
		t.Errorf("faults %v", faults)
	}
	_, err = send(func(r *baiv1.SubmitRunRequest) {
		r.DescriptorToml = []byte(strings.Replace(valid, "[info]", "[info]\nscheduling = \"@daily\"", 1))
	})
	checkRefused(t, err, codes.Unimplemented, "schedules")
	_, err = send(func(r *baiv1.SubmitRunRequest) { r.DescriptorToml = make([]byte, 2<<20) })
	checkRefused(t, err, codes.ResourceExhausted, "a descriptor has 262144 at most")
}

func TestManyFaultsReachTheClient(t *testing.T) {
	w := newFixture(t, options{})
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%s%d = 1\n", strings.Repeat("k", 200), i)
	}
	_, err := w.client.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(b.String())})
	if faults := checkRefused(t, err, codes.InvalidArgument, "more)"); len(faults) != 50 {
		t.Errorf("%d faults, want 50", len(faults))
	}
}

// unresponsiveBus is a bus that never answers.
type unresponsiveBus struct{}

func (unresponsiveBus) Publish(ctx context.Context, _ ...event.Event) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestASubmitThatWasNotPublishedNamesTheRun(t *testing.T) {
	w := newFixture(t, options{bus: unresponsiveBus{}, submit: submit.Settings{PublishTimeout: 50 * time.Millisecond}})
	_, err := w.client.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(valid)})
	checkRefused(t, err, codes.Unavailable, "may still be run")
	run := runFailureOf(err).GetRunId()
	if _, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: run}); err != nil {
		t.Errorf("the run that it names: %v", err)
	}
}

func TestCancelIsRepeatableAndSilentAfterTheEnd(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	for range 2 {
		resp, err := w.client.CancelRun(t.Context(), &baiv1.CancelRunRequest{Run: id})
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.GetRun().GetPhase(); got != baiv1.Phase_PHASE_CANCELING {
			t.Errorf("phase %s", got)
		}
	}
	if n := len(eventtest.Published[event.Command](w.bus)); n != 1 {
		t.Errorf("%d commands", n)
	}
	finished := w.submit(nil)
	w.finishRun(finished)
	if _, err := w.client.CancelRun(t.Context(), &baiv1.CancelRunRequest{Run: finished}); err != nil {
		t.Errorf("after the end: %v", err)
	}
	if n := len(eventtest.Published[event.Command](w.bus)); n != 1 {
		t.Errorf("%d commands after the end", n)
	}
	_, err := w.store.Doc(t.Context(), store.KindCancel, finished)
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("mark after the end: %v", err)
	}
	_, err = w.client.CancelRun(t.Context(), &baiv1.CancelRunRequest{Run: "nothing"})
	checkRefused(t, err, codes.NotFound, "nothing")
}

// list returns the IDs of the matching runs, from all pages.
func (w *fixture) list(req *baiv1.ListRunsRequest) []string {
	w.t.Helper()
	var ids []string
	for {
		resp, err := w.client.ListRuns(w.t.Context(), req)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range resp.GetRuns() {
			ids = append(ids, r.GetId())
			if r.GetDescriptorToml() != "" {
				w.t.Error("a list has descriptors")
			}
		}
		if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
			return ids
		}
	}
}

func TestListPagesThroughWhatTheFiltersMean(t *testing.T) {
	w := newFixture(t, options{})
	var odd []string
	for i := range 7 {
		id := w.submit(func(r *baiv1.SubmitRunRequest) { r.Labels = map[string]string{"parity": fmt.Sprint(i % 2)} })
		if i%2 == 1 {
			odd = append([]string{id}, odd...)
		}
	}
	w.finishRun(odd[0])
	labels := map[string]string{"parity": "1"}
	for name, tt := range map[string]struct {
		req  *baiv1.ListRunsRequest
		want []string
	}{
		"by label, in pages": {&baiv1.ListRunsRequest{PageSize: 2, Labels: labels}, odd},
		"by outcome":         {&baiv1.ListRunsRequest{Outcomes: []baiv1.Outcome{baiv1.Outcome_OUTCOME_SUCCEEDED}}, odd[:1]},
		"by phase and label": {&baiv1.ListRunsRequest{Phases: []baiv1.Phase{baiv1.Phase_PHASE_SUBMITTED}, Labels: labels}, odd[1:]},
		"by owner":           {&baiv1.ListRunsRequest{Owner: "nobody"}, nil},
		"by time":            {&baiv1.ListRunsRequest{Until: timestamppb.New(time.Now().Add(-time.Hour))}, nil},
	} {
		if diff := cmp.Diff(tt.want, w.list(tt.req)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, err := w.client.ListRuns(t.Context(), &baiv1.ListRunsRequest{PageToken: "made up"})
	checkRefused(t, err, codes.InvalidArgument, "page_token")
	_, err = w.client.ListRuns(t.Context(), &baiv1.ListRunsRequest{PageSize: -1})
	checkRefused(t, err, codes.InvalidArgument, "page_size")
}

func TestHealthReflectionAndVersion(t *testing.T) {
	var mu sync.Mutex
	missing := errors.New("the bus is away")
	w := newFixture(t, options{ready: func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		return missing
	}})
	health := healthv1.NewHealthClient(w.conn)
	watch, err := health.Watch(t.Context(), &healthv1.HealthCheckRequest{Service: "bai.v1.RunService"})
	if err != nil {
		t.Fatal(err)
	}
	is := func(want healthv1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for {
			got, err := watch.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if got.GetStatus() == want {
				return
			}
		}
	}
	is(healthv1.HealthCheckResponse_NOT_SERVING)
	mu.Lock()
	missing = nil
	mu.Unlock()
	is(healthv1.HealthCheckResponse_SERVING)

	stream, err := reflectionv1.NewServerReflectionClient(w.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil || !strings.Contains(resp.String(), "bai.v1.RunService") || !strings.Contains(resp.String(), "bai.v1.DescriptorService") {
		t.Errorf("reflection: %v, %v", resp, err)
	}
	version, err := w.client.GetVersion(t.Context(), &baiv1.GetVersionRequest{})
	if err != nil || version.GetVersion() != "v1.2.3" || version.GetCommit() != "abc" || version.GetRevision() != baiv1.Revision {
		t.Errorf("version: %v, %v", version, err)
	}
}

func TestAPanicIsAnAnswerAndTheServerLives(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	w.store.setFaults(func(f *faults) { f.panics = true })
	_, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
	checkRefused(t, err, codes.Internal, "the server has a fault")
	stream, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	checkRefused(t, err, codes.Internal, "the server has a fault")
	w.store.setFaults(func(f *faults) { f.panics = false })
	if _, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id}); err != nil {
		t.Error(err)
	}
}

func TestAStoreThatIsAwayIsUnavailable(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	w.store.setFaults(func(f *faults) { f.err = errors.New("the disk is gone") })
	_, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
	checkRefused(t, err, codes.Unavailable, "the disk is gone")
	_, err = w.client.CancelRun(t.Context(), &baiv1.CancelRunRequest{Run: id})
	checkRefused(t, err, codes.Unavailable, "the disk is gone")
}

func TestDeadlinesAreRespected(t *testing.T) {
	for name, tt := range map[string]struct {
		server, client time.Duration
	}{
		"the client's": {time.Hour, 50 * time.Millisecond},
		"the server's": {50 * time.Millisecond, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, options{settings: api.Settings{CallTimeout: tt.server}})
			w.store.setFaults(func(f *faults) { f.hangs = true })
			ctx, cancel := context.WithTimeout(t.Context(), tt.client)
			defer cancel()
			_, err := w.client.GetRun(ctx, &baiv1.GetRunRequest{Run: "01kdyt1q880000000000000001"})
			checkRefused(t, err, codes.DeadlineExceeded, "")
		})
	}
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	watch, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	logs, err := w.client.StreamLogs(t.Context(), &baiv1.StreamLogsRequest{Run: id, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := logs.Header(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.stop()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	_, err = watch.Recv()
	checkRefused(t, err, codes.Unavailable, "stopping")
	_, err = logs.Recv()
	checkRefused(t, err, codes.Unavailable, "stopping")
}
