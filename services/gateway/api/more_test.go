package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// upperRenderer renders a descriptor as its text in upper case.
type upperRenderer struct{}

func (upperRenderer) Render(d *descriptors.Descriptor, text []byte, _ bool) ([]byte, error) {
	if d.Info.Description == "refuse" {
		return nil, errors.New("it is refused")
	}
	return bytes.ToUpper(text), nil
}

func TestTheRunOfAComparisonIsHeldToWhatTheRepeatedRunHad(t *testing.T) {
	w := newFixture(t, options{})
	first := w.submit(nil)
	req := &baiv1.SubmitRunRequest{IdempotencyKey: "k", DescriptorToml: []byte(valid), RerunOf: first, Compares: "c"}
	resp, err := w.client.SubmitRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(resp.GetWarnings()); n == 0 || !strings.Contains(resp.GetWarnings()[n-1].GetMessage(), "the repetition of run "+first+" may differ: image ") {
		t.Errorf("warnings: %v", resp.GetWarnings())
	}
	got, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: resp.GetRunId()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&baiv1.Lineage{RerunOf: first, Compares: "c"}, got.GetRun().GetLineage(), protocmp.Transform()); diff != "" {
		t.Errorf("its lineage (-want +got):\n%s", diff)
	}
	req.Compares = "d"
	_, err = w.client.SubmitRun(t.Context(), req)
	checkRefused(t, err, codes.AlreadyExists, "was used before")
	_, err = w.client.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: []byte(valid), Compares: "c"})
	checkRefused(t, err, codes.InvalidArgument, "compares")
}

func TestWhatIsRunIsTheDescriptorWithItsOverrides(t *testing.T) {
	w := newFixture(t, options{})
	first := w.submit(nil)
	sum := strings.Repeat("ab", 32)
	req := &baiv1.SubmitRunRequest{
		IdempotencyKey: "k", DescriptorToml: []byte(valid), DescriptorFile: "bench.toml", RerunOf: strings.ToUpper(first),
		Overrides:   []*baiv1.Override{{Path: "info.description", Value: "changed"}, {Path: "info.labels.color", Value: "blue"}},
		Origination: &baiv1.Origination{Uri: "https://user:geheim@example.com/b.toml?token=geheim", Sha256: strings.ToUpper(sum)},
	}
	resp, err := w.client.SubmitRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: resp.GetRunId()})
	if err != nil {
		t.Fatal(err)
	}
	run := got.GetRun()
	text := strings.Replace(strings.Replace(valid, `"hello"`, `"changed"`, 1), `"red"`, `"blue"`, 1)
	if diff := cmp.Diff(text, run.GetDescriptorToml()); diff != "" {
		t.Errorf("what is run (-want +got):\n%s", diff)
	}
	want := &baiv1.Run{
		Overrides: req.GetOverrides(), Origination: &baiv1.Origination{Uri: "https://example.com/b.toml", Sha256: sum},
		Lineage: &baiv1.Lineage{RerunOf: first}, Labels: map[string]string{"color": "blue"},
	}
	if diff := cmp.Diff(want, &baiv1.Run{Overrides: run.GetOverrides(), Origination: run.GetOrigination(), Lineage: run.GetLineage(), Labels: run.GetLabels()}, protocmp.Transform()); diff != "" {
		t.Errorf("what is kept beside it (-want +got):\n%s", diff)
	}
	for _, sub := range w.submitted(resp.GetRunId()) {
		if sub.Descriptor != text || sub.RerunOf != first {
			t.Errorf("published %+v", sub)
		}
	}

	again := &baiv1.SubmitRunRequest{IdempotencyKey: "k", DescriptorToml: []byte(text), DescriptorFile: "other.toml"}
	if repeated, err := w.client.SubmitRun(t.Context(), again); err != nil || repeated.GetRunId() != resp.GetRunId() || !repeated.GetRepeated() {
		t.Errorf("the same to be run, written otherwise: %v, %v", repeated, err)
	}
	again.Overrides = []*baiv1.Override{{Path: "info.description", Value: "other"}}
	_, err = w.client.SubmitRun(t.Context(), again)
	checkRefused(t, err, codes.AlreadyExists, "was used before")
	list, err := w.client.ListRuns(t.Context(), &baiv1.ListRunsRequest{})
	if err != nil || len(list.GetRuns()[0].GetOverrides()) != 0 || list.GetRuns()[0].GetOrigination() == nil {
		t.Errorf("listed: %v, %v", list, err)
	}
}

