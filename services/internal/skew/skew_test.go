package skew_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/skew"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

type item struct{ Since int }

func TestWhatWasPutAsideFirstStaysUntilItIsDecidedAbout(t *testing.T) {
	t.Parallel()
	docs := storetest.NewMemory()
	q, other := skew.NewQueue[item](docs, store.KindOrder, "unread/"), skew.NewQueue[item](docs, store.KindOrder, "v/")
	for i := range 250 {
		if _, err := q.PutIfAbsent(t.Context(), fmt.Sprintf("r%03d", i), item{i}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.PutIfAbsent(t.Context(), "r", item{-1}); err != nil {
		t.Fatal(err)
	}
	if was, err := q.PutIfAbsent(t.Context(), "r007", item{1000}); err != nil || was.Since != 7 {
		t.Errorf("put once more: %+v, %v", was, err)
	}
	left := func(decide func(i item) (bool, error)) (seen []int) {
		_ = q.ForEach(t.Context(), func(_ context.Context, i item) (bool, error) {
			seen = append(seen, i.Since)
			return decide(i)
		})
		return seen
	}
	if got := left(func(i item) (bool, error) { return i.Since != 8 && i.Since != 9, nil }); len(got) != 250 {
		t.Errorf("%d were handed over", len(got))
	}
	if got := left(func(item) (bool, error) { return true, errors.New("away") }); !cmp.Equal(got, []int{8}) {
		t.Errorf("after a failure: %v", got)
	}
	if err := q.Delete(t.Context(), "r008"); err != nil {
		t.Error(err)
	}
	if got := left(func(item) (bool, error) { return false, nil }); !cmp.Equal(got, []int{9}) {
		t.Errorf("left: %v", got)
	}
}

func TestARunWaitsAsLongAsItsDescriptorLetsItPend(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 10 * time.Minute, "quantum = 1\n[limits]\npending_deadline = \"5s\"\n": 5 * time.Second, "]": 10 * time.Minute,
	} {
		if skew.Expired(since, text, since.Add(want-1)) || !skew.Expired(since, text, since.Add(want)) {
			t.Errorf("%q: not %s", text, want)
		}
	}
}

func TestAtMost20FaultsAreTold(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 25 {
		fmt.Fprintf(&text, "unknown_%d = 1\n", i)
	}
	_, faults := parser.Parse("d.toml", []byte(text.String()))
	got := strings.Split(skew.WaitMessage("fetcher", "", faults), "\n")
	if len(got) != 21 || !strings.HasPrefix(got[0], "waiting for a newer fetcher, 10m0s at most; this one cannot read what the gateway accepted: d.toml:") || !strings.HasPrefix(got[20], "and ") {
		t.Errorf("%q", got)
	}
}
