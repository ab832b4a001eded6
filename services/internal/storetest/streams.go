package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func testSamples(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	t.Run("samples are read as they were written", func(t *testing.T) {
		o := NewOrigin("values", "p")
		want := make([]store.Sample, 0, 32)
		for i, v := range []float64{
			0, 1, -1.5, 0.1, 1e-320, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 53,
			math.Pi, math.NaN(), math.Inf(1), math.Inf(-1),
		} {
			want = append(want, store.Sample{Origin: o, Sample: NewSample(int64(i), "v", v)})
		}
		better := NewSample(100, "v", 1)
		better.Direction = event.Lower
		want = append(want, store.Sample{Origin: o, Sample: better})
		step := int64(math.MinInt64)
		want = append(want, store.Sample{Origin: o, Sample: event.Sample{
			Seq: math.MaxInt64, Sub: math.MaxInt32, Name: "ünï/☃ \x00 'x'", Value: new(1.0), Unit: "µs", Time: math.MinInt64, Step: &step,
			Labels: map[string]string{"": "", "ü": strings.Repeat("☃", 1000), "a": "b"}, Direction: event.Higher,
		}})
		must(t, s.AppendSamples(ctx, samples(want...)))
		eventually(t, "samples", want, readSamples(ctx, s, store.SampleQuery{Run: "values"}, 100))
	})
	t.Run("a value that JSON cannot carry is marked", func(t *testing.T) {
		raw := event.Sample{Seq: 1, Name: "v", Value: new(math.NaN())}
		must(t, s.AppendSamples(ctx, []store.Samples{{Origin: NewOrigin("nan", "p"), Samples: []event.Sample{raw}}}))
		raw.Value, raw.Special = nil, event.NaN
		eventually(t, "sample", []store.Sample{{Origin: NewOrigin("nan", "p"), Sample: raw}},
			readSamples(ctx, s, store.SampleQuery{Run: "nan"}, 10))
	})
	t.Run("samples are told by source, sequence, sub and name, and the first of them stays", func(t *testing.T) {
		p, q := NewOrigin("told", "p"), NewOrigin("told", "q")
		second := p
		second.Attempt = 2
		var want []store.Sample
		for _, o := range []store.Origin{p, q, second} {
			for _, key := range []struct {
				seq  int64
				sub  int
				name string
			}{{5, 0, "a"}, {5, 0, "b"}, {5, 1, "a"}, {6, 0, "a"}} {
				v := NewSample(key.seq, key.name, 1)
				v.Sub = key.sub
				want = append(want, store.Sample{Origin: o, Sample: v})
			}
		}
		slices.SortFunc(want, compareSamples)
		must(t, s.AppendSamples(ctx, samples(want...)))
		again := slices.Clone(want)
		for i := range again {
			again[i].Value, again[i].Labels = new(2.0), map[string]string{"again": "yes"}
		}
		slices.Reverse(again)
		must(t, s.AppendSamples(ctx, samples(again...)))
		eventually(t, "samples", want, readSamples(ctx, s, store.SampleQuery{Run: "told"}, 100))
		eventually(t, "page by page", want, readSamples(ctx, s, store.SampleQuery{Run: "told"}, 1))
		eventually(t, "counted once", "1 4 6, 1 4 6, 2 4 6, ", readStreams(ctx, s, "told"))
	})
	t.Run("samples of some names only are read where some are asked for", func(t *testing.T) {
		var all []store.Sample
		for i := range 100 {
			all = append(all, store.Sample{
				Origin: NewOrigin("names", "p"),
				Sample: NewSample(int64(i/3), pickOne(i, "a", "b", "c"), float64(i)),
			})
		}
		must(t, s.AppendSamples(ctx, samples(all...)))
		for _, names := range [][]string{{"a"}, {"c", "a"}, {"a", "b", "c"}, {"none"}, {"a", "none"}, {"A"}} {
			want := slices.DeleteFunc(slices.Clone(all), func(v store.Sample) bool { return !slices.Contains(names, v.Name) })
			eventually(t, fmt.Sprint(names), want, readSamples(ctx, s, store.SampleQuery{Run: "names", Names: names}, 1000))
			eventually(t, fmt.Sprint(names, ", page by page"), want, readSamples(ctx, s, store.SampleQuery{Run: "names", Names: names}, 7))
		}
	})
	t.Run("samples measured between two times only are read where that is asked for", func(t *testing.T) { testSamplesBetween(ctx, t, s) })
	t.Run("a run has its own samples only", func(t *testing.T) {
		eventually(t, "samples", nil, readSamples(ctx, s, store.SampleQuery{Run: "valu"}, 10))
	})
}