// submitted returns the published submissions of a run.
func (w *fixture) submitted(run string) (all []event.Submitted) {
	d, err := w.store.Doc(w.t.Context(), store.KindSubmission, run)
	if err != nil {
		w.t.Fatal(err)
	}
	m := event.Message{Topic: event.TopicSubmitted, Key: run, Type: "bai.submitted.v1", Value: d.Value}
	sub, err := event.Decode[event.Submitted](m)
	if err != nil {
		w.t.Fatal(err)
	}
	return append(all, sub)
}

func TestWhatARequestSaysOfItsDescriptorIsChecked(t *testing.T) {
	w := newFixture(t, options{})
	sum := strings.Repeat("ab", 32)
	for name, tt := range map[string]struct {
		change func(*baiv1.SubmitRunRequest)
		path   string
	}{
		"a run that does not exist is not repeated":      {func(r *baiv1.SubmitRunRequest) { r.RerunOf = "01k8h4fzqh3v7x9y2m5n8p0r4t" }, "rerun_of"},
		"a name is not the ID of a run that is repeated": {func(r *baiv1.SubmitRunRequest) { r.RerunOf = "nightly" }, "rerun_of"},
		"a descriptor comes from no file":                {func(r *baiv1.SubmitRunRequest) { r.Origination = &baiv1.Origination{Uri: "file:///x", Sha256: sum} }, "origination"},
		"where it comes from has a digest":               {func(r *baiv1.SubmitRunRequest) { r.Origination = &baiv1.Origination{Uri: "s3://b/k", Sha256: "x"} }, "origination"},
		"overrides are not larger than descriptors": {func(r *baiv1.SubmitRunRequest) {
			r.Overrides = []*baiv1.Override{{Path: "info.description", Value: strings.Repeat("x", 65<<10)}}
		}, "overrides"},
		"an override is held to the rules": {func(r *baiv1.SubmitRunRequest) {
			r.Overrides = []*baiv1.Override{{Path: "hardware.instance_tipe", Value: "x"}}
		}, "hardware.instance_tipe"},
	} {
		t.Run(name, func(t *testing.T) {
			req := &baiv1.SubmitRunRequest{DescriptorToml: []byte(valid)}
			tt.change(req)
			_, err := w.client.SubmitRun(t.Context(), req)
			faults := checkRefused(t, err, codes.InvalidArgument, "")
			if len(faults) == 0 || faults[0].GetPath() != tt.path {
				t.Errorf("faults %v, want one of %s", faults, tt.path)
			}
		})
	}
}

func TestTheServerSaysTheFaultsThatTheParserSays(t *testing.T) {
	w := newFixture(t, options{})
	files, err := filepath.Glob("../../../descriptors/parser/testdata/bad/*.toml")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, want := parser.Parse(filepath.Base(file), text)
		resp, err := w.descriptors.ValidateDescriptor(t.Context(), &baiv1.ValidateDescriptorRequest{DescriptorToml: text, DescriptorFile: filepath.Base(file)})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if diff := cmp.Diff(want, faultsFrom(resp.GetFaults())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if errs := want.Errors(); len(errs) > 0 && len(want) <= 50 {
			_, err := w.client.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: text, DescriptorFile: filepath.Base(file)})
			if diff := cmp.Diff(want, faultsFrom(checkRefused(t, err, codes.InvalidArgument, ""))); diff != "" {
				t.Errorf("submit %s (-want +got):\n%s", file, diff)
			}
		}
	}
}

func faultsFrom(faults []*baiv1.Fault) (out parser.Faults) {
	for _, f := range faults {
		out = append(out, parser.Fault{
			File: f.GetFile(), Line: int(f.GetLine()), Column: int(f.GetColumn()), Path: f.GetPath(), Code: f.GetCode(), Message: f.GetMessage(), Remedy: f.GetRemedy(), Warning: f.GetWarning(),
		})
	}
	return out
}

