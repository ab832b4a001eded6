package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

var errAway = errors.New("the store is away")

func TestAllHandsOverEachDocumentOfAPrefixInTheOrderOfKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		prefix string
		n      int // documents of the prefix
		others []string
	}{
		"none":                               {"open/", 0, []string{"open", "z"}},
		"fewer than a page":                  {"open/", 3, []string{"a", "open", "open0", "z"}},
		"a page, to the document":            {"open/", 200, nil},
		"several pages":                      {"open/", 401, []string{"a", "z"}},
		"an empty prefix is that of all":     {"", 5, nil},
		"a document of its name is no child": {"own", 2, []string{"own"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := storetest.NewMemory()
			want := createAll(t, m, tt.prefix, tt.n)
			for _, other := range tt.others {
				create(t, m, other, -1)
			}
			var got []string
			for d, err := range store.All[int](t.Context(), m, store.KindOrder, tt.prefix) {
				if err != nil || d.Value != len(got) || d.Version != 1 {
					t.Errorf("%+v, %v; want value %d in version 1", d, err, len(got))
				}
				got = append(got, d.Key)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDocumentsMayBeDeletedWhileAllHandsThemOver(t *testing.T) {
	m, n := storetest.NewMemory(), 0
	createAll(t, m, "", 250)
	for d, err := range store.AllDocs(t.Context(), m, store.KindOrder, "") {
		if err == nil {
			err = m.DeleteDoc(t.Context(), d)
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 250 {
		t.Errorf("%d were handed over, want 250", n)
	}
}

func TestAllAfterBeginsBehindAKey(t *testing.T) {
	m := storetest.NewMemory()
	for _, key := range []string{"a/1", "a/2", "a/3", "b/1"} {
		create(t, m, key, 0)
	}
	var got []string
	for d, err := range store.AllAfter[any](t.Context(), m, store.KindOrder, "a/1") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d.Key)
	}
	if diff := cmp.Diff([]string{"a/2", "a/3", "b/1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAllAsksForNoMoreThanIsTaken(t *testing.T) {
	m := &flakyStore{Memory: storetest.NewMemory()}
	createAll(t, m.Memory, "", 250)
	for _, err := range store.AllDocs(t.Context(), m, store.KindOrder, "") {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if m.lists != 1 {
		t.Errorf("%d pages were asked for, want 1", m.lists)
	}
}

func TestADocumentThatCannotBeDecodedIsHandedOverWithItsErrorAndOthersFollow(t *testing.T) {
	m := storetest.NewMemory()
	create(t, m, "1", "text")
	create(t, m, "2", 2)
	var got []string
	for d, err := range store.All[int](t.Context(), m, store.KindOrder, "") {
		got = append(got, fmt.Sprint(d.Key, err != nil && strings.Contains(err.Error(), `read order "1"`)))
	}
	if diff := cmp.Diff([]string{"1true", "2false"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnErrorOfTheStoreIsTheLastThatAllHandsOver(t *testing.T) {
	m := &flakyStore{Memory: storetest.NewMemory(), failing: 2}
	createAll(t, m.Memory, "", 250)
	n, errs := 0, 0
	for d, err := range store.All[int](t.Context(), m, store.KindOrder, "") {
		if n++; err != nil {
			errs++
			if !errors.Is(err, errAway) || d.Key != "" {
				t.Errorf("key %q and error %v, want none and %v", d.Key, err, errAway)
			}
		}
	}
	if n != 201 || errs != 1 {
		t.Errorf("%d were handed over with %d errors, want 201 with 1", n, errs)
	}
}

func TestUpdateCreatesWhatIsNotThereAndReplacesWhatIs(t *testing.T) {
	m := storetest.NewMemory()
	for want := 1; want <= 3; want++ {
		got, err := store.Update(t.Context(), m, store.KindOrder, "k", func(is int, found bool) (int, bool, error) {
			if found != (want > 1) {
				t.Errorf("found is %t at update %d", found, want)
			}
			return is + 1, true, nil
		})
		if err != nil || got != want {
			t.Errorf("update %d says %d and %v", want, got, err)
		}
	}
}

func TestNoUpdateIsLostWhereSeveralUpdateADocument(t *testing.T) {
	m := storetest.NewMemory()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 25 {
				if _, err := store.Update(t.Context(), m, store.KindOrder, "k", increment); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, _, _, err := store.Find[int](t.Context(), m, store.KindOrder, "k"); err != nil || got != 200 {
		t.Errorf("%d and %v after 200 increments", got, err)
	}
}

func TestUpdateBeginsAnewWhereTheDocumentWasChangedOrDeletedInBetween(t *testing.T) {
	for name, meddle := range map[string]func(*storetest.Memory) error{
		"changed": func(m *storetest.Memory) error {
			_, err := store.Update(context.Background(), m, store.KindOrder, "k", increment)
			return err
		},
		"deleted": func(m *storetest.Memory) error {
			return m.DeleteDoc(context.Background(), store.Doc{Kind: store.KindOrder, Key: "k"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, calls := storetest.NewMemory(), 0
			create(t, m, "k", 10)
			_, err := store.Update(t.Context(), m, store.KindOrder, "k", func(is int, _ bool) (int, bool, error) {
				if calls++; calls == 1 {
					if err := meddle(m); err != nil {
						t.Error(err)
					}
				}
				return is + 1, true, nil
			})
			if err != nil || calls != 2 {
				t.Errorf("after %d calls: %v, want 2 and no error", calls, err)
			}
		})
	}
}

func TestUpdateWritesNothingWhereChangeSaysSo(t *testing.T) {
	for name, tt := range map[string]struct{ err error }{"no need": {}, "an error of change": {errAway}} {
		t.Run(name, func(t *testing.T) {
			m := storetest.NewMemory()
			got, err := store.Update(t.Context(), m, store.KindOrder, "k", func(int, bool) (int, bool, error) { return 7, false, tt.err })
			if got != 7 || !errors.Is(err, tt.err) {
				t.Errorf("it says %d and %v, want 7 and %v", got, err, tt.err)
			}
			if _, _, found, err := store.Find[int](t.Context(), m, store.KindOrder, "k"); found || err != nil {
				t.Errorf("found: %t, %v", found, err)
			}
		})
	}
}

func TestUpdateGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := storetest.NewMemory()
	create(t, m, "k", 0)
	_, err := store.Update(ctx, m, store.KindOrder, "k", func(is int, _ bool) (int, bool, error) {
		if _, err := store.Update(context.Background(), m, store.KindOrder, "k", increment); err != nil {
			t.Error(err)
		}
		cancel()
		return is, true, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v, want %v", err, context.Canceled)
	}
}

func TestARunIsCanceledOnceItHasAMark(t *testing.T) {
	m := &flakyStore{Memory: storetest.NewMemory()}
	if canceled, err := store.Canceled(t.Context(), m, "r"); canceled || err != nil {
		t.Errorf("without a mark: %t, %v", canceled, err)
	}
	if err := store.Create(t.Context(), m, store.KindCancel, "r", event.Command{}); err != nil {
		t.Fatal(err)
	}
	if canceled, err := store.Canceled(t.Context(), m, "r"); !canceled || err != nil {
		t.Errorf("with a mark: %t, %v", canceled, err)
	}
	m.away = true
	if canceled, err := store.Canceled(t.Context(), m, "r"); canceled || !errors.Is(err, errAway) {
		t.Errorf("while the store is away: %t, %v", canceled, err)
	}
}

func increment(is int, _ bool) (int, bool, error) { return is + 1, true, nil }

func create(t *testing.T, m *storetest.Memory, key string, v any) {
	t.Helper()
	if err := store.Create(t.Context(), m, store.KindOrder, key, v); err != nil {
		t.Fatal(err)
	}
}

// createAll creates n documents, with their numbers for values, and returns their
// keys.
func createAll(t *testing.T, m *storetest.Memory, prefix string, n int) (keys []string) {
	t.Helper()
	for i := range n {
		keys = append(keys, fmt.Sprintf("%s%03d", prefix, i))
		create(t, m, keys[i], i)
	}
	return keys
}

// flakyStore counts lists, and fails at one of them, or at each document.
type flakyStore struct {
	*storetest.Memory

	lists, failing int
	away           bool
}

func (f *flakyStore) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	if f.lists++; f.lists == f.failing {
		return nil, errAway
	}
	return f.Memory.Docs(ctx, kind, after, limit)
}

func (f *flakyStore) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	if f.away {
		return store.Doc{}, errAway
	}
	return f.Memory.Doc(ctx, kind, key)
}