func testLines(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	t.Run("lines are read as they were written", func(t *testing.T) {
		o := NewOrigin("texts", "p")
		want := make([]store.Line, 0, 16)
		for i, text := range []string{
			"", " ", "plain", "tab\tnul\x00bell\a", "☃ 😀 é e\u0301 \u202e", `{"json": "yes"}`, "\ufffd\u2028",
			strings.Repeat("long ", 1<<16),
		} {
			want = append(want, store.Line{
				Origin: o,
				Line: event.Line{
					Seq: int64(i * 1000), Text: text, Time: int64(i), Stderr: i%2 == 1, Truncated: i == 3,
					Unterminated: i == 5, Raw: int64(i) << 40,
				},
			})
		}
		want = append(want, store.Line{Origin: o, Line: event.Line{Seq: math.MaxInt64, Time: math.MaxInt64}})
		must(t, s.AppendLines(ctx, lines(want...)))
		eventually(t, "lines", want, readLines(ctx, s, store.LineQuery{Run: "texts"}, 100))
	})
	t.Run("lines are told by source and sequence, and the first of them stays", func(t *testing.T) {
		var want []store.Line
		for i := range 30 {
			want = append(want, store.Line{Origin: NewOrigin("told", pickOne(i, "p", "q", "r")), Line: NewLine(int64(i), "first")})
		}
		slices.SortFunc(want, compareLines)
		must(t, s.AppendLines(ctx, lines(want[:20]...)))
		again := slices.Clone(want)
		for i := range again[:20] {
			again[i].Text = "second"
		}
		must(t, s.AppendLines(ctx, lines(again...)))
		must(t, s.AppendLines(ctx, lines(again[5:15]...)))
		eventually(t, "lines", want, readLines(ctx, s, store.LineQuery{Run: "told"}, 7))
		eventually(t, "counted once", want, readLines(ctx, s, store.LineQuery{Run: "told"}, 100))
	})
	t.Run("lines of an attempt or of a source only are read where one is asked for", func(t *testing.T) {
		first, second := NewOrigin("which", "p"), NewOrigin("which", "q")
		second.Attempt = 2
		a, b := store.Line{Origin: first, Line: NewLine(1, "a")}, store.Line{Origin: second, Line: NewLine(1, "b")}
		must(t, s.AppendLines(ctx, lines(b, a)))
		for name, tt := range map[string]struct {
			query store.LineQuery
			want  []store.Line
		}{
			"all, by attempt":             {store.LineQuery{}, []store.Line{a, b}},
			"an attempt":                  {store.LineQuery{Attempt: 2}, []store.Line{b}},
			"an attempt without lines":    {store.LineQuery{Attempt: 3}, nil},
			"a source":                    {store.LineQuery{StreamID: first.StreamID()}, []store.Line{a}},
			"a source that is not":        {store.LineQuery{StreamID: "x"}, nil},
			"a source of another attempt": {store.LineQuery{StreamID: first.StreamID(), Attempt: 2}, nil},
		} {
			tt.query.Run = "which"
			eventually(t, name, tt.want, readLines(ctx, s, tt.query, 10))
		}
	})
	t.Run("lines of a container only are read where one is asked for", func(t *testing.T) { testContainers(ctx, t, s) })
	t.Run("lines that have all of some tokens only are read where these are asked for", func(t *testing.T) { testSearch(ctx, t, s) })
	t.Run("lines that are found by tokens are found as they come, each once", func(t *testing.T) { testSearchOn(ctx, t, s) })
	t.Run("the last lines of each source are read where some are asked for, then what follows", func(t *testing.T) {
		var all []store.Line
		for i := range 40 {
			all = append(all, store.Line{Origin: NewOrigin("tail", pickOne(i, "p", "q", "q", "q")), Line: NewLine(int64(i), "x")})
		}
		slices.SortFunc(all, compareLines)
		must(t, s.AppendLines(ctx, lines(all...)))
		eventually(t, "all are there", all, readLines(ctx, s, store.LineQuery{Run: "tail"}, 100))
		for _, last := range []int{1, 9, 10, 11, 29, 30, 31, 1000} {
			want := lastOfEach(all, last)
			eventually(t, fmt.Sprint("last ", last), want, readLines(ctx, s, store.LineQuery{Run: "tail", Last: last}, 100))
			eventually(t, fmt.Sprint("last ", last, ", page by page"), want, readLines(ctx, s, store.LineQuery{Run: "tail", Last: last}, 4))
		}
	})
	t.Run("lines are read from the first of a time on in each source, then all that follow",
		func(t *testing.T) { testLinesSince(ctx, t, s) })
	t.Run("who asks for the last lines of nothing misses none of those that come", func(t *testing.T) {
		_, cursor, err := s.Lines(ctx, store.LineQuery{Run: "empty", Last: 2}, "", 10)
		must(t, err)
		var want []store.Line
		for i := range 5 {
			want = append(want, store.Line{Origin: NewOrigin("empty", "p"), Line: NewLine(int64(i), "x")})
		}
		must(t, s.AppendLines(ctx, lines(want...)))
		eventually(t, "lines", want, func() ([]store.Line, error) {
			got, _, err := s.Lines(ctx, store.LineQuery{Run: "empty", Last: 2}, cursor, 10)
			return got, err
		})
	})
}

