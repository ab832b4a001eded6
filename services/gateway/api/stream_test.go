package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// receiveAll receives all messages of a stream until it ends.
func receiveAll[T any](t *testing.T, stream grpc.ServerStreamingClient[T], err error) []*T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var got []*T
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
	}
}

func revisions(resps []*baiv1.WatchRunResponse) []int64 {
	var out []int64
	for _, r := range resps {
		out = append(out, r.GetChange().GetRevision())
	}
	return out
}

func upTo(from, to int64) []int64 {
	var out []int64
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

// TestWatchSendsEveryChangeOnceAndEndsAfterTheTerminalOne runs with and without
// notifications of writes. A write of another process gives no notification.
func TestWatchSendsEveryChangeOnceAndEndsAfterTheTerminalOne(t *testing.T) {
	for name, noNotify := range map[string]bool{"woken": false, "polling": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, options{noNotify: noNotify})
			id := w.submit(nil)
			stream, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: id})
			if err != nil {
				t.Fatal(err)
			}
			first, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			w.reportStatus(id, event.PhasePending, "waits")
			w.reportStatus(id, event.PhaseRunning, "runs")
			w.finishRun(id)
			w.reportStatus(id, event.PhaseRunning, "late")
			var got []string
			for _, r := range append([]*baiv1.WatchRunResponse{first}, receiveAll(t, stream, nil)...) {
				c := r.GetChange()
				got = append(got, fmt.Sprintf("%d %s %s %s %s", c.GetRevision(), c.GetPhase(), c.GetOutcome(), c.GetKind(), c.GetMessage()))
			}
			if diff := cmp.Diff([]string{
				"1 PHASE_SUBMITTED OUTCOME_UNSPECIFIED bai.submitted submitted by anonymous",
				"2 PHASE_PENDING OUTCOME_UNSPECIFIED bai.status waits",
				"3 PHASE_RUNNING OUTCOME_UNSPECIFIED bai.status runs",
				"4 PHASE_FINISHED OUTCOME_SUCCEEDED bai.finished done",
			}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWatchGoesOnFromAnyRevision(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	for i := range 500 { // more than are read at once
		w.reportStatus(id, event.PhaseRunning, fmt.Sprint("runs ", i))
	}
	w.finishRun(id)
	w.bus.PublishAndWait(event.Retried{Header: func() event.Header { h := w.header(id, "late"); h.Attempt = 2; return h }(), Class: event.ClassInfra, Reason: event.NodeLost})
	run, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	end := run.GetRun().GetRevision() - 1 // the last change is late
	for _, after := range []int64{0, 1, end / 2, end - 1, end, end + 1} {
		stream, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: id, AfterRevision: after})
		if diff := cmp.Diff(upTo(after+1, end), revisions(receiveAll(t, stream, err))); diff != "" {
			t.Errorf("after %d (-want +got):\n%s", after, diff)
		}
	}
	for _, after := range []int64{-1, end + 2} {
		stream, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: id, AfterRevision: after})
		if err == nil {
			_, err = stream.Recv()
		}
		checkRefused(t, err, codes.InvalidArgument, "after_revision")
	}
}

