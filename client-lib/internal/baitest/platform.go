// Package baitest is a platform for tests that keeps its runs in memory, and a network
// that breaks on demand.
package baitest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Platform is a platform in memory. It keeps the contract of RunService.
type Platform struct {
	baiv1.UnimplementedRunServiceServer

	addr string

	mu            sync.Mutex
	changed       chan struct{}     // closed and made anew at each change
	runs          []*record         // in order of submission
	schedules     []*baiv1.Schedule // in order
	sets          []*storedSet      // in order
	keys          map[string]*record
	failures      map[string][]error // method → results of its next calls
	calls         map[string]int
	users         []string // the last caller
	revision      int32    // revision that GetVersion returns
	descriptors   []*draft
	data          []*baiv1.StoredData // in order
	damaged       map[string]bool     // digests of damaged data
	uriTexts      map[string]string   // URI → text
	prefetchWaits map[string][]string // source → the delays of its prefetch, one at a time
	scripts       map[string]string   // code, by digest
	cuts          []int               // after how many bytes the next uploads break
	submits       []*baiv1.SubmitRunRequest
	onSubmit      func(id string)
	exports       map[string]transfer
	imported      map[string][]Transferred
	inHistory     map[string]bool
	analyses      analyses
	baselines     map[string]*baiv1.Baseline // by team and name
	alarms        alarms
	now           time.Time
	work          sync.WaitGroup
}

type record struct {
	run        *baiv1.Run
	descriptor string
	changes    []*baiv1.Change
	lines      []*baiv1.LogLine
	samples    []*baiv1.Sample
	files      []*file

	summaries   *baiv1.GetSummariesResponse
	environment *baiv1.Environment
}

// Start serves a platform without runs on a port of the loopback until the test
// ends. Its clock stands at 2026-01-02 03:04:05 UTC.
func Start(t *testing.T) *Platform {
	t.Helper()
	return start(t, false)
}

// StartOld serves a platform of the first revision of the API: it ignores newer fields of
// a request.
func StartOld(t *testing.T) *Platform {
	t.Helper()
	return start(t, true)
}

func start(t *testing.T, old bool) *Platform {
	t.Helper()
	p, stop, err := serve(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return p
}

// Serve is Start without a test. The platform runs until stop is called.
func Serve(ctx context.Context) (p *Platform, stop func() error, err error) { return serve(ctx, false) }

func serve(ctx context.Context, old bool) (p *Platform, stop func() error, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("serve a platform: %w", err)
	}
	p = &Platform{
		addr:          listener.Addr().String(),
		changed:       make(chan struct{}),
		keys:          map[string]*record{},
		failures:      map[string][]error{},
		calls:         map[string]int{},
		uriTexts:      map[string]string{},
		prefetchWaits: map[string][]string{},
		damaged:       map[string]bool{},
		scripts:       map[string]string{},
		exports:       map[string]transfer{},
		imported:      map[string][]Transferred{},
		inHistory:     map[string]bool{},
		baselines:     map[string]*baiv1.Baseline{},
		analyses: analyses{
			comparisons: map[[2]string]*baiv1.CompareRunsResponse{}, histories: map[string]*baiv1.QueryHistoryResponse{},
			powers:   map[string]*baiv1.PlanPowerResponse{},
			rankings: map[[2]string]*baiv1.RankRunsResponse{},
		},
		revision: baiv1.Revision,
		now:      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if old {
		p.revision = 1
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(p.unary), grpc.StreamInterceptor(p.stream))
	baiv1.RegisterRunServiceServer(server, p)
	if !old {
		baiv1.RegisterDescriptorServiceServer(server, descriptorService{p: p})
		baiv1.RegisterScriptServiceServer(server, scriptService{p: p})
		baiv1.RegisterPreflightServiceServer(server, preflightService{})
		baiv1.RegisterResultServiceServer(server, resultService{p: p})
		baiv1.RegisterDataServiceServer(server, dataService{p: p})
		baiv1.RegisterScheduleServiceServer(server, scheduleService{p: p})
		baiv1.RegisterSetServiceServer(server, setService{p: p})
		baiv1.RegisterTransferServiceServer(server, transferService{p: p})
		baiv1.RegisterAnalysisServiceServer(server, analysisService{p: p})
		baiv1.RegisterBaselineServiceServer(server, baselineService{p: p})
		baiv1.RegisterAlarmServiceServer(server, alarmService{p: p})
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	stop = func() error {
		server.Stop()
		p.work.Wait()
		if err := <-done; !errors.Is(err, grpc.ErrServerStopped) { // stopped before it had begun
			return err
		}
		return nil
	}
	return p, stop, nil
}

// Addr is where the platform listens.
func (p *Platform) Addr() string { return p.addr }

// OnSubmit has f called, in a goroutine of its own, for each run that is
// submitted from now on. The test does not end before it returns.
func (p *Platform) OnSubmit(f func(id string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onSubmit = f
}

// Fail makes the next calls of a method, such as "GetRun", return these errors,
// one each.
func (p *Platform) Fail(method string, errs ...error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures[method] = append(p.failures[method], errs...)
}

// Calls says how often a method was called.
func (p *Platform) Calls(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[method]
}

// Users returns the caller of the last call, as the call's metadata name it.
func (p *Platform) Users() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.users
}

// SetRevision sets the revision that the platform returns; 0 is that of platforms too old
// to return one.
func (p *Platform) SetRevision(revision int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revision = revision
}

// Submits returns the requests of SubmitRun that were not made to fail.
func (p *Platform) Submits() []*baiv1.SubmitRunRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*baiv1.SubmitRunRequest(nil), p.submits...)
}

