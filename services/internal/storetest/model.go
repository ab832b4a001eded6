package storetest

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// testModel makes the same calls to s and to a Memory, in any order, and
// compares each answer. The names of each trial are its own.
func testModel(t *testing.T, s Store) {
	t.Helper()
	trial := 0
	rapid.Check(t, func(rt *rapid.T) {
		trial++
		m := &model{Store: s, memory: NewMemory(), prefix: fmt.Sprintf("t%d-", trial)}
		calls := []func(*rapid.T){m.doc, m.run, m.samples, m.lines, m.list, m.points}
		for range rapid.IntRange(1, 20).Draw(rt, "calls") {
			calls[rapid.IntRange(0, len(calls)-1).Draw(rt, "call")](rt)
		}
		m.compare(rt)
	})
}

type model struct {
	Store
	memory *Memory
	prefix string
}

func (m *model) key(rt *rapid.T, label string) string {
	return m.prefix + rapid.SampledFrom([]string{"a", "b", "ç"}).Draw(rt, label)
}

// wantSameAnswer checks that both stores answered alike.
func wantSameAnswer(rt *rapid.T, call string, want, got any, wantErr, err error) {
	rt.Helper()
	for _, e := range []error{store.ErrNotFound, store.ErrExists, store.ErrConflict, store.ErrRefused, store.ErrCursor} {
		if errors.Is(err, e) != errors.Is(wantErr, e) {
			rt.Fatalf("%s: error %v, want %v", call, err, wantErr)
		}
	}
	if (err == nil) != (wantErr == nil) {
		rt.Fatalf("%s: error %v, want %v", call, err, wantErr)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); err == nil && diff != "" {
		rt.Fatalf("%s (-want +got):\n%s", call, diff)
	}
}

func (m *model) doc(rt *rapid.T) {
	ctx := rt.Context()
	d := store.Doc{
		Kind: kind, Key: m.key(rt, "key"), Version: rapid.Int64Range(0, 3).Draw(rt, "version"),
		Value: fmt.Appendf(nil, "%d", rapid.Int().Draw(rt, "value")),
	}
	switch rapid.SampledFrom([]string{"create", "replace", "delete"}).Draw(rt, "verb") {
	case "create":
		wantSameAnswer(rt, "create", nil, nil, m.memory.CreateDoc(ctx, d), m.CreateDoc(ctx, d))
	case "replace":
		want, wantErr := m.memory.ReplaceDoc(ctx, d)
		got, err := m.ReplaceDoc(ctx, d)
		wantSameAnswer(rt, "replace", want, got, wantErr, err)
	case "delete":
		wantSameAnswer(rt, "delete", nil, nil, m.memory.DeleteDoc(ctx, d), m.DeleteDoc(ctx, d))
	}
	want, wantErr := m.memory.Doc(ctx, kind, d.Key)
	got, err := m.Doc(ctx, kind, d.Key)
	wantSameAnswer(rt, "read", want, got, wantErr, err)
}

func (m *model) run(rt *rapid.T) {
	r, c := NewRun(m.key(rt, "run"), at(rapid.IntRange(0, 3).Draw(rt, "created")))
	r.Owner, r.Namespace = rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "owner"), m.prefix
	r.Phase = rapid.SampledFrom(event.Phases()).Draw(rt, "phase")
	r.Schedule = rapid.SampledFrom([]string{"", "night"}).Draw(rt, "schedule")
	r.Set, r.Cell = rapid.SampledFrom([]string{"", "s"}).Draw(rt, "set"), rapid.SampledFrom([]string{"", "x=1"}).Draw(rt, "cell")
	r.Labels = rapid.MapOf(rapid.SampledFrom([]string{"x", "y"}), rapid.SampledFrom([]string{"", "1"})).Draw(rt, "labels")
	before, _ := m.memory.Run(rt.Context(), r.ID)
	r.Revision = before.Revision + rapid.SampledFrom([]int64{1, 1, 1, 0, 2}).Draw(rt, "step")
	c.Revision, c.Event = r.Revision, fmt.Sprint(rapid.IntRange(0, 20).Draw(rt, "event"))
	wantSameAnswer(rt, "put", nil, nil, m.memory.PutRun(rt.Context(), r, c), m.PutRun(rt.Context(), r, c))
	want, wantErr := m.memory.Run(rt.Context(), r.ID)
	got, err := m.Run(rt.Context(), r.ID)
	wantSameAnswer(rt, "run", want, got, wantErr, err)
}

