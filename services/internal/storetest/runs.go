package storetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func testRuns(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	t.Run("a run that is not there is not found and has no changes", func(t *testing.T) {
		_, err := s.Run(ctx, "nothing")
		wantError(t, err, store.ErrNotFound)
		eventually(t, "changes", nil, func() ([]store.Change, error) { return s.Changes(ctx, "nothing", 0, 10) })
	})
	t.Run("a run and its changes are read as they were written", func(t *testing.T) {
		r, c := fullRun("full")
		must(t, s.PutRun(ctx, r, c))
		got, err := s.Run(ctx, r.ID)
		must(t, err)
		wantSame(t, r, got)
		eventually(t, "changes", []store.Change{c}, func() ([]store.Change, error) { return s.Changes(ctx, r.ID, 0, 10) })
		eventually(t, "list", []store.Run{r}, listRuns(ctx, s, store.RunFilter{}, 10))
	})
	t.Run("a run begins with revision 1", func(t *testing.T) {
		r, c := NewRun("late", at(0))
		r.Revision, c.Revision = 2, 2
		wantError(t, s.PutRun(ctx, r, c), store.ErrConflict)
		_, err := s.Run(ctx, "late")
		wantError(t, err, store.ErrNotFound)
	})
	t.Run("revisions follow each other without a gap", func(t *testing.T) {
		put(ctx, t, s, "gaps", 3)
		for _, revision := range []int64{0, 1, 3, 5, -1} {
			wantError(t, s.PutRun(ctx, runAt("gaps", revision), changeAt("gaps", revision, "new")), store.ErrConflict)
		}
		wantError(t, s.PutRun(ctx, runAt("gaps", 4), changeAt("gaps", 5, "new")), store.ErrConflict)
		wantError(t, s.PutRun(ctx, runAt("gaps", 5), changeAt("gaps", 4, "new")), store.ErrConflict)
		r, err := s.Run(ctx, "gaps")
		must(t, err)
		wantSame(t, 3, r.Revision)
		must(t, s.PutRun(ctx, runAt("gaps", 4), changeAt("gaps", 4, "new")))
	})
	t.Run("an event that was recorded before changes nothing, whatever revision it brings", func(t *testing.T) {
		put(ctx, t, s, "again", 2)
		for _, revision := range []int64{1, 2, 3, 9} {
			wantError(t, s.PutRun(ctx, runAt("again", revision), changeAt("again", revision, "e1")), store.ErrExists)
		}
		r, err := s.Run(ctx, "again")
		must(t, err)
		wantSame(t, runAt("again", 2), r)
	})
	t.Run("an event of the same ID about another run is another", func(t *testing.T) {
		put(ctx, t, s, "mine", 1)
		put(ctx, t, s, "yours", 1)
	})
	t.Run("changes come in order, after a revision, up to a limit", func(t *testing.T) {
		want := put(ctx, t, s, "changes", 12)
		for _, tt := range []struct{ after, limit int }{{0, 100}, {0, 5}, {5, 5}, {10, 5}, {12, 5}, {99, 5}, {-1, 3}} {
			after := max(tt.after, 0)
			page := want[min(after, 12):min(after+tt.limit, 12)]
			eventually(t, fmt.Sprint(tt), page, func() ([]store.Change, error) {
				return s.Changes(ctx, "changes", int64(tt.after), tt.limit)
			})
		}
	})
}

