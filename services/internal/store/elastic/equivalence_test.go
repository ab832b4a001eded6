package elastic_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

// testEquivalence writes the same random data to both stores, then sends both the same random queries, page by page.
func testEquivalence(t *testing.T, server *elasticsearch.Server) {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any number
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // data for a test
	small, large := storetest.Open(t), open(t, server, elastic.Settings{})
	for _, s := range []storetest.Store{small, large} {
		fill(t, rand.New(rand.NewPCG(seed, 1)), s) //nolint:gosec // as above
	}
	eventually(t, "all is seen", func() (bool, error) {
		a, err := listRuns(t, large, store.RunFilter{}, 100)
		b, _ := listRuns(t, small, store.RunFilter{}, 100)
		for _, kind := range storetest.Kinds() {
			want, _ := small.Docs(t.Context(), kind, "", 1000)
			got, err := large.Docs(t.Context(), kind, "", 1000)
			if !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
				return false, err
			}
		}
		for _, run := range runIDs() {
			want, _ := small.Streams(t.Context(), run)
			got, err := large.Streams(t.Context(), run)
			if !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
				return false, err
			}
		}
		return cmp.Equal(a, b), err
	})
	for range testbed.Size(1000, 150) {
		description, ask := query(t, r)
		want, err := ask(small)
		check(t, err)
		got, err := ask(large)
		check(t, err)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmp.Comparer(sameFloat)); diff != "" {
			t.Fatalf("%s (-sqlite +elasticsearch):\n%.3000s", description, diff)
		}
	}
}

// sameFloat reports whether two numbers are equal, or both NaN.
func sameFloat(a, b store.Float) bool {
	return a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b))
}

func runIDs() (ids []string) {
	for i := range 24 {
		ids = append(ids, ulidOf(i*0x155))
	}
	return append(ids, "not-a-ulid", "ünï/☃")
}