func (m *model) origin(rt *rapid.T) store.Origin {
	o := NewOrigin(m.key(rt, "run"), rapid.SampledFrom([]string{"p", "q"}).Draw(rt, "pod"))
	o.Attempt = rapid.IntRange(1, 2).Draw(rt, "attempt")
	return o
}

func (m *model) end(rt *rapid.T) *event.End {
	if rapid.IntRange(0, 9).Draw(rt, "end") > 0 {
		return nil
	}
	return &event.End{Count: rapid.Int64Range(0, 99).Draw(rt, "count"), Last: -1}
}

func (m *model) samples(rt *rapid.T) {
	batches := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) store.Samples {
		some := rapid.SliceOfN(rapid.Custom(sample), 0, 6).Draw(rt, "samples")
		for seq := range consecutive(rt) {
			some = append(some, NewSample(seq, "many", 1))
		}
		return store.Samples{Origin: m.origin(rt), End: m.end(rt), Samples: some}
	}), 0, 2).Draw(rt, "batches")
	wantSameAnswer(rt, "append", nil, nil, m.memory.AppendSamples(rt.Context(), batches), m.AppendSamples(rt.Context(), batches))
}

// consecutive yields sequences that follow each other.
func consecutive(rt *rapid.T) iter.Seq[int64] {
	from, n := rapid.Int64Range(0, 30).Draw(rt, "from"), rapid.Int64Range(0, 60).Draw(rt, "stretch")
	return func(yield func(int64) bool) {
		for seq := from; seq < from+n && yield(seq); seq++ {
		}
	}
}

func sample(rt *rapid.T) event.Sample {
	v := NewSample(rapid.Int64Range(0, 40).Draw(rt, "seq"), rapid.SampledFrom([]string{"a", "b", "ü"}).Draw(rt, "name"), 0)
	v.Set(rapid.Float64().Draw(rt, "value"))
	v.Sub, v.Unit = rapid.IntRange(0, 2).Draw(rt, "sub"), rapid.SampledFrom([]string{"", "s"}).Draw(rt, "unit")
	v.Step = rapid.Ptr(rapid.Int64(), true).Draw(rt, "step")
	v.Labels = rapid.MapOfN(rapid.StringN(0, 3, -1), rapid.StringN(0, 3, -1), 0, 2).Draw(rt, "labels")
	v.Direction = rapid.SampledFrom([]string{"", event.Higher, event.Lower}).Draw(rt, "direction")
	return v
}

func (m *model) lines(rt *rapid.T) {
	batches := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) store.Lines {
		some := rapid.SliceOfN(rapid.Custom(line), 0, 6).Draw(rt, "lines")
		for seq := range consecutive(rt) {
			some = append(some, NewLine(seq, "many"))
		}
		return store.Lines{Origin: m.origin(rt), End: m.end(rt), Lines: some}
	}), 0, 2).Draw(rt, "batches")
	wantSameAnswer(rt, "append", nil, nil, m.memory.AppendLines(rt.Context(), batches), m.AppendLines(rt.Context(), batches))
}