func testFilters(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	var all []store.Run // newest first
	for i := range 12 {
		r, c := NewRun(fmt.Sprintf("run%02d", i), at(i/2)) // two in each second
		r.Owner, r.Namespace, r.Name = pickOne(i, "ann", "bob", "ann b"), pickOne(i, "pets", "cars"), pickOne(i, "", "nightly", "", "x")
		r.Phase, r.Outcome = pickOne(i, event.PhaseFinished, event.PhaseRunning, event.PhaseFinished, event.PhasePending),
			pickOne(i, event.Succeeded, "", event.Failed, "")
		r.File = pickOne(i, "Bench.toml", "", "größe/Ä.toml", "x\x00y")
		r.Schedule = pickOne(i, "", "night", "day", "", "night")
		r.Set, r.Cell = pickOne(i, "", "s1", "s2", "s1"), pickOne(i, "", "size=1K", "size=1K", "n=2,size=1M")
		r.Labels = map[string]string{
			"i": strconv.Itoa(i), store.LabelTask: pickOne(i, "Train", "", "n"), "même": pickOne(i, "é", ""),
			"odd": pickOne(i, "no", "yes"),
		}
		r.Framework, r.FrameworkVersion = pickOne(i, "", "PyTorch", "jax"), pickOne(i, "", "2.4", "2.4", "1")
		r.DataIDs = pickOne(i, nil, []string{"mnist", "größe x"}, []string{"mnist"})
		must(t, s.PutRun(ctx, r, c))
		all = append([]store.Run{r}, all...)
	}
	for name, f := range map[string]store.RunFilter{
		"all, newest first": {},
		"of an owner":       {Owner: "ann"},
		"of nobody":         {Owner: "an"},
		"of a namespace":    {Namespace: "cars"},
		"of a name":         {Name: "nightly"},
		"of a schedule":     {Schedule: "night"},
		"of a schedule, the oldest first, in a phase": {Schedule: "night", Oldest: true, Phases: []event.Phase{event.PhaseFinished}},
		"of a set":           {Set: "s1"},
		"of a cell of a set": {Set: "s1", Cell: "size=1K"},
		"of a cell of a set, oldest first, with a label": {
			Set: "s1", Cell: "n=2,size=1M", Oldest: true,
			Labels: map[string]string{"odd": "yes"},
		},
		"of a cell that the set lacks":                 {Set: "s2", Cell: "n=2,size=1M"},
		"of a cell, which means nothing without a set": {Cell: "size=1K"},
		"of no set that there is":                      {Set: "s"},
		"of no schedule that there is":                 {Schedule: "nigh"},
		"in a phase":                                   {Phases: []event.Phase{event.PhaseFinished}},
		"in one of some phases":                        {Phases: []event.Phase{event.PhasePending, event.PhaseRunning}},
		"in any phase":                                 {Phases: event.Phases()},
		"with an outcome":                              {Outcomes: []event.Outcome{event.Failed}},
		"with one of some outcomes":                    {Outcomes: []event.Outcome{event.Failed, event.Succeeded}},
		"of a framework":                               {Framework: "PyTorch"},
		"of a framework in other letters":              {Framework: "pytorch"},
		"of a version of a framework":                  {Framework: "jax", FrameworkVersion: "2.4"},
		"with data of an ID":                           {DataID: "mnist"},
		"with data of an ID, a label and a framework": {
			DataID: "größe x", Framework: "PyTorch",
			Labels: map[string]string{"odd": "yes"},
		},
		"with a label":                                   {Labels: map[string]string{"odd": "yes"}},
		"with an empty label":                            {Labels: map[string]string{"même": ""}},
		"with all labels":                                {Labels: map[string]string{"odd": "no", "même": "é", "i": "4"}},
		"with labels that no run has":                    {Labels: map[string]string{"odd": "yes", "même": "é"}},
		"with a label that is not there":                 {Labels: map[string]string{"none": ""}},
		"since a time, itself included":                  {Since: at(3)},
		"until a time, itself not included":              {Until: at(3)},
		"that begin with a text":                         {Text: "BENCH"},
		"whose ID begins with it":                        {Text: "Run0"},
		"whose name begins with it, or whose task is it": {Text: "n"},
		"whose task is it":                               {Text: "tRAIN"},
		"whose task only begins with it":                 {Text: "trai"},
		"that begin with it in any alphabet":             {Text: "GRÖSSE"},
		"that begin with it in other letters":            {Text: "GRÖßE/ä"},
		"that begin with what is no text":                {Text: "X\x00"},
		"that begin with a pattern, which it is not":     {Text: "%"},
		"oldest first":                                   {Oldest: true},
		"oldest first, of a label":                       {Oldest: true, Labels: map[string]string{"odd": "yes"}},
		"oldest first, of a text and a phase":            {Oldest: true, Text: "bench", Phases: []event.Phase{event.PhaseFinished}},
		"between two times":                              {Since: at(1), Until: at(4)},
		"that are all of this": {
			Owner: "ann", Namespace: "pets", Phases: []event.Phase{event.PhaseFinished},
			Labels: map[string]string{"odd": "no"}, Since: at(1), Until: at(9),
		},
	} {
		var want []store.Run
		for _, r := range all {
			if matches(f, r) {
				want = append(want, r)
			}
		}
		if f.Oldest {
			slices.Reverse(want)
		}
		eventually(t, name, want, listRuns(ctx, s, f, 100))
		eventually(t, name+", page by page", want, listRuns(ctx, s, f, 2))
	}
	changed, c := all[0], changeAt(all[0].ID, 2, "e2")
	changed.Revision, changed.Phase, changed.Owner, changed.Labels = 2, event.PhaseCanceling, "eve",
		map[string]string{"new": "1", "odd": "yes"}
	must(t, s.PutRun(ctx, changed, c))
	eventually(t, "a run that changed is found by what it is", []store.Run{changed},
		listRuns(ctx, s, store.RunFilter{Owner: "eve", Phases: []event.Phase{event.PhaseCanceling}, Labels: map[string]string{"new": "1"}},
			10))
	eventually(t, "and not by what it was", nil, listRuns(ctx, s, store.RunFilter{Labels: map[string]string{"i": "11"}}, 10))
}