func testSamplesBetween(ctx context.Context, t *testing.T, s Store) {
	t.Helper()
	var all []store.Sample
	for i := range 60 {
		all = append(all, store.Sample{Origin: NewOrigin("times", "p"), Sample: NewSample(int64((i*7)%60), pickOne(i, "a", "b"), 1)})
		all[i].Time = at(i).UnixNano() // times do not follow the order
	}
	must(t, s.AppendSamples(ctx, samples(all...)))
	slices.SortFunc(all, compareSamples)
	for _, tt := range []struct{ since, until time.Time }{
		{at(20), time.Time{}},
		{time.Time{}, at(20)},
		{at(10), at(30)},
		{at(30), at(10)},
	} {
		q := store.SampleQuery{Run: "times", Names: []string{"a"}, Since: tt.since, Until: tt.until}
		want := slices.DeleteFunc(slices.Clone(all), func(v store.Sample) bool {
			return v.Name != "a" || v.Time < tt.since.UnixNano() && !tt.since.IsZero() ||
				v.Time >= tt.until.UnixNano() && !tt.until.IsZero()
		})
		eventually(t, fmt.Sprint(tt), want, readSamples(ctx, s, q, 1000))
		eventually(t, fmt.Sprint(tt, ", page by page"), want, readSamples(ctx, s, q, 3))
	}
}

func testLinesSince(ctx context.Context, t *testing.T, s Store) {
	t.Helper()
	var all []store.Line
	for i := range 40 {
		l := NewLine(int64(i), "x")
		l.Time = at(i).UnixNano()
		if i == 30 {
			l.Time = at(0).UnixNano() // a clock that was set back
		}
		all = append(all, store.Line{Origin: NewOrigin("since", pickOne(i, "p", "q")), Line: l})
	}
	slices.SortFunc(all, compareLines)
	must(t, s.AppendLines(ctx, lines(all...)))
	eventually(t, "all are there", all, readLines(ctx, s, store.LineQuery{Run: "since"}, 100))
	for _, from := range []int{0, 1, 25, 39} {
		want := slices.DeleteFunc(slices.Clone(all), func(l store.Line) bool { return l.Seq < int64(from) })
		q := store.LineQuery{Run: "since", Since: at(from)}
		eventually(t, fmt.Sprint("from ", from), want, readLines(ctx, s, q, 100))
		eventually(t, fmt.Sprint("from ", from, ", page by page"), want, readLines(ctx, s, q, 4))
		q.Last = 3
		eventually(t, fmt.Sprint("the last of those from ", from), lastOfEach(want, 3), readLines(ctx, s, q, 4))
	}
	_, cursor, err := s.Lines(ctx, store.LineQuery{Run: "since", Since: at(1000)}, "", 10)
	must(t, err)
	late := store.Line{Origin: all[0].Origin, Line: NewLine(100, "late")}
	must(t, s.AppendLines(ctx, lines(late)))
	eventually(t, "what comes after nothing is found", []store.Line{late}, func() ([]store.Line, error) {
		got, _, err := s.Lines(ctx, store.LineQuery{Run: "since", Since: at(1000)}, cursor, 10)
		return got, err
	})
}