func TestValidationByThePlatformRefusesAnEngineThatItLacks(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{parser: parser.Parser{Engines: []string{"default", "local"}}})
	for engine, want := range map[string][]string{"default": nil, "local": nil, "kubernetes": {"BAI0029"}, "aws.sagemaker": {"BAI0029"}} {
		checked, err := w.descriptors.ValidateDescriptor(t.Context(), &baiv1.ValidateDescriptorRequest{
			DescriptorToml: []byte(valid), Overrides: []*baiv1.Override{{Path: "info.execution_engine", Value: engine}},
		})
		var got []string
		for _, f := range faultsFrom(checked.GetFaults()).Errors() {
			got = append(got, f.Code)
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", engine, err, diff)
		}
	}
}

func TestOverridesAreValidatedAndRenderedToo(t *testing.T) {
	w := newFixture(t, options{})
	set := []*baiv1.Override{{Path: "info.description", Value: "1 = 1"}}
	rendered, err := w.descriptors.RenderDescriptor(t.Context(), &baiv1.RenderDescriptorRequest{DescriptorToml: []byte(valid), Overrides: set})
	if err != nil || rendered.GetManifest() != strings.ToUpper(strings.Replace(valid, `"hello"`, `"1 = 1"`, 1)) {
		t.Errorf("rendered %v, %v", rendered, err)
	}
	_, err = w.descriptors.RenderDescriptor(t.Context(), &baiv1.RenderDescriptorRequest{DescriptorToml: []byte("x"), DescriptorFile: "a.toml"})
	checkRefused(t, err, codes.InvalidArgument, "a.toml:1:")
	_, err = w.descriptors.RenderDescriptor(t.Context(), &baiv1.RenderDescriptorRequest{DescriptorToml: []byte(valid), Overrides: []*baiv1.Override{{Path: "info.description", Value: "refuse"}}})
	checkRefused(t, err, codes.InvalidArgument, "it is refused")
	checked, err := w.descriptors.ValidateDescriptor(t.Context(), &baiv1.ValidateDescriptorRequest{DescriptorToml: []byte(valid), Overrides: []*baiv1.Override{{Path: "env.docker_image", Value: ""}}})
	_, _, want := parser.ParseWith("descriptor.toml", []byte(valid), []parser.Override{{Path: "env.docker_image", Value: ""}})
	if diff := cmp.Diff(want, faultsFrom(checked.GetFaults())); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestDescriptorsAreKeptAndFound(t *testing.T) {
	w := newFixture(t, options{})
	ann := metadata.AppendToOutgoingContext(t.Context(), baiv1.UserMetadata, "ann")
	for i, text := range []string{valid, valid, valid + "\n"} {
		resp, err := w.descriptors.PushDescriptor(ann, &baiv1.PushDescriptorRequest{Name: "a", DescriptorToml: []byte(text)})
		if err != nil || resp.GetRepeated() != (i == 1) || resp.GetDescriptor_().GetVersion() != int32(max(i, 1)) || resp.GetDescriptor_().GetOwner() != "ann" {
			t.Errorf("%d: %v, %v", i, resp, err)
		}
	}
	list, err := w.descriptors.ListDescriptors(t.Context(), &baiv1.ListDescriptorsRequest{Name: "a", PageSize: 1})
	if err != nil || len(list.GetDescriptors()) != 1 || list.GetDescriptors()[0].GetVersion() != 2 || list.GetNextPageToken() == "" {
		t.Fatalf("listed %v, %v", list, err)
	}
	list, err = w.descriptors.ListDescriptors(t.Context(), &baiv1.ListDescriptorsRequest{Name: "a", PageSize: 1, PageToken: list.GetNextPageToken()})
	if err != nil || len(list.GetDescriptors()) != 1 || list.GetDescriptors()[0].GetVersion() != 1 || list.GetNextPageToken() != "" {
		t.Errorf("listed %v, %v", list, err)
	}
	sum := sha256.Sum256([]byte(valid))
	got, err := w.descriptors.GetDescriptor(t.Context(), &baiv1.GetDescriptorRequest{Uri: "stored:a@1"})
	if err != nil || string(got.GetDescriptorToml()) != valid || got.GetOrigination().GetUri() != "stored:a@1" || got.GetOrigination().GetSha256() != hex.EncodeToString(sum[:]) {
		t.Errorf("got %v, %v", got, err)
	}
	for what, call := range map[string]func() error{
		"page_token": func() error {
			_, err := w.descriptors.ListDescriptors(t.Context(), &baiv1.ListDescriptorsRequest{PageToken: "x"})
			return err
		},
		"page_size": func() error {
			_, err := w.descriptors.ListDescriptors(t.Context(), &baiv1.ListDescriptorsRequest{PageSize: -1})
			return err
		},
		"uri": func() error {
			_, err := w.descriptors.GetDescriptor(t.Context(), &baiv1.GetDescriptorRequest{Uri: "file:///etc/passwd"})
			return err
		},
		"name": func() error {
			_, err := w.descriptors.PushDescriptor(t.Context(), &baiv1.PushDescriptorRequest{Name: "a/b", DescriptorToml: []byte(valid)})
			return err
		},
	} {
		checkRefused(t, call(), codes.InvalidArgument, what)
	}
	_, err = w.descriptors.GetDescriptor(t.Context(), &baiv1.GetDescriptorRequest{Uri: "stored:a@3"})
	checkRefused(t, err, codes.NotFound, `version 3 of descriptor "a"`)
}

// fakeSource returns the same text for every URL.
type fakeSource string

// Read implements catalog.Source.
func (e fakeSource) Read(context.Context, string) ([]byte, error) { return []byte(e), nil }

func TestOfElsewhereOnlyDescriptorsAreRead(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		code codes.Code
	}{
		"a descriptor":          {valid, codes.OK},
		"credentials":           {"[default]\naws_secret_access_key = \"hunter2\"\n", codes.InvalidArgument},
		"no TOML":               {"-----BEGIN PRIVATE KEY-----\nhunter2\n", codes.InvalidArgument},
		"a descriptor at fault": {strings.Replace(valid, "[env]", "[enw]", 1), codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, options{source: fakeSource(tt.text)})
			got, err := w.descriptors.GetDescriptor(t.Context(), &baiv1.GetDescriptorRequest{Uri: "s3://team/file"})
			if status.Code(err) != tt.code || err == nil && string(got.GetDescriptorToml()) != tt.text {
				t.Errorf("%v, %v, want %s", got, err, tt.code)
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Errorf("the answer has what the file has: %v", err)
			}
		})
	}
}

