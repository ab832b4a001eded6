package elastic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

func testSetup(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	prefix := newPrefix(t, server)
	var wg sync.WaitGroup
	for range 6 { // services that start together
		wg.Go(func() {
			if _, err := open(t, server, elastic.Settings{Prefix: prefix}).Setup(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := open(t, server, elastic.Settings{Prefix: prefix, ManualSetup: true})
	check(t, s.CreateDoc(t.Context(), store.Doc{Kind: store.KindPlan, Key: "k", Value: []byte(`1`)}))
	all := func() string {
		return string(sendRequest(t.Context(), t, http.MethodGet, server.URL+"/_index_template/"+prefix+"-*", "")) +
			string(sendRequest(t.Context(), t, http.MethodGet, server.URL+"/"+prefix+"-*/_mapping", ""))
	}
	before := all()
	if done, err := s.Setup(t.Context()); err != nil || len(done) > 0 {
		t.Errorf("the second setup did %q, %v", done, err)
	}
	check(t, s.Check(t.Context()))
	if diff := cmp.Diff(before, all()); diff != "" {
		t.Errorf("the second setup changed (-before +after):\n%s", diff)
	}
	missing := open(t, server, elastic.Settings{ManualSetup: true})
	if _, err := missing.Run(t.Context(), "r"); err == nil || !strings.Contains(err.Error(), "bai admin store setup") {
		t.Errorf("without templates, which nobody may make: %v, want the remedy", err)
	}
}

func testNewer(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	const newer = `"_meta":{"bai":{"version":99}}`
	for name, body := range map[string]string{"_index_template/%-logs": `{"index_patterns":["%-logs-*"],"template":{"mappings":{` + newer + `}}}`, "%-status-2026.01": `{"mappings":{` + newer + `}}`} {
		prefix := newPrefix(t, server)
		sendRequest(t.Context(), t, http.MethodPut, server.URL+"/"+strings.ReplaceAll(name, "%", prefix), strings.ReplaceAll(body, "%", prefix))
		s := open(t, server, elastic.Settings{Prefix: prefix})
		_, err := s.Run(t.Context(), "r")
		_, set := s.Setup(t.Context())
		for _, got := range []error{err, set, s.Check(t.Context())} {
			if !errors.Is(got, schema.ErrNewer) || !strings.Contains(got.Error(), "version 99 and this program knows up to") || !strings.Contains(got.Error(), "run that version") {
				t.Errorf("%s: %v, want %v and the remedy", name, got, schema.ErrNewer)
			}
		}
		if got := sendRequest(t.Context(), t, http.MethodGet, server.URL+"/"+prefix+"-docs", ""); !strings.Contains(string(got), "index_not_found") {
			t.Errorf("%s: something was made: %s", name, got)
		}
	}
}

// testOlder stands for a version before the first: a template and an index that
// lack everything.
func testOlder(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	prefix := newPrefix(t, server)
	older := `"mappings":{"dynamic":"strict","_meta":{"bai":{"version":0}},"properties":{"@timestamp":{"type":"date_nanos"}}}`
	sendRequest(t.Context(), t, http.MethodPut, server.URL+"/_index_template/"+prefix+"-logs", `{"index_patterns":["`+prefix+`-logs-*"],"priority":250,"template":{`+older+`}}`)
	sendRequest(t.Context(), t, http.MethodPut, server.URL+"/"+prefix+"-logs-other", `{`+older+`}`)
	s := open(t, server, elastic.Settings{Prefix: prefix})
	check(t, s.AppendLines(t.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: []event.Line{storetest.NewLine(1, "x")}}}))
	check(t, s.Check(t.Context()))
}

// testSettings changes the settings that an operator may choose.
func testSettings(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	set := elastic.Settings{Prefix: newPrefix(t, server), Refresh: time.Second}
	setUp(t, open(t, server, set))
	set.Shards, set.Replicas, set.Refresh = 2, "0-2", 8*time.Second
	s := open(t, server, set)
	done, err := s.Setup(t.Context())
	check(t, err)
	all := strings.Join(done, "\n") + "\n"
	for _, want := range []string{
		"index template %-logs: number_of_shards is 2, and was 1, for indices that are made from now on\n",
		"index template %-metrics: auto_expand_replicas is 0-2, and was 0-1, for indices that are made from now on\n",
		"index template %-logs: refresh_interval is 8000ms, and was 1000ms, for indices that are made from now on\n",
		"index %-docs: refresh_interval is 2000ms, and was 250ms\n",
		"index %-runs: auto_expand_replicas is 0-2, and was 0-1\n",
	} {
		if want = strings.ReplaceAll(want, "%", set.Prefix); !strings.Contains(all, want) {
			t.Errorf("it did not say %q:\n%s", want, all)
		}
	}
	check(t, s.AppendLines(t.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: []event.Line{storetest.NewLine(1, "x")}}}))
	for index, want := range map[string]string{"-logs-other": `"number_of_shards":"2"`, "-docs": `"refresh_interval":"2000ms"`} {
		if got := sendRequest(t.Context(), t, http.MethodGet, server.URL+"/"+set.Prefix+index+"/_settings", ""); !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, want %s", index, got, want)
		}
	}
	if done, err := s.Setup(t.Context()); err != nil || len(done) > 0 {
		t.Errorf("then it did %q, %v", done, err)
	}
}