func testContainers(ctx context.Context, t *testing.T, s Store) {
	t.Helper()
	var all []store.Line
	for i := range 40 {
		o := NewOrigin("boxes", pickOne(i, "p", "q", "r"))
		o.Container = pickOne(i, "benchmark", "server")
		all = append(all, store.Line{Origin: o, Line: NewLine(int64(i), "x")})
	}
	slices.SortFunc(all, compareLines)
	must(t, s.AppendLines(ctx, lines(all...)))
	for _, box := range []string{"benchmark", "server", "none", ""} {
		want := slices.DeleteFunc(slices.Clone(all), func(l store.Line) bool { return box != "" && l.Origin.Container != box })
		eventually(t, box, want, readLines(ctx, s, store.LineQuery{Run: "boxes", Container: box}, 100))
		eventually(t, box+", page by page", want, readLines(ctx, s, store.LineQuery{Run: "boxes", Container: box}, 7))
		eventually(t, box+", the last", lastOfEach(want, 2), readLines(ctx, s, store.LineQuery{Run: "boxes", Container: box, Last: 2}, 7))
	}
}

// logText returns the nth line of a log with many kinds of tokens.
func logText(n int) string {
	switch {
	case n%100 == 7:
		return fmt.Sprintf("ERROR rank %d: CUDA_error-%d. Größe=%d", n%3, n%4, n)
	case n%10 == 3:
		return fmt.Sprintf("epoch %d/9 --- v1.%d_rc", n%9, n)
	}
	return fmt.Sprint("step ", n)
}

func testSearch(ctx context.Context, t *testing.T, s Store) {
	t.Helper()
	var all []store.Line
	for i := range 1200 {
		l := NewLine(int64(i)*10, logText(i))
		l.Time = at(i).UnixNano()
		all = append(all, store.Line{Origin: NewOrigin("search", pickOne(i, "p", "q")), Line: l})
	}
	long := NewLine(100_000, "begin "+strings.Repeat("x ", store.MaxTokens)+"end")
	all = append(all, store.Line{Origin: NewOrigin("search", "p"), Line: long},
		store.Line{Origin: NewOrigin("search", "q"), Line: NewLine(100_000, strings.Repeat("ab", 1000))})
	slices.SortFunc(all, compareLines)
	for part := range slices.Chunk(all, 90) {
		must(t, s.AppendLines(ctx, lines(part...)))
	}
	must(t, s.AppendLines(ctx, lines(all[50:70]...))) // again
	for text, n := range map[string]int{
		"error": 12, "CUDA_error-3": 12, "cuda_error": 0, "Error RANK 0": 4, "größe": 12, "größe=7": 1, "epoch 3/9": 14, "step": 1068,
		"step 1199": 1, "1199": 1, "step 1197 1199": 0,
		"v1.13_rc": 1, "begin": 1, "end": 0, strings.Repeat("ab", 500): 1, "none": 0, "ste": 0, "rc": 120,
	} {
		tokens := store.Words(text)
		found := store.NewFinder(tokens)
		want := slices.DeleteFunc(slices.Clone(all), func(l store.Line) bool { return !found.Matches(l.Text) })
		wantSame(t, n, len(want))
		q := store.LineQuery{Run: "search", Tokens: tokens}
		eventually(t, text, want, readLines(ctx, s, q, 5000))
		eventually(t, text+", page by page", want, readLines(ctx, s, q, 1+len(want)/5))
		q.Last = 3
		eventually(t, text+", the last", lastOfEach(want, 3), readLines(ctx, s, q, 2))
		q.Since = at(600)
		late := slices.DeleteFunc(slices.Clone(want), func(l store.Line) bool { return l.Seq < 6000 })
		eventually(t, text+", the last since a time", lastOfEach(late, 3), readLines(ctx, s, q, 100))
		q.Last = 0
		eventually(t, text+", since a time", late, readLines(ctx, s, q, 100))
	}
	for _, tokens := range [][]string{{""}, {"Error"}, {"step 7"}, {strings.Repeat("x", 40_000)}} {
		eventually(t, "what is no token finds nothing", nil, readLines(ctx, s, store.LineQuery{Run: "search", Tokens: tokens}, 100))
	}
}

