package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/store"
)

const kind = store.KindPlan

func doc(key, value string) store.Doc {
	return store.Doc{Kind: kind, Key: key, Value: []byte(value)}
}

func testDocs(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	t.Run("a document that is not there is not found", func(t *testing.T) {
		d, err := s.Doc(ctx, kind, "nothing")
		wantError(t, err, store.ErrNotFound)
		wantSame(t, store.Doc{}, d)
	})
	t.Run("a new document is version 1 and is read as it was written, by any key", func(t *testing.T) {
		for _, key := range []string{"a", " ", "ä/ö ☃ 😀", "with\x00nul", `'quoted" \%_`, strings.Repeat("k", store.MaxKey)} {
			value := fmt.Sprintf(`{"key":%q,"big":123456789012345678}`, "x"+strings.Repeat("é", 3))
			must(t, s.CreateDoc(ctx, doc(key, value)))
			wantDoc(ctx, t, s, key, 1, value)
		}
	})
	t.Run("a document of 1 MiB is kept", func(t *testing.T) {
		value := `"` + strings.Repeat("x", 1<<20) + `"`
		must(t, s.CreateDoc(ctx, doc("large", value)))
		wantDoc(ctx, t, s, "large", 1, value)
	})
	t.Run("what exists is not created again and stays as it is", func(t *testing.T) {
		must(t, s.CreateDoc(ctx, doc("twice", `1`)))
		wantError(t, s.CreateDoc(ctx, doc("twice", `2`)), store.ErrExists)
		wantDoc(ctx, t, s, "twice", 1, `1`)
	})
	t.Run("a key of another kind is another document", func(t *testing.T) {
		must(t, s.CreateDoc(ctx, doc("kinds", `1`)))
		must(t, s.CreateDoc(ctx, store.Doc{Kind: store.KindOrder, Key: "kinds", Value: []byte(`2`)}))
		wantDoc(ctx, t, s, "kinds", 1, `1`)
	})
	t.Run("keys that differ in case or in trailing space are others", func(t *testing.T) {
		for i, key := range []string{"Case", "case", "case "} {
			must(t, s.CreateDoc(ctx, doc(key, fmt.Sprint(i))))
		}
		wantDoc(ctx, t, s, "case", 1, `1`)
	})
	t.Run("a document is replaced over the version that is there, and only over that", func(t *testing.T) {
		must(t, s.CreateDoc(ctx, doc("replaced", `1`)))
		for _, version := range []int64{0, 2, -1} {
			_, err := s.ReplaceDoc(ctx, store.Doc{Kind: kind, Key: "replaced", Version: version, Value: []byte(`3`)})
			wantError(t, err, store.ErrConflict)
		}
		wantDoc(ctx, t, s, "replaced", 1, `1`)
		v, err := s.ReplaceDoc(ctx, store.Doc{Kind: kind, Key: "replaced", Version: 1, Value: []byte(`2`)})
		must(t, err)
		wantDoc(ctx, t, s, "replaced", v, `2`)
		_, err = s.ReplaceDoc(ctx, store.Doc{Kind: kind, Key: "replaced", Version: 1, Value: []byte(`2`)})
		wantError(t, err, store.ErrConflict)
	})
	t.Run("what is not there cannot be replaced", func(t *testing.T) {
		_, err := s.ReplaceDoc(ctx, store.Doc{Kind: kind, Key: "gone", Version: 1, Value: []byte(`1`)})
		wantError(t, err, store.ErrConflict)
		_, err = s.Doc(ctx, kind, "gone")
		wantError(t, err, store.ErrNotFound)
	})
	t.Run("a document is deleted at the version that is there, or at any, and again", func(t *testing.T) {
		must(t, s.CreateDoc(ctx, doc("deleted", `1`)))
		wantError(t, s.DeleteDoc(ctx, store.Doc{Kind: kind, Key: "deleted", Version: 2}), store.ErrConflict)
		wantDoc(ctx, t, s, "deleted", 1, `1`)
		must(t, s.DeleteDoc(ctx, store.Doc{Kind: kind, Key: "deleted", Version: 1}))
		must(t, s.DeleteDoc(ctx, store.Doc{Kind: kind, Key: "deleted", Version: 1}))
		must(t, s.CreateDoc(ctx, doc("deleted", `2`)))
		must(t, s.DeleteDoc(ctx, store.Doc{Kind: kind, Key: "deleted"}))
		must(t, s.DeleteDoc(ctx, store.Doc{Kind: kind, Key: "deleted"}))
		_, err := s.Doc(ctx, kind, "deleted")
		wantError(t, err, store.ErrNotFound)
	})
}