func pickOne[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomTime(r *rand.Rand) time.Time {
	return time.Date(2026, 1, 2, 3, 4, r.IntN(20), r.IntN(3), time.UTC)
}

// fill writes random data.
func fill(t *testing.T, r *rand.Rand, s storetest.Store) {
	t.Helper()
	for _, id := range runIDs() {
		run, c := storetest.NewRun(id, randomTime(r))
		for revision := range int64(1 + r.IntN(5)) {
			run.Owner, run.Namespace, run.Name = pickOne(r, "ann", "bob", "ann b"), pickOne(r, "pets", "cars"), pickOne(r, "", "nightly", "Nächtlich", "x\x00y")
			run.File, run.Phase, run.Outcome = pickOne(r, "", "Bench.toml", "größe/Ä.toml"), pickOne(r, event.Phases()...), pickOne(r, "", event.Failed, event.Succeeded)
			run.Schedule = pickOne(r, "", "", "night", "ünï")
			run.Set, run.Cell = pickOne(r, "", "", "s"), pickOne(r, "", "x=1", "ü=2")
			run.Labels = map[string]string{store.LabelTask: pickOne(r, "train", "Test", ""), "k": pickOne(r, "1", "2"), pickOne(r, "a.b", "", "ü"): pickOne(r, "", "x")}
			run.Revision, c.Revision, c.Event, c.Phase = revision+1, revision+1, fmt.Sprint("e", revision), run.Phase
			check(t, s.PutRun(t.Context(), run, c))
		}
		check(t, store.Create(t.Context(), s, store.KindSummary, id, randomSummaries(r, id)))
		for pod := range r.IntN(4) {
			o := storetest.NewOrigin(id, fmt.Sprint("pod", pod))
			o.Attempt, o.Container = 1+r.IntN(2), pickOne(r, "benchmark", "server")
			check(t, s.AppendSamples(t.Context(), []store.Samples{{Origin: o, Samples: randomSamples(r), End: pickOne(r, nil, &event.End{Count: 9})}}))
			check(t, s.AppendLines(t.Context(), []store.Lines{{Origin: o, Lines: randomLines(r)}}))
		}
	}
	for i := range 200 {
		check(t, s.CreateDoc(t.Context(), store.Doc{Kind: pickOne(r, storetest.Kinds()...), Key: fmt.Sprint(pickOne(r, "a", "B", "ü", "☃"), i), Value: []byte(`{}`)}))
	}
}

func randomSummaries(r *rand.Rand, run string) store.Summaries {
	all := store.Summaries{Run: run, Attempt: 1 + r.IntN(2), Complete: r.IntN(2) == 0, Samples: r.Int64(), Method: "as it is"}
	for range r.IntN(20) {
		x := func() store.Float {
			return store.Float(pickOne(r, r.NormFloat64(), math.NaN(), math.Inf(1), math.MaxFloat64, math.SmallestNonzeroFloat64))
		}
		one := store.Summary{Metric: pickOne(r, "a", "ü"), Labels: map[string]string{"k": "v"}, N: r.Int64N(9), Min: x(), Max: x(), Median: x(), P99: x(), SD: x()}
		if r.IntN(2) == 0 {
			one.Interval = &store.Interval{Low: x(), High: x(), Level: r.Float64()}
		}
		all.Summaries = append(all.Summaries, one)
	}
	return all
}

func randomSamples(r *rand.Rand) (all []event.Sample) {
	for seq := range int64(r.IntN(120)) {
		for _, name := range []string{"a", "b", "ü"}[:1+r.IntN(3)] {
			v := storetest.NewSample(seq*7, name, r.NormFloat64())
			v.Time = randomTime(r).UnixNano()
			if r.IntN(9) == 0 {
				v.Labels = map[string]string{"k": "v", "\x00": ""}
			}
			all = append(all, v)
		}
	}
	return all
}

func randomLines(r *rand.Rand) (all []event.Line) {
	for seq := range int64(r.IntN(150)) {
		l := storetest.NewLine(seq*11, fmt.Sprint("line ", r.IntN(100), pickOne(r, "", " \"Ü\"", "\t\x00", " CUDA_error-7.", " v1."+fmt.Sprint(r.IntN(9)), "--a.b..c", strings.Repeat(" x", r.IntN(700))+" end")))
		l.Time, l.Stderr, l.Truncated = randomTime(r).UnixNano(), r.IntN(2) == 0, r.IntN(9) == 0
		all = append(all, l)
	}
	return all
}

func randomTimeOrZero(r *rand.Rand) time.Time {
	if r.IntN(2) == 0 {
		return time.Time{}
	}
	return randomTime(r)
}

// query returns a random query, with a description.
func query(t *testing.T, r *rand.Rand) (string, func(s storetest.Store) (any, error)) {
	t.Helper()
	run, limit := pickOne(r, runIDs()...), 1+r.IntN(60)
	switch r.IntN(9) {
	case 0, 1:
		f := store.RunFilter{Owner: pickOne(r, "", "ann"), Namespace: pickOne(r, "", "", "pets"), Name: pickOne(r, "", "", "nightly"), Schedule: pickOne(r, "", "", "", "night", "ünï", "nigh"), Set: pickOne(r, "", "", "", "s"), Cell: pickOne(r, "", "x=1"), Since: randomTimeOrZero(r), Until: randomTimeOrZero(r), Oldest: r.IntN(2) == 0, Text: pickOne(r, "", "", "N", "nä", "BENCH", "größe", "GRÖSSE", "test", "tes", "x\x00", "01KDVR")}
		if r.IntN(3) == 0 {
			f.Phases, f.Outcomes = event.Phases()[r.IntN(4):], pickOne(r, nil, []event.Outcome{event.Failed}, []event.Outcome{event.Failed, event.Succeeded})
		}
		if r.IntN(3) == 0 {
			f.Labels = map[string]string{pickOne(r, "k", "a.b", "ü", ""): pickOne(r, "1", "x", "")}
		}
		return fmt.Sprintf("runs %+v by %d", f, limit), func(s storetest.Store) (any, error) { return listRuns(t, s, f, limit) }
	case 2:
		after := int64(r.IntN(4))
		return fmt.Sprintf("changes of %s after %d", run, after), func(s storetest.Store) (any, error) { return s.Changes(t.Context(), run, after, limit) }
	case 3:
		q := store.SampleQuery{Run: run, Names: pickOne(r, nil, []string{"a"}, []string{"ü", "b"}), Since: randomTimeOrZero(r), Until: randomTimeOrZero(r)}
		return fmt.Sprintf("samples %+v by %d", q, limit), func(s storetest.Store) (any, error) {
			return paged(func(cursor string) ([]store.Sample, string, error) { return s.Samples(t.Context(), q, cursor, limit) })
		}
	case 4, 8:
		q := store.LineQuery{Run: run, Attempt: r.IntN(3), Last: pickOne(r, 0, 0, 1, 7, 1000), Since: randomTimeOrZero(r), Container: pickOne(r, "", "", "server", "none")}
		q.Tokens = store.Words(pickOne(r, "", "", "line", "LINE "+fmt.Sprint(r.IntN(100)), "ü", "cuda_ERROR-7", "cuda", "7", "v1.3", "end", "a.b..c line", "x end", "none"))
		return fmt.Sprintf("lines %+v by %d", q, limit), func(s storetest.Store) (any, error) {
			return paged(func(cursor string) ([]store.Line, string, error) { return s.Lines(t.Context(), q, cursor, limit) })
		}
	case 5:
		return "summaries of " + run, func(s storetest.Store) (any, error) {
			v, version, err := store.Get[store.Summaries](t.Context(), s, store.KindSummary, run)
			return []any{v, version}, err
		}
	case 6:
		return "how many runs there are", func(s storetest.Store) (any, error) { return s.Stats(t.Context()) }
	}
	kind, after := pickOne(r, storetest.Kinds()...), pickOne(r, "", "B", "a3", "ü")
	return fmt.Sprintf("%s after %q", kind, after), func(s storetest.Store) (any, error) { return s.Docs(t.Context(), kind, after, limit) }
}

// paged reads until a page is empty.
func paged[T any](read func(cursor string) ([]T, string, error)) (all []T, err error) {
	for cursor := ""; ; {
		page, next, err := read(cursor)
		if all = append(all, page...); err != nil || len(page) == 0 {
			return all, err
		}
		cursor = next
	}
}

// listRuns reads all runs that f selects.
func listRuns(t *testing.T, s storetest.Store, f store.RunFilter, limit int) (all []store.Run, err error) {
	t.Helper()
	for token := ""; ; {
		runs, next, err := s.Runs(t.Context(), f, token, limit)
		if all = append(all, runs...); err != nil || next == "" {
			return all, err
		}
		token = next
	}
}