func line(rt *rapid.T) event.Line {
	return event.Line{
		Seq: rapid.Int64Range(0, 90).Draw(rt, "seq"), Time: rapid.Int64().Draw(rt, "time"),
		Text:   rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("aB1_.- é")), 0, 9, -1)).Draw(rt, "text"),
		Stderr: rapid.Bool().Draw(rt, "err"), Truncated: rapid.Bool().Draw(rt, "cut"), Unterminated: rapid.Bool().Draw(rt, "open"),
		Raw: rapid.Int64Min(0).Draw(rt, "raw"),
	}
}

func (m *model) list(rt *rapid.T) {
	f := store.RunFilter{
		Namespace: m.prefix, Owner: rapid.SampledFrom([]string{"", "ann"}).Draw(rt, "owner"),
		Schedule: rapid.SampledFrom([]string{"", "", "night"}).Draw(rt, "schedule"),
		Set:      rapid.SampledFrom([]string{"", "", "s"}).Draw(rt, "set"), Cell: rapid.SampledFrom([]string{"", "x=1"}).Draw(rt, "cell"),
		Phases: rapid.SliceOfN(rapid.SampledFrom(event.Phases()), 0, 3).Draw(rt, "phases"),
		Labels: rapid.MapOf(rapid.SampledFrom([]string{"x", "y"}), rapid.SampledFrom([]string{"", "1"})).Draw(rt, "labels"),
		Text:   rapid.SampledFrom([]string{"", "", "T", m.prefix + "A"}).Draw(rt, "text"), Oldest: rapid.Bool().Draw(rt, "oldest"),
		Since: rapid.SampledFrom([]time.Time{{}, at(1)}).Draw(rt, "since"),
		Until: rapid.SampledFrom([]time.Time{{}, at(2)}).Draw(rt, "until"),
	}
	limit := rapid.IntRange(1, 4).Draw(rt, "limit")
	want, wantErr := listRuns(rt.Context(), m.memory, f, limit)()
	m.eventually(rt, "runs", want, wantErr, func() (any, error) { return listRuns(rt.Context(), m, f, limit)() })
}

// compare reads all that both have.
func (m *model) compare(rt *rapid.T) {
	ctx := rt.Context()
	limit, last := rapid.SampledFrom([]int{40, 1000}).Draw(rt, "limit"), rapid.SampledFrom([]int{0, 1, 5, 1000}).Draw(rt, "last")
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ü", "many"}), 0, 2).Draw(rt, "names")
	m.comparePoints(rt)
	for _, name := range []string{"a", "b", "ç"} {
		run := m.prefix + name
		q, lq := store.SampleQuery{Run: run, Names: names},
			store.LineQuery{Run: run, Attempt: rapid.IntRange(0, 2).Draw(rt, "attempt"), Last: last}
		lq.Tokens = store.Words(rapid.SampledFrom([]string{"", "", "many", "a", "b1 a", "é"}).Draw(rt, "words"))
		samples, err := readSamples(ctx, m.memory, q, 1<<20)()
		m.eventually(rt, "samples", samples, err, func() (any, error) { return readSamples(ctx, m, q, limit)() })
		lines, err := readLines(ctx, m.memory, lq, 1<<20)()
		m.eventually(rt, "lines", lines, err, func() (any, error) { return readLines(ctx, m, lq, limit)() })
		streams, err := m.memory.Streams(ctx, run)
		m.eventually(rt, "streams", streams, err, func() (any, error) { return m.Streams(ctx, run) })
		changes, err := m.memory.Changes(ctx, run, 0, 1000)
		m.eventually(rt, "changes", changes, err, func() (any, error) { return m.Changes(ctx, run, 0, 1000) })
	}
}

// eventually checks that read returns want after a while.
func (m *model) eventually(rt *rapid.T, call string, want any, wantErr error, read func() (any, error)) {
	rt.Helper()
	for end := time.Now().Add(visibilityTimeout); ; {
		got, err := read()
		if reflect.DeepEqual(want, got) { // much faster than cmp.Diff
			return
		}
		if time.Now().After(end) || err != nil || cmp.Equal(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()) {
			wantSameAnswer(rt, call, want, got, wantErr, err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