func testSearchOn(ctx context.Context, t *testing.T, s Store) {
	t.Helper()
	q, cursor := store.LineQuery{Run: "on", Tokens: []string{"hit"}}, ""
	for i := range 20 {
		var want []store.Line
		for n := range i {
			l := store.Line{
				Origin: NewOrigin("on", pickOne(i, "p", "q", "r")),
				Line:   NewLine(int64(100*i+n), pickOne(n, "a hit", "a miss", "a.hit")),
			}
			must(t, s.AppendLines(ctx, lines(l)))
			if n%3 != 1 {
				want = append(want, l)
			}
		}
		eventually(t, fmt.Sprint("time ", i), want, func() ([]store.Line, error) {
			page, _, err := s.Lines(ctx, q, cursor, 1000)
			return page, err
		})
		_, next, err := s.Lines(ctx, q, cursor, 1000)
		must(t, err)
		cursor = next
	}
	_, _, err := s.Lines(ctx, store.LineQuery{Run: "on"}, cursor, 1)
	wantError(t, err, store.ErrCursor)
}

func testStreams(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	all := func() ([]store.Stream, error) { return s.Streams(ctx, "r") }
	o := NewOrigin("r", "p")
	eventually(t, "a run of which nothing came has no streams", nil, all)

	must(t, s.AppendSamples(ctx, nil))
	must(t, s.AppendSamples(ctx, []store.Samples{{Origin: o}}))
	must(t, s.AppendLines(ctx, []store.Lines{{Origin: o}}))
	eventually(t, "a batch of nothing leaves nothing", nil, all)

	end := &event.End{Count: 3, Last: 9, Dropped: 7, Reason: "over max_log"}
	must(t, s.AppendLines(ctx, []store.Lines{{Origin: o, Lines: []event.Line{NewLine(2, "a"), NewLine(9, "b")}}}))
	must(t, s.AppendLines(ctx, []store.Lines{{Origin: o, End: end}, {Origin: o, Lines: []event.Line{NewLine(5, "c"), NewLine(9, "b")}}}))
	want := []store.Stream{{Origin: o, Topic: event.TopicLogs, Stored: 3, Last: 9, End: end}}
	eventually(t, "lines are counted once, and their end is known", want, all)

	must(t, s.AppendLines(ctx, []store.Lines{{Origin: o, End: &event.End{Count: 99}}}))
	eventually(t, "the first end stays", want, all)

	must(t, s.AppendSamples(ctx, []store.Samples{{Origin: o, Samples: []event.Sample{NewSample(4, "v", 1)}}}))
	want = append(want, store.Stream{Origin: o, Topic: event.TopicMetrics, Stored: 1, Last: 4})
	eventually(t, "samples of a source are counted apart from its lines", want, all)

	other := NewOrigin("r", "q")
	other.Attempt, other.Index, other.Role = 2, 3, "worker"
	must(t, s.AppendSamples(ctx, []store.Samples{{Origin: other, End: &event.End{Last: -1}}}))
	want = append(want, store.Stream{Origin: other, Topic: event.TopicMetrics, Last: -1, End: &event.End{Last: -1}})
	eventually(t, "a source that brought nothing but its end is there, in order of attempts", want, all)
}