func setUp(t *testing.T, s *elastic.Store) {
	t.Helper()
	_, err := s.Setup(t.Context())
	check(t, err)
}

func testForget(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	s := open(t, server, elastic.Settings{})
	for id, at := range map[string]time.Time{
		"01kdvr00070000000000000007": time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), "01kgcr00070000000000000007": time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), "no-time": time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
	} {
		r, c := storetest.NewRun(id, at)
		r.Phase = event.PhaseFinished
		check(t, s.PutRun(t.Context(), r, c))
		check(t, s.AppendLines(t.Context(), []store.Lines{{Origin: storetest.NewOrigin(id, "p"), Lines: []event.Line{storetest.NewLine(1, "x")}}}))
		check(t, s.PutPoints(t.Context(), storetest.NewPoints(id, at, 1)))
	}
	open, c := storetest.NewRun("01kdvr00080000000000000008", time.Date(2026, 1, 2, 0, 0, 1, 0, time.UTC))
	check(t, s.PutRun(t.Context(), open, c))
	until := time.Date(2026, 2, 15, 0, 0, 0, 0, time.UTC)
	past, err := s.Expired(t.Context(), until)
	if err != nil || len(past.Indices) != 4 || past.Runs != 1 || len(past.Unfinished) != 1 || past.Unfinished[0] != open.ID {
		t.Errorf("what would be forgotten: %+v, %v", past, err)
	}
	if names, err := s.DeleteExpired(t.Context(), until); !errors.Is(err, elastic.ErrUnfinished) || !strings.Contains(err.Error(), open.ID) || len(names) > 0 {
		t.Errorf("forgot %q while a run goes on: %v", names, err)
	}
	open.Revision, open.Phase, c.Revision, c.Event = 2, event.PhaseFinished, 2, "end"
	check(t, s.PutRun(t.Context(), open, c))
	for n, want := range []int{4, 0} { // logs, sources, points and changes; then none
		names, err := s.DeleteExpired(t.Context(), until)
		check(t, err)
		if len(names) != want {
			t.Errorf("time %d: forgot %q, want %d indices", n+1, names, want)
		}
	}
	mark, _, err := store.Get[store.Forgotten](t.Context(), s, store.KindForgotten, store.ForgottenKey)
	if want := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC); err != nil || !mark.Before.Equal(want) {
		t.Errorf("marked %s, %v; want %s", mark.Before, err, want)
	}
	if _, err := s.Run(t.Context(), "01kdvr00070000000000000007"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a run of a month that is over: %v, want %v", err, store.ErrNotFound)
	}
	eventually(t, "the others are there", func() (bool, error) {
		runs, _, err := s.Runs(t.Context(), store.RunFilter{}, "", 10)
		kept, _, _ := s.Lines(t.Context(), store.LineQuery{Run: "01kgcr00070000000000000007"}, "", 10)
		points, _ := s.Points(t.Context(), store.PointQuery{Series: storetest.NewPoints("", until, 1).Key(storetest.NewValue("loss", 1))}, 10)
		return len(runs) == 2 && len(kept) == 1 && len(points) == 2, err
	})
	of, err := s.RunPoints(t.Context(), []string{"01kdvr00070000000000000007", "01kgcr00070000000000000007"}, nil)
	if check(t, err); len(of) != 1 || of[0].Run != "01kgcr00070000000000000007" {
		t.Errorf("points of runs: %v, want those of the later month", of)
	}
}