func testLister(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	keys := []string{" ", "/", "10", "9", "B", "a", "a ", "aa", "b", "é", "☃", "😀"} // in the order of their bytes
	for i := range keys {
		must(t, s.CreateDoc(ctx, doc(keys[(i*5)%len(keys)], `{}`)))
	}
	must(t, s.CreateDoc(ctx, store.Doc{Kind: store.KindOrder, Key: "other", Value: []byte(`{}`)}))
	list := func(k store.Kind, after string, limit int) func() ([]string, error) {
		return func() (got []string, err error) {
			docs, err := s.Docs(ctx, k, after, limit)
			for _, d := range docs {
				if d.Kind != k || d.Version != 1 || string(d.Value) != `{}` {
					err = errors.Join(err, fmt.Errorf("listed %+v", d))
				}
				got = append(got, d.Key)
			}
			return got, err
		}
	}
	eventually(t, "all documents of a kind are listed in the byte order of their keys", keys, list(kind, "", 100))
	eventually(t, "a list ends at its limit", keys[:5], list(kind, "", 5))
	eventually(t, "the next page begins after the last key", keys[5:], list(kind, keys[4], 100))
	eventually(t, "after need not be a key that is there", keys[5:], list(kind, "B~", 100))
	eventually(t, "after the last key there is nothing", nil, list(kind, "😀", 100))
	eventually(t, "a kind without documents has none", nil, list(store.KindSlotTable, "", 100))
}

func testLeases(t *testing.T, s Store) {
	t.Helper()
	ctx, ttl := t.Context(), 10*time.Second
	acquire := func(t *testing.T, name, holder string, now time.Time) store.Lease {
		t.Helper()
		l, err := store.Acquire(ctx, s, name, holder, now, ttl)
		must(t, err)
		return l
	}
	t.Run("who comes first holds it, and others until its end do not", func(t *testing.T) {
		l := acquire(t, "one", "ann", at(0))
		wantSame(t, "ann 1 "+at(10).String(), fmt.Sprint(l.Holder, " ", l.Fence, " ", l.ExpiresAt))
		_, err := store.Acquire(ctx, s, "one", "bob", at(9), ttl)
		wantError(t, err, store.ErrHeld)
	})
	t.Run("its holder renews it under the same fence", func(t *testing.T) {
		acquire(t, "two", "ann", at(0))
		l := acquire(t, "two", "ann", at(5))
		wantSame(t, "1 "+at(15).String(), fmt.Sprint(l.Fence, " ", l.ExpiresAt))
	})
	t.Run("another takes it at its end, under the next fence", func(t *testing.T) {
		acquire(t, "three", "ann", at(0))
		wantSame(t, int64(2), acquire(t, "three", "bob", at(10)).Fence)
		_, err := store.Acquire(ctx, s, "three", "ann", at(11), ttl)
		wantError(t, err, store.ErrHeld)
	})
	t.Run("a lease that is given back can be taken at once, and the fence grows", func(t *testing.T) {
		must(t, store.Release(ctx, s, acquire(t, "four", "ann", at(0))))
		wantSame(t, int64(2), acquire(t, "four", "bob", at(1)).Fence)
	})
	t.Run("who gives back what another took meanwhile changes nothing", func(t *testing.T) {
		old := acquire(t, "five", "ann", at(0))
		acquire(t, "five", "bob", at(20))
		must(t, store.Release(ctx, s, old))
		_, err := store.Acquire(ctx, s, "five", "ann", at(21), ttl)
		wantError(t, err, store.ErrHeld)
	})
	t.Run("of many who ask at once one holds it", func(t *testing.T) {
		var wg sync.WaitGroup
		got := make([]error, 16)
		for i := range got {
			wg.Go(func() { _, got[i] = store.Acquire(ctx, s, "many", fmt.Sprint(i), at(0), ttl) })
		}
		wg.Wait()
		held := 0
		for _, err := range got {
			if err == nil {
				held++
			} else if !errors.Is(err, store.ErrHeld) {
				t.Error(err)
			}
		}
		wantSame(t, 1, held)
	})
}

func wantDoc(ctx context.Context, t *testing.T, s Store, key string, version int64, value string) {
	t.Helper()
	d, err := s.Doc(ctx, kind, key)
	must(t, err)
	if string(d.Value) != value {
		t.Errorf("%.80q has value %.80q, want %.80q", key, d.Value, value)
	}
	wantSame(t, fmt.Sprint(kind, key, version), fmt.Sprint(d.Kind, d.Key, d.Version))
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func wantSame[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
