package elastic_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

func testEdgeCases(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	prefix := newPrefix(t, server)
	s := open(t, server, elastic.Settings{Prefix: prefix})
	setUp(t, s)
	mappings := func() string {
		return string(sendRequest(t.Context(), t, http.MethodGet, server.URL+"/"+prefix+"-metrics-other,"+prefix+"-logs-other/_mapping", ""))
	}
	check(t, s.AppendSamples(t.Context(), []store.Samples{{Origin: storetest.NewOrigin("first", "p"), Samples: []event.Sample{storetest.NewSample(0, "v", 1)}}}))
	check(t, s.AppendLines(t.Context(), []store.Lines{{Origin: storetest.NewOrigin("first", "p"), Lines: []event.Line{storetest.NewLine(0, "x")}}}))
	before := mappings()

	text, number := storetest.NewOrigin("text", "p"), storetest.NewOrigin("number", "p")
	odd := map[store.Origin][]event.Sample{
		text:   {labeled(1, map[string]string{"level": "high", "at": "2026-01-02"}), labeled(2, map[string]string{"a": "1", "a.b": "2", "a.b.c": "3"})},
		number: {labeled(1, map[string]string{"level": "9", "at": "yesterday"}), storetest.NewSample(2, "v", math.NaN()), storetest.NewSample(3, "v", math.Inf(-1))},
	}
	for i := range 10_000 {
		odd[text] = append(odd[text], labeled(int64(10+i), map[string]string{fmt.Sprint("key", i): "x"}))
	}
	for i, key := range []string{strings.Repeat("k", 40_000), "nul\x00", "", ".", "..", "a..b", "_id", "@timestamp", " "} {
		odd[number] = append(odd[number], labeled(int64(10+i), map[string]string{key: "x", "other": key}))
	}
	long := storetest.NewSample(100, strings.Repeat("n", 50_000), 1)
	long.Unit = strings.Repeat("u", 50_000)
	odd[number] = append(odd[number], long, storetest.NewSample(101, "v", math.MaxFloat64))
	for o, samples := range odd {
		check(t, s.AppendSamples(t.Context(), []store.Samples{{Origin: o, Samples: samples}}))
	}
	lines := []event.Line{storetest.NewLine(1, "before"), storetest.NewLine(2, strings.Repeat("word ", 1<<20)), storetest.NewLine(3, strings.Repeat("x", 5<<20)), storetest.NewLine(9<<20, "after")}
	check(t, s.AppendLines(t.Context(), []store.Lines{{Origin: text, Lines: lines}}))

	for o, want := range odd {
		eventually(t, "all samples of "+o.Run, func() (bool, error) {
			st, err := s.Streams(t.Context(), o.Run)
			return len(st) > 0 && st[len(st)-1].Stored == int64(len(want)), err // after the lines
		})
		var got []event.Sample
		for cursor := ""; len(got) < len(want); {
			page, next, err := s.Samples(t.Context(), store.SampleQuery{Run: o.Run}, cursor, 3000)
			check(t, err)
			for _, v := range page {
				got = append(got, v.Sample)
			}
			cursor = next
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%.3000s", o.Run, diff)
		}
	}
	eventually(t, "all lines", func() (bool, error) {
		got, _, err := s.Lines(t.Context(), store.LineQuery{Run: "text"}, "", 10)
		return len(got) == 4 && got[1].Text == lines[1].Text && got[2].Text == lines[2].Text && got[3].Text == "after", err
	})
	if diff := cmp.Diff(before, mappings()); diff != "" {
		t.Errorf("the mappings grew:\n%s", diff)
	}
}

func labeled(seq int64, labels map[string]string) event.Sample {
	v := storetest.NewSample(seq, "v", float64(seq))
	v.Labels = labels
	return v
}

// testRefused has the server refuse one source among others, because its mapping cannot hold the number of the source's pod.
func testRefused(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	s := open(t, server, elastic.Settings{BulkBytes: 4 << 10, Writers: 1})
	var batches []store.Lines
	want := make(map[string]int64)
	for i := range 9 {
		o := storetest.NewOrigin("r", fmt.Sprint("pod", i))
		if i == 4 {
			o.Index = 1 << 40
		} else {
			want[o.Pod] = 50
		}
		b := store.Lines{Origin: o}
		for n := range 50 {
			b.Lines = append(b.Lines, storetest.NewLine(int64(n), "x"))
		}
		batches = append(batches, b)
	}
	err := s.AppendLines(t.Context(), batches)
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "source.index") {
		t.Errorf("append: %.300v, want %v, and which field", err, store.ErrRefused)
	}
	eventually(t, "all others", func() (bool, error) {
		streams, err := s.Streams(t.Context(), "r")
		got := make(map[string]int64)
		for _, st := range streams {
			got[st.Origin.Pod] = st.Stored
		}
		return cmp.Equal(want, got), err
	})
}