// testVersions reads the documents that every version of the mappings has written: one file each, which is never changed once another
// version exists.
func testVersions(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	if os.Getenv("GOLDEN") == "write" {
		writeDocuments(t, server)
	}
	files, err := os.ReadDir("testdata/documents")
	check(t, err)
	if len(files) != schema.Version {
		t.Errorf("%d files of documents for %d versions: keep those of each", len(files), schema.Version)
	}
	for _, f := range files {
		t.Run(f.Name(), func(t *testing.T) {
			b, err := os.ReadFile("testdata/documents/" + f.Name())
			check(t, err)
			prefix := newPrefix(t, server)
			s := open(t, server, elastic.Settings{Prefix: prefix})
			setUp(t, s)
			if got := sendRequest(t.Context(), t, http.MethodPost, server.URL+"/_bulk?refresh=true", strings.ReplaceAll(string(b), "PREFIX", prefix)); strings.Contains(string(got), `"errors":true`) {
				t.Fatalf("%s", got)
			}
			wantEverything(t, s)
			version, err := strconv.Atoi(strings.TrimSuffix(f.Name(), ".ndjson"))
			check(t, err)
			testUpgradedPoints(t, s, version >= 5)
			found, _, err := s.Lines(t.Context(), store.LineQuery{Run: ulidOf(7), Tokens: store.Words("WÖRLD hello")}, "", 10)
			if searched := version >= 3; err != nil || searched != (len(found) == 1) {
				t.Errorf("found by tokens, which there are since version 3: %v, %v", found, err)
			}
		})
	}
}

// testUpgradedPoints checks that a store has points, or has them once they are put: documents of earlier versions are no points.
func testUpgradedPoints(t *testing.T, s *elastic.Store, has bool) {
	t.Helper()
	e := newEverything()
	want := []store.RunPoints{e.points}
	read := func() string {
		got, err := s.RunPoints(t.Context(), []string{e.run.ID}, nil)
		check(t, err)
		return cmp.Diff(want, got)
	}
	if diff := read(); has != (diff == "") {
		t.Errorf("has points %t, (-want +got):\n%s", has, diff)
	}
	check(t, s.PutPoints(t.Context(), e.points))
	eventually(t, "points are there, each once", func() (bool, error) {
		series, _, err := s.Series(t.Context(), store.SeriesQuery{}, "", 10)
		return read() == "" && len(series) == 2 && series[0].Points == 1, err
	})
}