func testCursors(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	p, q := NewOrigin("r", "p"), NewOrigin("r", "q")
	if compareOrigins(p, q) > 0 {
		p, q = q, p
	}
	t.Run("lines that arrive in any source are found, each once", func(t *testing.T) {
		var got []store.Line
		cursor := ""
		for _, batch := range [][]store.Line{
			{{Origin: q, Line: NewLine(1, "q1")}, {Origin: q, Line: NewLine(2, "q2")}},
			{{Origin: p, Line: NewLine(1, "p1")}},
			{{Origin: q, Line: NewLine(3, "q3")}, {Origin: p, Line: NewLine(2, "p2")}},
			{},
			{{Origin: p, Line: NewLine(3, "p3")}},
		} {
			must(t, s.AppendLines(ctx, lines(batch...)))
			slices.SortFunc(batch, compareLines)
			eventually(t, "what is new", batch, func() ([]store.Line, error) {
				page, _, err := s.Lines(ctx, store.LineQuery{Run: "r"}, cursor, 10)
				return page, err
			})
			page, next, err := s.Lines(ctx, store.LineQuery{Run: "r"}, cursor, 10)
			must(t, err)
			got, cursor = append(got, page...), next
		}
		wantSame(t, 6, len(got))
	})
	t.Run("a cursor can be used again and gives the same", func(t *testing.T) {
		page, next, err := s.Lines(ctx, store.LineQuery{Run: "r"}, "", 2)
		must(t, err)
		for range 2 {
			more, _, err := s.Lines(ctx, store.LineQuery{Run: "r"}, next, 100)
			must(t, err)
			wantSame(t, 6, len(page)+len(more))
		}
	})
	t.Run("samples that arrive later in a source come after the cursor, also of the same sequence and other names", func(t *testing.T) {
		for _, query := range []store.SampleQuery{{Run: "r1"}, {Run: "r2", Names: []string{"b", "a"}}, {Run: "r3", Names: []string{"b"}}} {
			testArrival(ctx, t, s, query)
		}
	})
	t.Run("a cursor that the store did not give for this query is none", func(t *testing.T) {
		_, cursor, err := s.Lines(ctx, store.LineQuery{Run: "r"}, "", 1)
		must(t, err)
		for _, tt := range []struct {
			query  store.LineQuery
			cursor string
		}{
			{store.LineQuery{Run: "r"}, "nonsense"},
			{store.LineQuery{Run: "r"}, cursor + "A"},
			{store.LineQuery{Run: "r1"}, cursor},
			{store.LineQuery{Run: "r", Attempt: 1}, cursor},
		} {
			_, _, err := s.Lines(ctx, tt.query, tt.cursor, 1)
			wantError(t, err, store.ErrCursor)
		}
		_, _, err = s.Samples(ctx, store.SampleQuery{Run: "r"}, cursor, 1)
		wantError(t, err, store.ErrCursor)
		_, _, err = s.Runs(ctx, store.RunFilter{}, cursor, 1)
		wantError(t, err, store.ErrCursor)
	})
}

// testArrival stores samples of some names one by one, and reads each after it was stored.
func testArrival(ctx context.Context, t *testing.T, s Store, query store.SampleQuery) {
	t.Helper()
	o, cursor := NewOrigin(query.Run, "p"), ""
	for _, name := range []string{"a", "b", "b2"} {
		v := store.Sample{Origin: o, Sample: NewSample(1, name, 1)}
		must(t, s.AppendSamples(ctx, samples(v)))
		var want []store.Sample
		if len(query.Names) == 0 || slices.Contains(query.Names, name) {
			want = append(want, v)
		}
		eventually(t, name, want, func() ([]store.Sample, error) {
			got, _, err := s.Samples(ctx, query, cursor, 10)
			return got, err
		})
		_, next, err := s.Samples(ctx, query, cursor, 10)
		must(t, err)
		cursor = next
	}
}