func TestArtifactsAreListedAndSentFromAnyPlace(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	content := bytes.Repeat([]byte("0123456789abcdef"), 100_000) // more than fits in one response
	if _, _, err := w.files.Put(t.Context(), id, "1/benchmark-0/a", -1, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	list, err := w.client.ListArtifacts(t.Context(), &baiv1.ListArtifactsRequest{Run: id})
	sum := sha256.Sum256(content)
	if err != nil || len(list.GetArtifacts()) != 1 || list.GetArtifacts()[0].GetSize() != int64(len(content)) || list.GetArtifacts()[0].GetSha256() != hex.EncodeToString(sum[:]) {
		t.Fatalf("listed %v, %v", list, err)
	}
	for _, offset := range []int64{0, 1, 1_000_000, int64(len(content))} {
		stream, err := w.client.GetArtifact(t.Context(), &baiv1.GetArtifactRequest{Run: id, Name: "1/benchmark-0/a", Offset: offset})
		var got []byte
		for _, r := range receiveAll(t, stream, err) {
			if len(r.GetData()) > 1<<20 {
				t.Errorf("a response has %d bytes", len(r.GetData()))
			}
			got = append(got, r.GetData()...)
		}
		if !bytes.Equal(content[offset:], got) {
			t.Errorf("from %d: %d bytes differ", offset, len(got))
		}
	}
	for _, tt := range []struct {
		name   string
		offset int64
		code   codes.Code
	}{{"1/benchmark-0/b", 0, codes.NotFound}, {"../x", 0, codes.InvalidArgument}, {"1/benchmark-0/a", -1, codes.OutOfRange}, {"1/benchmark-0/a", 1 << 40, codes.OutOfRange}} {
		stream, err := w.client.GetArtifact(t.Context(), &baiv1.GetArtifactRequest{Run: id, Name: tt.name, Offset: tt.offset})
		if err == nil {
			_, err = stream.Recv()
		}
		checkRefused(t, err, tt.code, "")
	}
}

func TestMetricsOfManyRunsComeRunByRunFromAnyPlace(t *testing.T) {
	w := newFixture(t, options{})
	var want []string
	for i := range 4 {
		id := w.submit(func(r *baiv1.SubmitRunRequest) {
			r.Labels = map[string]string{"task_name": []string{"train", "test"}[i%2]}
		})
		if i == 2 {
			continue // this stream has no metrics
		}
		w.writeSamples(id)
		if i%2 == 1 {
			want = append([]string{id}, want...)
		}
	}
	req := &baiv1.QueryMetricsRequest{Metrics: []string{"speed"}, Filter: &baiv1.ListRunsRequest{Labels: map[string]string{"task_name": "test"}}}
	stream, err := w.client.QueryMetrics(t.Context(), req)
	resps := receiveAll(t, stream, err)
	if diff := cmp.Diff(want, runsInOrder(resps)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	total := countSamples(resps)
	if total != 2*1250 {
		t.Errorf("%d samples", total)
	}
	seen := 0
	for _, r := range resps { // each response has a cursor
		seen += len(r.GetSamples())
		req.Cursor = r.GetCursor()
		late := w.submit(func(r *baiv1.SubmitRunRequest) { r.Labels = map[string]string{"task_name": "test"} })
		w.writeSamples(late) // this run is newer than the ones that follow
		stream, err := w.client.QueryMetrics(t.Context(), req)
		if got := countSamples(receiveAll(t, stream, err)); got != total-seen {
			t.Errorf("%d samples after %d", got, seen)
		}
	}
	req.Cursor, req.Since, req.Until = "", timestamppb.New(time.Unix(0, 11)), timestamppb.New(time.Unix(0, 21))
	req.Filter.Order, req.Filter.PageSize, req.Filter.PageToken = baiv1.Order_ORDER_OLDEST_FIRST, 7, "ignored"
	stream, err = w.client.QueryMetrics(t.Context(), req)
	resps = receiveAll(t, stream, err)
	if got := runsInOrder(resps); got[0] != want[1] || len(resps[0].GetSamples()) != 5 {
		t.Errorf("oldest first, between two times: %v with %d", got, len(resps[0].GetSamples()))
	}
	for what, req := range map[string]*baiv1.QueryMetricsRequest{
		"run":    {},
		"cursor": {Filter: &baiv1.ListRunsRequest{}, Cursor: "made up"},
		"phases": {Filter: &baiv1.ListRunsRequest{Phases: []baiv1.Phase{99}}},
	} {
		stream, err := w.client.QueryMetrics(t.Context(), req)
		if err == nil {
			_, err = stream.Recv()
		}
		checkRefused(t, err, codes.InvalidArgument, what)
	}
}

// runsInOrder returns the runs of responses, each once.
func runsInOrder(resps []*baiv1.QueryMetricsResponse) (runs []string) {
	for _, r := range resps {
		if n := len(runs); n == 0 || runs[n-1] != r.GetRunId() {
			runs = append(runs, r.GetRunId())
		}
	}
	return runs
}

func countSamples(resps []*baiv1.QueryMetricsResponse) (n int) {
	for _, r := range resps {
		n += len(r.GetSamples())
	}
	return n
}

func TestLogsBeginAtATime(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	w.writeLines(id, 0, numbered(0, 30)...)
	since := timestamppb.New(time.Unix(0, 25))
	resps := w.logs(&baiv1.StreamLogsRequest{Run: id, Since: since})
	if diff := cmp.Diff(numbered(25, 30), texts(resps)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(numbered(28, 30), texts(w.logs(&baiv1.StreamLogsRequest{Run: id, Since: since, Tail: 2}))); diff != "" {
		t.Errorf("with tail (-want +got):\n%s", diff)
	}
}

func TestListsAreFilteredByTextInEitherOrder(t *testing.T) {
	w := newFixture(t, options{})
	var ids []string
	for _, name := range []string{"Nightly-1", "weekly", "nightly-2"} {
		ids = append(ids, w.submit(func(r *baiv1.SubmitRunRequest) { r.Name = name }))
	}
	if diff := cmp.Diff([]string{ids[2], ids[0]}, w.list(&baiv1.ListRunsRequest{Text: "NIGHT", PageSize: 1})); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ids, w.list(&baiv1.ListRunsRequest{Text: "bench.t", Order: baiv1.Order_ORDER_OLDEST_FIRST, PageSize: 2})); diff != "" {
		t.Errorf("oldest first (-want +got):\n%s", diff)
	}
	for what, req := range map[string]*baiv1.ListRunsRequest{
		"phases": {Phases: []baiv1.Phase{baiv1.Phase_PHASE_UNSPECIFIED}}, "outcomes": {Outcomes: []baiv1.Outcome{7}}, "order": {Order: 9}, "text": {Text: strings.Repeat("x", 2000)},
	} {
		_, err := w.client.ListRuns(t.Context(), req)
		checkRefused(t, err, codes.InvalidArgument, what)
	}
}

func TestVersionsThatDifferAreToldApart(t *testing.T) {
	w := newFixture(t, options{})
	needs := func(revision string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), baiv1.RevisionMetadata, revision)
	}
	_, err := w.client.ListRuns(needs(fmt.Sprint(baiv1.Revision)), &baiv1.ListRunsRequest{})
	if err != nil {
		t.Errorf("a client that needs what there is: %v", err)
	}
	_, err = w.client.ListRuns(needs("99"), &baiv1.ListRunsRequest{})
	checkRefused(t, err, codes.FailedPrecondition, fmt.Sprintf("the client needs revision 99 of the API, but this server is v1.2.3 and understands revision %d of the API: update the server", baiv1.Revision))
	stream, err := w.client.WatchRun(needs("99"), &baiv1.WatchRunRequest{Run: "x"})
	if err == nil {
		_, err = stream.Recv()
	}
	checkRefused(t, err, codes.FailedPrecondition, "revision 99")
	_, err = w.client.ListRuns(needs("new"), &baiv1.ListRunsRequest{})
	checkRefused(t, err, codes.InvalidArgument, "bai-revision")
	if v, err := w.client.GetVersion(needs("99"), &baiv1.GetVersionRequest{}); err != nil || v.GetRevision() != baiv1.Revision {
		t.Errorf("version: %v, %v", v, err)
	}
	for _, method := range []string{"/bai.v1.RunService/Fly", "/bai.v9.RunService/GetRun"} {
		err := w.conn.Invoke(t.Context(), method, &baiv1.GetVersionRequest{}, &baiv1.GetVersionResponse{})
		checkRefused(t, err, codes.Unimplemented, method+" does not exist here: this server is v1.2.3")
	}
}