// writeDocuments has this version write one of each.
func writeDocuments(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	prefix, e := newPrefix(t, server), newEverything()
	s := open(t, server, elastic.Settings{Prefix: prefix})
	check(t, s.CreateDoc(t.Context(), e.doc))
	check(t, s.PutRun(t.Context(), e.run, e.change))
	check(t, store.Create(t.Context(), s, store.KindSummary, e.run.ID, store.Summaries{Run: e.run.ID, Attempt: 1, Summaries: []store.Summary{{Metric: "loss", N: 1, Median: 0.5}}}))
	check(t, s.PutPoints(t.Context(), e.points))
	check(t, s.AppendSamples(t.Context(), e.samples))
	check(t, s.AppendLines(t.Context(), e.lines))
	sendRequest(t.Context(), t, http.MethodPost, server.URL+"/"+prefix+"-*/_refresh", "")
	var found struct {
		Hits struct {
			Hits []struct {
				Index   string          `json:"_index"`
				ID      string          `json:"_id"`
				Routing string          `json:"_routing,omitempty"`
				Source  json.RawMessage `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	check(t, json.Unmarshal(sendRequest(t.Context(), t, http.MethodGet, server.URL+"/"+prefix+"-*/_search?size=100&sort=_index", ""), &found))
	var b bytes.Buffer
	for _, h := range found.Hits.Hits {
		source := h.Source
		h.Source = nil
		head, err := json.Marshal(map[string]any{"create": map[string]any{"_index": strings.Replace(h.Index, prefix, "PREFIX", 1), "_id": h.ID, "routing": h.Routing}})
		check(t, err)
		b.Write(bytes.ReplaceAll(head, []byte(`,"routing":""`), nil))
		b.WriteByte('\n')
		b.Write(source)
		b.WriteByte('\n')
	}
	check(t, os.MkdirAll("testdata/documents", 0o750))
	check(t, os.WriteFile(fmt.Sprintf("testdata/documents/%d.ndjson", schema.Version), b.Bytes(), 0o600))
}

// everything is one record of each type.
type everything struct {
	doc     store.Doc
	run     store.Run
	change  store.Change
	samples []store.Samples
	lines   []store.Lines
	points  store.RunPoints // there are since version 5
}

func newEverything() everything {
	id, at := ulidOf(7), time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	run, change := storetest.NewRun(id, at)
	run.Name, run.File, run.Labels = "nightly", "a/b.toml", map[string]string{store.LabelTask: "Train", "a.b": "ü"}
	o, step := storetest.NewOrigin(id, "pod-1"), int64(7)
	v := storetest.NewSample(10, "loss", 0.5)
	v.Unit, v.Step, v.Labels = "s", &step, map[string]string{"k": "v"}
	odd := storetest.NewSample(11, "löss", 1)
	odd.Time, odd.Labels = -5, map[string]string{"\x00": "x"}
	nan := v
	nan.Sub, nan.Value, nan.Special = 1, nil, event.NaN
	line := storetest.NewLine(20, "hello \"wörld\"\n")
	line.Stderr, line.Truncated, line.Raw = true, true, 99
	early := storetest.NewLine(30, "early")
	early.Time = -1
	return everything{
		doc: store.Doc{Kind: store.KindSlotTable, Key: "slots", Version: 1, Value: []byte(`{"a":[1]}`)}, run: run, change: change,
		samples: []store.Samples{{Origin: o, Samples: []event.Sample{v, nan, odd}, End: &event.End{Count: 3, Last: 11, Reason: "over"}}},
		lines:   []store.Lines{{Origin: o, Lines: []event.Line{line, early}, End: &event.End{Count: 2, Last: 30, Dropped: 1}}},
		points: store.RunPoints{
			PointRun: store.PointRun{Run: id, Namespace: "pets", Task: "Train", Cell: "size=1K", Time: at, Complete: true, Version: "v1", Nodes: []string{"node-a"}},
			Revision: 1, Points: []store.Summary{{Metric: "loss", N: 1, Median: 0.5, Max: store.Float(math.Inf(1))}, {Metric: "run.duration", Unit: "s", Median: 9}},
		},
	}
}

func wantEverything(t *testing.T, s *elastic.Store) {
	t.Helper()
	e, ctx := newEverything(), t.Context()
	doc, err := s.Doc(ctx, e.doc.Kind, e.doc.Key)
	check(t, err)
	run, err := s.Run(ctx, e.run.ID)
	check(t, err)
	listed, _, err := s.Runs(ctx, store.RunFilter{Owner: e.run.Owner, Text: "train", Labels: e.run.Labels}, "", 2)
	check(t, err)
	changes, err := s.Changes(ctx, e.run.ID, 0, 10)
	check(t, err)
	samples, _, err := s.Samples(ctx, store.SampleQuery{Run: e.run.ID}, "", 10)
	check(t, err)
	lines, _, err := s.Lines(ctx, store.LineQuery{Run: e.run.ID}, "", 10)
	check(t, err)
	streams, err := s.Streams(ctx, e.run.ID)
	check(t, err)
	o := e.samples[0].Origin
	wantSamples, wantLines := make([]store.Sample, 0, 3), make([]store.Line, 0, 2)
	for _, v := range e.samples[0].Samples {
		wantSamples = append(wantSamples, store.Sample{Origin: o, Sample: v})
	}
	for _, l := range e.lines[0].Lines {
		wantLines = append(wantLines, store.Line{Origin: o, Line: l})
	}
	want := []any{e.doc, e.run, []store.Run{e.run}, []store.Change{e.change}, wantSamples, wantLines, []store.Stream{
		{Origin: o, Topic: event.TopicLogs, Stored: 2, Last: 30, End: e.lines[0].End}, {Origin: o, Topic: event.TopicMetrics, Stored: 3, Last: 11, End: e.samples[0].End},
	}}
	if diff := cmp.Diff(want, []any{doc, run, listed, changes, samples, lines, streams}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