func testRefused(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	good := NewOrigin("r", "p")
	r, c := NewRun("r", at(0))
	foreign := c
	foreign.Run = "q"
	_, _, lines := s.Lines(ctx, store.LineQuery{Run: "r"}, "", 0)
	_, _, samples := s.Samples(ctx, store.SampleQuery{Run: "r"}, "", -1)
	_, _, runs := s.Runs(ctx, store.RunFilter{}, "", 0)
	_, changes := s.Changes(ctx, "r", 0, 0)
	_, docs := s.Docs(ctx, kind, "", 0)
	_, replace := s.ReplaceDoc(ctx, doc("", `{}`))
	for name, err := range map[string]error{
		"a document without a key":            s.CreateDoc(ctx, doc("", `{}`)),
		"a document with a key that is long":  s.CreateDoc(ctx, doc(strings.Repeat("k", store.MaxKey+1), `{}`)),
		"a document without a kind":           s.CreateDoc(ctx, store.Doc{Key: "k"}),
		"to replace a document without a key": replace,
		"to delete a document without a key":  s.DeleteDoc(ctx, doc("", "")),
		"a change of another run":             s.PutRun(ctx, r, foreign),
		"a change without an event":           s.PutRun(ctx, r, store.Change{Run: "r", Revision: 1}),
		"a run without an ID":                 s.PutRun(ctx, store.Run{Revision: 1}, store.Change{Revision: 1, Event: "e"}),
		"samples of no run":                   s.AppendSamples(ctx, []store.Samples{{Origin: NewOrigin("", "p")}}),
		"samples of no pod":                   s.AppendSamples(ctx, []store.Samples{{Origin: NewOrigin("r", "")}}),
		"a sample without a name": s.AppendSamples(ctx,
			[]store.Samples{{Origin: good, Samples: []event.Sample{NewSample(1, "v", 1), NewSample(2, "", 1)}}}),
		"a sample before the beginning": s.AppendSamples(ctx,
			[]store.Samples{{Origin: good, Samples: []event.Sample{NewSample(-1, "v", 1)}}}),
		"lines of no attempt": s.AppendLines(ctx, []store.Lines{{Origin: store.Origin{Run: "r", Stream: good.Stream}}}),
		"a line before the beginning": s.AppendLines(ctx,
			[]store.Lines{{Origin: good, Lines: []event.Line{NewLine(1, "x")}}, {Origin: good, Lines: []event.Line{NewLine(-1, "x")}}}),
		"a page of no lines": lines, "a page of fewer samples": samples, "a page of no runs": runs, "a page of no changes": changes,
		"a page of no documents": docs,
	} {
		if !errors.Is(err, store.ErrRefused) {
			t.Errorf("%s: got error %v, want %v", name, err, store.ErrRefused)
		}
	}
	eventually(t, "of a batch with a fault nothing is kept", nil, func() ([]store.Stream, error) { return s.Streams(ctx, "r") })
}

// lastOfEach returns the last lines of each source, in their order.
func lastOfEach(all []store.Line, last int) (want []store.Line) {
	n := make(map[string]int)
	for _, l := range slices.Backward(all) {
		if n[l.Origin.StreamID()]++; n[l.Origin.StreamID()] <= last {
			want = append(want, l)
		}
	}
	slices.Reverse(want)
	return want
}

// samples puts each sample into a batch of its own source's.
func samples(all ...store.Sample) (batches []store.Samples) {
	for _, v := range all {
		if n := len(batches); n == 0 || batches[n-1].Origin != v.Origin {
			batches = append(batches, store.Samples{Origin: v.Origin})
		}
		b := &batches[len(batches)-1]
		b.Samples = append(b.Samples, v.Sample)
	}
	return batches
}

// lines puts each line into a batch of its own source's.
func lines(all ...store.Line) (batches []store.Lines) {
	for _, l := range all {
		if n := len(batches); n == 0 || batches[n-1].Origin != l.Origin {
			batches = append(batches, store.Lines{Origin: l.Origin})
		}
		b := &batches[len(batches)-1]
		b.Lines = append(b.Lines, l.Line)
	}
	return batches
}

func readSamples(ctx context.Context, s Store, q store.SampleQuery, limit int) func() ([]store.Sample, error) {
	return func() ([]store.Sample, error) {
		return pages(limit, func(cursor string) ([]store.Sample, string, error) { return s.Samples(ctx, q, cursor, limit) })
	}
}

func readLines(ctx context.Context, s Store, q store.LineQuery, limit int) func() ([]store.Line, error) {
	return func() ([]store.Line, error) {
		return pages(limit, func(cursor string) ([]store.Line, string, error) { return s.Lines(ctx, q, cursor, limit) })
	}
}

// pages reads until a page is empty.
func pages[T any](limit int, read func(cursor string) ([]T, string, error)) (all []T, err error) {
	for cursor := ""; ; {
		page, next, err := read(cursor)
		all = append(all, page...)
		switch {
		case err != nil || len(page) == 0:
			return all, err
		case len(page) > limit:
			return all, fmt.Errorf("a page of %d, want %d at most", len(page), limit)
		case next == cursor:
			return all, fmt.Errorf("the cursor %q did not move", cursor)
		}
		cursor = next
	}
}

// readStreams writes attempt, count and last of each stream.
func readStreams(ctx context.Context, s Store, run string) func() (string, error) {
	return func() (text string, err error) {
		streams, err := s.Streams(ctx, run)
		for _, st := range streams {
			text += fmt.Sprint(st.Origin.Attempt, " ", st.Stored, " ", st.Last, ", ")
		}
		return text, err
	}
}