func TestARequestThatIsTooLargeIsToldHowLargeItMayBe(t *testing.T) {
	w := newFixture(t, options{})
	for size, want := range map[int]string{
		300 << 10: "larger than 256 KiB", 2 << 20: "1048576 at most", 5 << 20: "4194304",
	} {
		_, err := w.client.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{DescriptorToml: bytes.Repeat([]byte("x"), size)})
		if s := status.Convert(err); s.Code() == codes.OK || !strings.Contains(s.Message(), want) {
			t.Errorf("%d bytes: %v, want %q", size, err, want)
		}
	}
}

func TestARunThatHasFinishedListsTheDestinationsThatLackIt(t *testing.T) {
	w := newFixture(t, options{})
	id := w.submit(nil)
	w.finishRun(id)
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	err := store.Create(t.Context(), w.store, store.KindOwed, id, store.Owed{
		Run: id, Since: since, Destinations: []store.OwedDestination{{Name: "lake"}, {Name: "warehouse", Error: "the database cannot be reached"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	want := []*baiv1.OwedDestination{
		{Name: "lake", Since: timestamppb.New(since)},
		{Name: "warehouse", Since: timestamppb.New(since), Error: "the database cannot be reached"},
	}
	if diff := cmp.Diff(want, got.GetRun().GetOwed(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}