// TestAWatchThatIsCutSeesEveryChangeOnce cuts the watch after each one, two or three
// changes.
func TestAWatchThatIsCutSeesEveryChangeOnce(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	const n = 40
	go func() {
		for i := range n {
			w.bus.Publish(context.Background(), event.Status{Header: w.header(id, fmt.Sprint(i)), Phase: event.PhaseRunning, Message: fmt.Sprint(i)}) //nolint:errcheck // the test sees what is missing
		}
		w.bus.Publish(context.Background(), event.Finished{Header: w.header(id, "end"), Outcome: event.Succeeded}) //nolint:errcheck // the test sees what is missing
	}()
	var seen []int64
	for ended := false; !ended; {
		after := int64(0)
		if len(seen) > 0 {
			after = seen[len(seen)-1]
		}
		var some []int64
		some, ended = w.watchUpTo(id, after, 1+len(seen)%3)
		seen = append(seen, some...)
	}
	if diff := cmp.Diff(upTo(1, n+2), seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// watchUpTo watches a run until it has seen that many changes, and reports whether the
// stream ended before that.
func (w *fixture) watchUpTo(run string, after int64, most int) (seen []int64, ended bool) {
	w.t.Helper()
	ctx, cut := context.WithCancel(w.t.Context())
	defer cut()
	stream, err := w.client.WatchRun(ctx, &baiv1.WatchRunRequest{Run: run, AfterRevision: after})
	if err != nil {
		w.t.Fatal(err)
	}
	for range most {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return seen, true
		}
		if err != nil {
			w.t.Fatal(err)
		}
		seen = append(seen, resp.GetChange().GetRevision())
	}
	return seen, false
}

// origin returns a stream of a run, in pod p1.
func origin(run, container, stream string) store.Origin {
	return store.Origin{Run: run, Attempt: 1, Stream: event.Stream{Role: "benchmark", Pod: "p1", Container: container, Kind: stream}}
}

// writeLines stores lines of the benchmark in pod p1, with sequence numbers from from
// on.
func (w *fixture) writeLines(run string, from int, texts ...string) {
	w.t.Helper()
	b := store.Lines{Origin: origin(run, "benchmark", event.StreamOutput)}
	for i, text := range texts {
		b.Lines = append(b.Lines, event.Line{Seq: int64(from + i), Time: int64(from + i), Text: text, Stderr: i%2 == 1})
	}
	if err := w.store.AppendLines(w.t.Context(), []store.Lines{b}); err != nil {
		w.t.Fatal(err)
	}
}

func texts(resps []*baiv1.StreamLogsResponse) []string {
	var out []string
	for _, r := range resps {
		for _, l := range r.GetLines() {
			out = append(out, l.GetText())
		}
	}
	return out
}

func (w *fixture) logs(req *baiv1.StreamLogsRequest) []*baiv1.StreamLogsResponse {
	w.t.Helper()
	stream, err := w.client.StreamLogs(w.t.Context(), req)
	return receiveAll(w.t, stream, err)
}

func numbered(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint("line ", i))
	}
	return out
}