// Add adds a run as it is. Fields that every run has are filled in.
func (p *Platform) Add(run *baiv1.Run) (id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(run).run.GetId()
}

func (p *Platform) add(run *baiv1.Run) *record {
	run = proto.CloneOf(run)
	if run.GetId() == "" {
		run.Id = fmt.Sprintf("01kdyt1q88%016d", len(p.runs)+1)
	}
	if run.GetCreateTime() == nil {
		run.CreateTime = timestamppb.New(p.now)
	}
	if run.GetNamespace() == "" {
		run.Namespace = "default"
	}
	if run.GetPhase() == baiv1.Phase_PHASE_UNSPECIFIED {
		run.Phase = baiv1.Phase_PHASE_SUBMITTED
	}
	run.Attempt = max(run.GetAttempt(), 1)
	r := &record{run: run, descriptor: run.GetDescriptorToml()}
	p.runs = append(p.runs, r)
	p.notifyWaiters()
	return r
}

// Change makes something happen to a run. The change's revision, and its time
// and attempt unless given, are filled in.
func (p *Platform) Change(id string, change *baiv1.Change) {
	p.update(id, func(r *record) { p.applyChange(r, change) })
}

func (p *Platform) applyChange(r *record, change *baiv1.Change) {
	change = proto.CloneOf(change)
	change.Revision = int64(len(r.changes) + 1)
	if change.GetTime() == nil {
		change.Time = timestamppb.New(p.now.Add(time.Duration(len(r.changes)) * time.Second))
	}
	if change.GetAttempt() == 0 {
		change.Attempt = r.run.GetAttempt()
	}
	r.changes = append(r.changes, change)
	project(r.run, change)
}

func project(run *baiv1.Run, c *baiv1.Change) {
	run.Revision, run.UpdateTime, run.Attempt = c.GetRevision(), c.GetTime(), c.GetAttempt()
	run.Phase, run.Outcome, run.FailureClass = c.GetPhase(), c.GetOutcome(), c.GetFailureClass()
	run.Reason, run.Message, run.Progress = c.GetReason(), c.GetMessage(), c.GetProgress()
	switch c.GetPhase() { //nolint:exhaustive // the others have no time of their own
	case baiv1.Phase_PHASE_RUNNING:
		if run.GetStartTime() == nil {
			run.StartTime = c.GetTime()
		}
	case baiv1.Phase_PHASE_FINISHED:
		run.EndTime = c.GetTime()
	}
}

// Log adds lines to a run.
func (p *Platform) Log(id string, lines ...*baiv1.LogLine) {
	p.update(id, func(r *record) { r.lines = append(r.lines, lines...) })
}

// Sample adds samples to a run.
func (p *Platform) Sample(id string, samples ...*baiv1.Sample) {
	p.update(id, func(r *record) { r.samples = append(r.samples, samples...) })
}

// SetCompleteness sets the completeness of a run's data.
func (p *Platform) SetCompleteness(id string, c *baiv1.Completeness) {
	p.update(id, func(r *record) { r.run.Completeness = c })
}

func (p *Platform) update(id string, f func(*record)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.runs {
		if r.run.GetId() == id {
			f(r)
		}
	}
	p.notifyWaiters()
}

// notifyWaiters wakes all calls that wait for a change.
func (p *Platform) notifyWaiters() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// nextFailure counts a call and returns the failure that it is to have.
func (p *Platform) nextFailure(ctx context.Context, method string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users = metadata.ValueFromIncomingContext(ctx, "bai-user")
	p.calls[method]++
	errs := p.failures[method]
	if len(errs) == 0 {
		return nil
	}
	p.failures[method] = errs[1:]
	return errs[0]
}

func (p *Platform) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := p.nextFailure(ctx, base(info.FullMethod)); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (p *Platform) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := p.nextFailure(s.Context(), base(info.FullMethod)); err != nil {
		return err
	}
	return next(srv, s)
}

// DropChange removes a change of a run, as a platform that breaks its contract would.
func (p *Platform) DropChange(id string, revision int) {
	p.update(id, func(r *record) { r.changes = append(r.changes[:revision-1:revision-1], r.changes[revision:]...) })
}