func testPages(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("run%02d", i)
		put(ctx, t, s, id, 1)
		want = append([]string{id}, want...)
	}
	eventually(t, "all are there", want, func() ([]string, error) { return ids(listRuns(ctx, s, store.RunFilter{}, 100)()) })
	t.Run("pages neither skip nor repeat while runs arrive and change", func(t *testing.T) {
		var got []string
		token := ""
		for i := 0; i == 0 || token != ""; i++ {
			runs, next, err := s.Runs(ctx, store.RunFilter{}, token, 7)
			must(t, err)
			page, _ := ids(runs, nil)
			got, token = append(got, page...), next
			put(ctx, t, s, fmt.Sprintf("run%02d", 90+i), 1)
			must(t, s.PutRun(ctx, runAt(want[20-i], 2), changeAt(want[20-i], 2, "e2")))
		}
		wantSame(t, want, got)
	})
	t.Run("oldest first, what arrives comes last, once", func(t *testing.T) { testOldest(ctx, t, s) })
	t.Run("a page that holds the last run has no next, however full it is", func(t *testing.T) {
		runs, next, err := s.Runs(ctx, store.RunFilter{Until: at(7).Add(1)}, "", 8)
		must(t, err)
		wantSame(t, "8 ", fmt.Sprint(len(runs), " ", next))
	})
	t.Run("a token that the store did not give for this list is none", func(t *testing.T) {
		_, token, err := s.Runs(ctx, store.RunFilter{}, "", 2)
		must(t, err)
		for _, foreign := range []string{"x", "§", "AAAAAAAAAAAAAAAA", token + "A", token[1:]} {
			_, _, err := s.Runs(ctx, store.RunFilter{}, foreign, 2)
			wantError(t, err, store.ErrCursor)
		}
		for _, other := range []store.RunFilter{{Owner: "ann"}, {Text: "run"}, {Oldest: true}} {
			_, _, err = s.Runs(ctx, other, token, 2)
			wantError(t, err, store.ErrCursor)
		}
		_, _, err = s.Lines(ctx, store.LineQuery{Run: "run00"}, token, 2)
		wantError(t, err, store.ErrCursor)
	})
}

// testOldest pages through runs, oldest first, while another arrives.
func testOldest(ctx context.Context, t *testing.T, s Store) {
	t.Helper()
	f := store.RunFilter{Oldest: true, Until: at(60)}
	old, err := ids(listRuns(ctx, s, f, 100)())
	must(t, err)
	var got []string
	token := ""
	for i := 0; i == 0 || token != ""; i++ {
		runs, next, err := s.Runs(ctx, f, token, 7)
		must(t, err)
		page, _ := ids(runs, nil)
		got, token = append(got, page...), next
		if i == 0 {
			put(ctx, t, s, "new50", 1)
			eventually(t, "it is there", "new50", func() (string, error) {
				runs, _, err := s.Runs(ctx, store.RunFilter{Text: "NEW"}, "", 1)
				if err != nil || len(runs) == 0 {
					return "", err
				}
				return runs[0].ID, nil
			})
		}
	}
	wantSame(t, append(old, "new50"), got)
}

