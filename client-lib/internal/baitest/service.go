package baitest

import (
	"context"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const batch = 7 // lines and samples in one message

func base(method string) string { return path.Base(method) }

// SubmitRun makes one run of all submissions under one key.
func (p *Platform) SubmitRun(_ context.Context, req *baiv1.SubmitRunRequest) (*baiv1.SubmitRunResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.submits = append(p.submits, req)
	key := req.GetOwner() + "/" + req.GetIdempotencyKey()
	if r := p.keys[key]; r != nil && req.GetIdempotencyKey() != "" {
		if r.descriptor != requestFingerprint(req) {
			return nil, Status(codes.AlreadyExists, "the idempotency key was used for another descriptor",
				&baiv1.RunFailure{RunId: r.run.GetId(), Reason: "KeyUsed"})
		}
		return submitResponse(r, true), nil
	}
	if r := p.find(req.GetName(), req.GetOwner()); r != nil && req.GetName() != "" {
		return nil, Status(codes.AlreadyExists, "the name is taken", &baiv1.RunFailure{RunId: r.run.GetId(), Reason: "NameTaken"})
	}
	text, err := applyOverrides(req.GetDescriptorFile(), req.GetDescriptorToml(), req.GetOverrides())
	if err != nil {
		return nil, err
	}
	if res, ok := p.submitSchedule(req, text); ok {
		return res, nil
	}
	if res, ok := p.submitSet(req, text); ok {
		return res, nil
	}
	run := &baiv1.Run{
		Name: req.GetName(), Namespace: req.GetNamespace(), Owner: req.GetOwner(), Labels: req.GetLabels(),
		DescriptorFile: req.GetDescriptorFile(), DescriptorToml: text, Overrides: req.GetOverrides(), Origination: req.GetOrigination(),
	}
	if digest := req.GetScriptSha256(); digest != "" {
		content, ok := p.scripts[digest]
		if !ok {
			return nil, Status(codes.InvalidArgument, "script_sha256: it is not kept",
				&baiv1.Fault{Path: "script_sha256", Code: "BAI9010", Message: "it is not kept"})
		}
		run.Script = &baiv1.Script{Sha256: digest, Size: int64(len(content))}
	}
	if req.GetRerunOf() != "" {
		run.Lineage = &baiv1.Lineage{RerunOf: req.GetRerunOf(), Compares: req.GetCompares()}
	}
	r := p.add(run)
	r.descriptor = requestFingerprint(req)
	p.keys[key] = r
	if f := p.onSubmit; f != nil {
		p.work.Go(func() { f(r.run.GetId()) })
	}
	return submitResponse(r, false), nil
}

// requestFingerprint is the part of a submission that an idempotency key stands for.
func requestFingerprint(req *baiv1.SubmitRunRequest) string {
	parts := []string{string(req.GetDescriptorToml()), req.GetScriptSha256()}
	for _, o := range req.GetOverrides() {
		parts = append(parts, o.GetPath(), o.GetValue())
	}
	return strings.Join(parts, "\x00")
}

func submitResponse(r *record, repeated bool) *baiv1.SubmitRunResponse {
	return &baiv1.SubmitRunResponse{Result: &baiv1.SubmitRunResponse_RunId{RunId: r.run.GetId()}, Repeated: repeated}
}

// Status is an error as a server sends it.
func Status(code codes.Code, message string, details ...proto.Message) error {
	s := status.New(code, message)
	for _, d := range details {
		with, err := s.WithDetails(protoadapt.MessageV1Of(d))
		if err != nil {
			return err
		}
		s = with
	}
	return s.Err()
}

// GetRun returns a run.
func (p *Platform) GetRun(_ context.Context, req *baiv1.GetRunRequest) (*baiv1.GetRunResponse, error) {
	r, err := p.lookup(req.GetRun(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return &baiv1.GetRunResponse{Run: proto.CloneOf(r.run)}, nil
}

// ListRuns returns a page of runs; the token is the number of runs before it.
func (p *Platform) ListRuns(_ context.Context, req *baiv1.ListRunsRequest) (*baiv1.ListRunsResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, size := 0, int(req.GetPageSize())
	if token := req.GetPageToken(); token != "" {
		n, err := strconv.Atoi(token)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "page token %q is not ours", token)
		}
		from = n
	}
	if size == 0 {
		size = 50
	}
	var all []*baiv1.Run
	for _, r := range slices.Backward(p.runs) {
		if selected(r.run, req) {
			run := proto.CloneOf(r.run)
			run.DescriptorToml, run.Completeness, run.Overrides, run.Owed = "", nil, nil, nil
			all = append(all, run)
		}
	}
	if req.GetOrder() == baiv1.Order_ORDER_OLDEST_FIRST {
		slices.Reverse(all)
	}
	to := min(from+size, len(all))
	res := &baiv1.ListRunsResponse{Runs: all[min(from, to):to]}
	if to < len(all) {
		res.NextPageToken = strconv.Itoa(to)
	}
	return res, nil
}

func selected(run *baiv1.Run, req *baiv1.ListRunsRequest) bool {
	labels := maps.Clone(run.GetLabels())
	maps.DeleteFunc(labels, func(k, v string) bool { return req.GetLabels()[k] != v })
	return (req.GetOwner() == "" || req.GetOwner() == run.GetOwner()) &&
		(req.GetNamespace() == "" || req.GetNamespace() == run.GetNamespace()) &&
		(len(req.GetPhases()) == 0 || slices.Contains(req.GetPhases(), run.GetPhase())) &&
		(len(req.GetOutcomes()) == 0 || slices.Contains(req.GetOutcomes(), run.GetOutcome())) &&
		uses(run, req) &&
		(req.GetSetId() == "" || req.GetSetId() == run.GetLineage().GetSetId()) &&
		(req.GetCell() == "" || req.GetCell() == run.GetLineage().GetCell()) &&
		(req.GetScheduleId() == "" || req.GetScheduleId() == run.GetLineage().GetScheduleId()) &&
		len(labels) == len(req.GetLabels()) && within(run.GetCreateTime(), req.GetSince(), req.GetUntil()) && begins(run, req.GetText())
}

// uses reports whether a run uses the requested data.
func uses(run *baiv1.Run, req *baiv1.ListRunsRequest) bool {
	return (req.GetFramework() == "" || req.GetFramework() == run.GetFramework()) &&
		(req.GetFrameworkVersion() == "" || req.GetFrameworkVersion() == run.GetFrameworkVersion()) &&
		(req.GetDataId() == "" || slices.Contains(run.GetDataIds(), req.GetDataId()))
}

func within(t, since, until *timestamppb.Timestamp) bool {
	return (since == nil || !t.AsTime().Before(since.AsTime())) && (until == nil || t.AsTime().Before(until.AsTime()))
}

func begins(run *baiv1.Run, text string) bool {
	text = strings.ToLower(text)
	for _, field := range []string{run.GetId(), run.GetName(), run.GetDescriptorFile()} {
		if strings.HasPrefix(strings.ToLower(field), text) {
			return true
		}
	}
	return strings.ToLower(run.GetLabels()["task_name"]) == text
}

// CancelRun makes a run that has not ended canceling.
func (p *Platform) CancelRun(_ context.Context, req *baiv1.CancelRunRequest) (*baiv1.CancelRunResponse, error) {
	r, err := p.lookup(req.GetRun(), req.GetOwner())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.run.GetPhase() < baiv1.Phase_PHASE_CANCELING {
		p.applyChange(r, &baiv1.Change{Phase: baiv1.Phase_PHASE_CANCELING})
		p.notifyWaiters()
	}
	return &baiv1.CancelRunResponse{Run: proto.CloneOf(r.run)}, nil
}

// WatchRun sends a run's changes.
func (p *Platform) WatchRun(req *baiv1.WatchRunRequest, s grpc.ServerStreamingServer[baiv1.WatchRunResponse]) error {
	r, err := p.lookup(req.GetRun(), req.GetOwner())
	if err != nil {
		return err
	}
	if err := s.SendHeader(nil); err != nil { // the client may know that it is being served
		return err
	}
	for next := int(req.GetAfterRevision()); ; {
		p.mu.Lock()
		changes, changed := r.changes[min(next, len(r.changes)):], p.changed
		p.mu.Unlock()
		for _, c := range changes {
			if err := s.Send(&baiv1.WatchRunResponse{Change: c}); err != nil {
				return err
			}
			if c.GetPhase() == baiv1.Phase_PHASE_FINISHED {
				return nil
			}
		}
		next += len(changes)
		if err := wait(s.Context(), changed); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// StreamLogs sends a run's lines; the cursor is the number of lines before.
func (p *Platform) StreamLogs(req *baiv1.StreamLogsRequest, s grpc.ServerStreamingServer[baiv1.StreamLogsResponse]) error {
	r, err := p.lookup(req.GetRun(), req.GetOwner())
	if err != nil {
		return err
	}
	next, err := p.firstLine(r, req)
	if err != nil {
		return err
	}
	if err := s.SendHeader(nil); err != nil { // the client may know that it is being served
		return err
	}
	for {
		p.mu.Lock()
		lines, changed, whole := r.lines[next:], p.changed, r.run.GetCompleteness().GetComplete()
		p.mu.Unlock()
		for some := range slices.Chunk(lines, batch) {
			next += len(some)
			res := &baiv1.StreamLogsResponse{Lines: filterLines(some, req), Cursor: strconv.Itoa(next)}
			if err := s.Send(res); err != nil {
				return err
			}
		}
		if whole || !req.GetFollow() {
			return nil
		}
		if err := wait(s.Context(), changed); err != nil {
			return err
		}
	}
}

func (p *Platform) firstLine(r *record, req *baiv1.StreamLogsRequest) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := req.GetCursor(); c != "" {
		n, err := strconv.Atoi(c)
		if err != nil || n > len(r.lines) {
			return 0, status.Errorf(codes.InvalidArgument, "cursor %q is not ours", c)
		}
		return n, nil
	}
	if n := int(req.GetTail()); n > 0 {
		return max(0, len(r.lines)-n), nil
	}
	return 0, nil
}

func filterLines(lines []*baiv1.LogLine, req *baiv1.StreamLogsRequest) []*baiv1.LogLine {
	return slices.DeleteFunc(slices.Clone(lines), func(l *baiv1.LogLine) bool {
		return req.GetAttempt() != 0 && req.GetAttempt() != l.GetOrigin().GetAttempt() ||
			req.GetContainer() != "" && req.GetContainer() != l.GetOrigin().GetContainer() ||
			req.GetCursor() == "" && !within(l.GetTime(), req.GetSince(), nil) || !matchesSearch(l.GetText(), req.GetSearch())
	})
}

// matchesSearch reports whether a line has every word of a search, which is simpler here
// than on a platform.
func matchesSearch(line, search string) bool {
	words := strings.Fields(strings.ToLower(line))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(search)), func(word string) bool { return !slices.Contains(words, word) })
}