func TestLogs(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	w.writeLines(id, 0, numbered(0, 2500)...)
	b := store.Lines{Origin: origin(id, "server", event.StreamOutput), Lines: []event.Line{{Seq: 1, Text: "hello"}}}
	if err := w.store.AppendLines(t.Context(), []store.Lines{b}); err != nil {
		t.Fatal(err)
	}
	benchmark := &baiv1.StreamLogsRequest{Run: id, Container: "benchmark"}
	resps := w.logs(benchmark)
	if diff := cmp.Diff(numbered(0, 2500), texts(resps)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if l := resps[0].GetLines()[1]; !l.GetStderr() || l.GetSequence() != 1 || l.GetOrigin().GetPod() != "p1" || l.GetTime().AsTime().UnixNano() != 1 {
		t.Errorf("line %v", l)
	}
	for i, r := range resps { // each response has a cursor
		next := w.logs(&baiv1.StreamLogsRequest{Run: id, Container: "benchmark", Cursor: r.GetCursor(), Tail: 3})
		if want, got := texts(resps[i+1:]), texts(next); !slices.Equal(want, got) {
			t.Errorf("after response %d: %d lines, want %d", i, len(got), len(want))
		}
	}
	if diff := cmp.Diff(numbered(2497, 2500), texts(w.logs(&baiv1.StreamLogsRequest{Run: id, Container: "benchmark", Tail: 3}))); diff != "" {
		t.Errorf("tail (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"hello"}, texts(w.logs(&baiv1.StreamLogsRequest{Run: id, Container: "server"}))); diff != "" {
		t.Errorf("another container (-want +got):\n%s", diff)
	}
	if got := w.logs(&baiv1.StreamLogsRequest{Run: id, Attempt: 2}); len(texts(got)) != 0 || len(got) != 1 {
		t.Errorf("another attempt: %v", got)
	}
	for what, req := range map[string]*baiv1.StreamLogsRequest{
		"cursor": {Run: id, Cursor: "made up"}, "tail": {Run: id, Tail: -1}, "neither a letter nor a digit": {Run: id, Search: "++"},
		"17 words": {Run: id, Search: "a b c d e f g h i j k l m n o p q"},
	} {
		stream, err := w.client.StreamLogs(t.Context(), req)
		if err == nil {
			_, err = stream.Recv()
		}
		checkRefused(t, err, codes.InvalidArgument, what)
	}
}

func TestLogsAreSearched(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	w.writeLines(id, 0, numbered(0, 2500)...)
	w.writeLines(id, 2500, "ERROR: cuda_error-7", "error 7")
	for search, want := range map[string][]string{
		"line 77": {"line 77"}, "Error": {"ERROR: cuda_error-7", "error 7"}, "CUDA_ERROR-7": {"ERROR: cuda_error-7"}, "error 7": {"error 7"}, "none": nil,
	} {
		if diff := cmp.Diff(want, texts(w.logs(&baiv1.StreamLogsRequest{Run: id, Search: search}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", search, diff)
		}
	}
	if got := texts(w.logs(&baiv1.StreamLogsRequest{Run: id, Search: "line", Tail: 2})); !slices.Equal(got, numbered(2498, 2500)) {
		t.Errorf("the last: %q", got)
	}
	if got := texts(w.logs(&baiv1.StreamLogsRequest{Run: id, Search: "line", Container: "server"})); len(got) > 0 {
		t.Errorf("of another container: %q", got)
	}
}

// follow follows a log in the background, and returns the received lines.
func (w *fixture) follow(req *baiv1.StreamLogsRequest) (got <-chan []string) {
	w.t.Helper()
	req.Follow = true
	stream, err := w.client.StreamLogs(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan []string, 1)
	go func() {
		var resps []*baiv1.StreamLogsResponse
		for {
			resp, err := stream.Recv()
			if err != nil {
				done <- texts(resps)
				return
			}
			resps = append(resps, resp)
		}
	}()
	return done
}

func TestFollowedLogsEndOnlyWhenTheLastLineThatIsCountedWasSent(t *testing.T) {
	for name, tt := range map[string]struct {
		req  *baiv1.StreamLogsRequest
		want []string
	}{
		"all": {&baiv1.StreamLogsRequest{}, numbered(0, 5)}, "some": {&baiv1.StreamLogsRequest{Search: "line 4"}, numbered(4, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, options{settings: api.Settings{LogsTimeout: time.Hour}})
			id := w.submit(nil)
			w.writeLines(id, 0, numbered(0, 5)...)
			w.store.setFaults(func(f *faults) { f.hiddenFrom = 3 })
			w.endStreams(id, 5)
			w.finishRun(id, "p1")
			tt.req.Run = id
			got := w.follow(tt.req)
			select {
			case lines := <-got:
				t.Fatalf("it ended with %q while the last lines could not be read", lines)
			case <-time.After(time.Second):
			}
			w.store.setFaults(func(f *faults) { f.hiddenFrom = 0 })
			if diff := cmp.Diff(tt.want, <-got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFollowedLogsEndInTimeWhereTheLastLineCannotBeRead(t *testing.T) {
	w := newFixture(t, options{settings: api.Settings{LogsTimeout: 50 * time.Millisecond}})
	id := w.submit(nil)
	w.writeLines(id, 0, numbered(0, 5)...)
	w.store.setFaults(func(f *faults) { f.hiddenFrom = 3 })
	w.endStreams(id, 5)
	w.finishRun(id, "p1")
	if diff := cmp.Diff(numbered(0, 3), <-w.follow(&baiv1.StreamLogsRequest{Run: id})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFollowedLogsEndAtOnceForWhoHasSeenAll(t *testing.T) {
	w := newFixture(t, options{settings: api.Settings{LogsTimeout: time.Hour}})
	id := w.submit(nil)
	w.writeLines(id, 0, numbered(0, 5)...)
	w.endStreams(id, 5)
	w.finishRun(id, "p1")
	all := w.logs(&baiv1.StreamLogsRequest{Run: id})
	if got := <-w.follow(&baiv1.StreamLogsRequest{Run: id, Cursor: all[len(all)-1].GetCursor()}); len(got) > 0 {
		t.Errorf("sent again: %q", got)
	}
}

func TestResponsesStayBelowOneMiB(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	var want []string
	for i := range 60 {
		want = append(want, strings.Repeat(fmt.Sprint(i%10), 64<<10))
	}
	w.writeLines(id, 0, want...)
	resps := w.logs(&baiv1.StreamLogsRequest{Run: id})
	if !slices.Equal(want, texts(resps)) {
		t.Error("lines differ")
	}
	for _, r := range resps {
		if n := proto.Size(r); n > 1<<20 {
			t.Errorf("a response has %d bytes", n)
		}
	}
}

func TestFollowedLogsEndWhenTheRunIsOverAndAllIsThere(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	w.writeLines(id, 0, numbered(0, 3)...)
	stream, err := w.client.StreamLogs(t.Context(), &baiv1.StreamLogsRequest{Run: id, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	w.finishRun(id, "p1")
	w.writeLines(id, 3, numbered(3, 5)...)
	w.endStreams(id, 5)
	if diff := cmp.Diff(numbered(0, 5), texts(append([]*baiv1.StreamLogsResponse{first}, receiveAll(t, stream, nil)...))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// endStreams ends the streams of pod p1, in which the benchmark wrote that many lines.
func (w *fixture) endStreams(run string, lines int64) {
	w.t.Helper()
	for _, s := range []struct{ stream, topic string }{
		{event.StreamOutput, event.TopicLogs}, {event.StreamOutput, event.TopicMetrics}, {event.StreamMetrics, event.TopicMetrics}, {event.StreamFIFO, event.TopicMetrics},
	} {
		o, end := origin(run, "benchmark", s.stream), &event.End{Last: -1}
		var err error
		if s.topic == event.TopicLogs {
			err = w.store.AppendLines(w.t.Context(), []store.Lines{{Origin: o, End: &event.End{Count: lines, Last: lines - 1}}})
		} else {
			err = w.store.AppendSamples(w.t.Context(), []store.Samples{{Origin: o, End: end}})
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestFollowedLogsEndInTimeWhereWhatIsMissingNeverComes(t *testing.T) {
	w := newFixture(t, options{settings: api.Settings{LogsTimeout: 300 * time.Millisecond}})
	id := w.submit(nil)
	w.writeLines(id, 0, numbered(0, 3)...)
	w.finishRun(id, "p1")
	began := time.Now()
	if diff := cmp.Diff(numbered(0, 3), texts(w.logs(&baiv1.StreamLogsRequest{Run: id, Follow: true}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// writeSamples stores 2500 samples, every second one of loss.
func (w *fixture) writeSamples(run string) {
	w.t.Helper()
	b := store.Samples{Origin: origin(run, "benchmark", event.StreamMetrics)}
	step := int64(7)
	for i := range 2500 {
		s := event.Sample{Seq: int64(i), Name: []string{"loss", "speed"}[i%2], Unit: "s", Time: int64(i), Step: &step, Labels: map[string]string{"phase": "train"}}
		s.Set(float64(i))
		if i == 3 {
			s.Set(math.NaN())
		}
		b.Samples = append(b.Samples, s)
	}
	if err := w.store.AppendSamples(w.t.Context(), []store.Samples{b}); err != nil {
		w.t.Fatal(err)
	}
}

// query returns the matching samples, and for each cursor the number of samples before
// it.
func (w *fixture) query(req *baiv1.QueryMetricsRequest) (samples []*baiv1.Sample, cursors map[string]int) {
	w.t.Helper()
	stream, err := w.client.QueryMetrics(w.t.Context(), req)
	cursors = make(map[string]int)
	for _, r := range receiveAll(w.t, stream, err) {
		samples = append(samples, r.GetSamples()...)
		cursors[r.GetCursor()] = len(samples)
	}
	return samples, cursors
}

func TestMetrics(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	w.writeSamples(id)
	samples, cursors := w.query(&baiv1.QueryMetricsRequest{Run: id})
	if len(samples) != 2500 || len(cursors) < 3 {
		t.Fatalf("%d samples in %d responses", len(samples), len(cursors))
	}
	if s := samples[2]; s.GetMetric() != "loss" || s.GetValue() != 2 || s.GetStep() != 7 || s.GetUnit() != "s" || s.GetLabels()["phase"] != "train" || s.GetSequence() != 2 {
		t.Errorf("sample %v", s)
	}
	if !math.IsNaN(samples[3].GetValue()) {
		t.Errorf("sample %v, want NaN", samples[3])
	}
	for cursor, n := range cursors {
		if rest, _ := w.query(&baiv1.QueryMetricsRequest{Run: id, Cursor: cursor}); len(rest) != 2500-n {
			t.Errorf("%d samples after %d", len(rest), n)
		}
	}
	if speed, _ := w.query(&baiv1.QueryMetricsRequest{Run: id, Metrics: []string{"speed"}}); len(speed) != 1250 {
		t.Errorf("%d samples of speed", len(speed))
	}
	if _, cursors := w.query(&baiv1.QueryMetricsRequest{Run: id, Metrics: []string{"none"}}); len(cursors) != 1 {
		t.Errorf("%d responses without samples, want one with the cursor", len(cursors))
	}
	stream, err := w.client.QueryMetrics(t.Context(), &baiv1.QueryMetricsRequest{Run: id, Cursor: "made up"})
	if err == nil {
		_, err = stream.Recv()
	}
	checkRefused(t, err, codes.InvalidArgument, "cursor")
}

func TestCompletenessIsPartOfARun(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	w.writeLines(id, 0, numbered(0, 3)...)
	w.finishRun(id, "p1")
	get := func() *baiv1.Completeness {
		t.Helper()
		resp, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetRun().GetCompleteness()
	}
	if c := get(); c.GetComplete() || c.GetLines() != 3 || len(c.GetAwaited()) == 0 {
		t.Errorf("before the end: %v", c)
	}
	w.endStreams(id, 3)
	if c := get(); !c.GetComplete() || c.GetLines() != 3 || c.GetMissing() != 0 || len(c.GetAwaited()) != 0 {
		t.Errorf("after the end: %v", c)
	}
}