// put stores a run with n changes, e1, e2 and so on, and returns them.
func put(ctx context.Context, t *testing.T, s Store, id string, n int) []store.Change {
	t.Helper()
	changes := make([]store.Change, n)
	for i := range changes {
		revision := int64(i + 1)
		changes[i] = changeAt(id, revision, fmt.Sprint("e", revision))
		must(t, s.PutRun(ctx, runAt(id, revision), changes[i]))
	}
	return changes
}

// runAt returns a run after the given number of changes, created at the second that ends its ID.
func runAt(id string, revision int64) store.Run {
	second, _ := strconv.Atoi(id[max(0, len(id)-2):])
	r, _ := NewRun(id, at(second))
	r.Revision, r.Message = revision, fmt.Sprint("revision ", revision)
	return r
}

func changeAt(run string, revision int64, ev string) store.Change {
	return store.Change{
		Run: run, Revision: revision, Event: ev, Topic: event.TopicStatus, Time: at(int(revision)),
		Attempt: 1, Phase: event.PhaseRunning,
	}
}

// listRuns reads all pages.
func listRuns(ctx context.Context, s Store, f store.RunFilter, limit int) func() ([]store.Run, error) {
	return func() (all []store.Run, err error) {
		for token := ""; ; {
			runs, next, err := s.Runs(ctx, f, token, limit)
			if all = append(all, runs...); err != nil || next == "" {
				return all, err
			}
			if len(runs) != limit {
				return all, fmt.Errorf("a page of %d before the last", len(runs))
			}
			token = next
		}
	}
}

func ids(runs []store.Run, err error) (ids []string, _ error) {
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids, err
}

func pickOne[T any](i int, of ...T) T { return of[i%len(of)] }

// fullRun returns a run that has everything, and its change.
func fullRun(id string) (store.Run, store.Change) {
	when := func(s int) *time.Time { t := at(s); return &t }
	progress := &event.Progress{Done: 1 << 60, Total: 1<<62 + 1, Unit: "bytes"}
	r := store.Run{
		ID: id, Name: "näme", Namespace: "pets", Owner: "ann@example.com",
		Lineage: event.Lineage{
			Set: "s", Cell: "a=1,b=2", Repetition: 3, Warmup: true, Schedule: "daily", Firing: when(1), RerunOf: "old",
			Confirms: "incident", Compares: "comparison", Nodes: &event.NodePreference{On: []string{"a"}, NotOn: []string{"b", "c"}},
		},
		Labels: map[string]string{"k": "v", "empty": "", "a.b/c": "\"quoted\" ☃\n"}, File: "/tmp/x y.toml",
		Descriptor: "a = '''\n\t\"\\u0000'''\n",
		Phase:      event.PhaseFinished, Outcome: event.Failed, Class: event.ClassUser, Reason: event.OOMKilled,
		Message: "<b>&amp;\u2028", Progress: progress,
		Attempt: 2, ExitCode: new(137), Created: at(0), Updated: at(1), Started: when(2), Ended: when(3),
		Data: []event.Data{{
			Source: "https://x/y", Path: "/data", Object: "o", SHA256: "ab", Size: 1 << 40,
			Unpack: true, Writable: true,
		}},
		Collectors: []string{"u1", "u2"}, Revision: 1,
		Overrides: []event.Override{{Path: "a", Value: "1"}}, Origination: &event.Provenance{URI: "stored:a@1", SHA256: "ab"},
	}
	return r, store.Change{
		Run: id, Revision: 1, Event: "e", Topic: event.TopicFinished, Time: at(4), Attempt: 2, Phase: event.PhaseFinished,
		Outcome: event.Failed, Class: event.ClassUser, Reason: event.OOMKilled, Message: "it ended", Progress: progress, Late: true,
	}
}