// QueryMetrics sends the samples of a run, or of all that a filter names; the
// cursor is the number of samples before.
func (p *Platform) QueryMetrics(req *baiv1.QueryMetricsRequest, s grpc.ServerStreamingServer[baiv1.QueryMetricsResponse]) error {
	records, err := p.selectedRuns(req)
	if err != nil {
		return err
	}
	skip, _ := strconv.Atoi(req.GetCursor()) // empty: 0
	next := 0
	for _, r := range records {
		p.mu.Lock()
		samples := r.samples
		p.mu.Unlock()
		for some := range slices.Chunk(samples, batch) {
			from := min(max(skip-next, 0), len(some))
			next += len(some)
			if from == len(some) {
				continue
			}
			res := &baiv1.QueryMetricsResponse{Samples: filterSamples(some[from:], req), Cursor: strconv.Itoa(next), RunId: r.run.GetId()}
			if err := s.Send(res); err != nil {
				return err
			}
		}
	}
	return nil
}

// selectedRuns are the runs whose samples are asked for.
func (p *Platform) selectedRuns(req *baiv1.QueryMetricsRequest) ([]*record, error) {
	if req.GetRun() != "" {
		r, err := p.lookup(req.GetRun(), req.GetOwner())
		return []*record{r}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*record
	for _, r := range slices.Backward(p.runs) {
		if selected(r.run, req.GetFilter()) {
			all = append(all, r)
		}
	}
	return all, nil
}

func filterSamples(samples []*baiv1.Sample, req *baiv1.QueryMetricsRequest) []*baiv1.Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s *baiv1.Sample) bool {
		return len(req.GetMetrics()) > 0 && !slices.Contains(req.GetMetrics(), s.GetMetric()) ||
			!within(s.GetTime(), req.GetSince(), req.GetUntil())
	})
}

// GetVersion says v1.2.3.
func (p *Platform) GetVersion(context.Context, *baiv1.GetVersionRequest) (*baiv1.GetVersionResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &baiv1.GetVersionResponse{Version: "v1.2.3", Commit: "abc1234", Revision: p.revision}, nil
}

func (p *Platform) lookup(name, owner string) (*record, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.find(name, owner); r != nil {
		return r, nil
	}
	return nil, status.Errorf(codes.NotFound, "there is no run %q", name)
}

func (p *Platform) find(name, owner string) *record {
	for _, r := range p.runs {
		if r.run.GetId() == name || r.run.GetName() == name && name != "" && r.run.GetOwner() == owner {
			return r
		}
	}
	return nil
}
