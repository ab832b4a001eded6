package fetcher_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// What the gateway makes of what it hears of a run that has waited for hours.
const (
	forgets = 5 * time.Minute  // it keeps nothing that follows something so soon
	doubts  = 15 * time.Minute // it takes a run for one that stands still
)

// waiting is a run that waits for its data, as the gateway sees it.
type waiting struct {
	said []string
	kept time.Time // when what it keeps was last said
}

// day lets a day pass for runs with a source each on a fetcher that transfers one
// at a time, which says why it waits. It returns what was said of each.
func day(t *testing.T, runs int, why string) map[string]*waiting {
	t.Helper()
	b := fetcher.NewBoard()
	all, ids := make(map[string]*waiting), make(map[string]bool)
	for i := range runs {
		s := submitted(fmt.Sprintf("r%02d", i))
		b.Order(fetcher.Order{Submitted: s, Sources: []fetcher.Source{{URL: fmt.Sprint("https://example.com/", i)}}, Asked: noon})
		all[s.Run] = &waiting{kept: noon}
	}
	b.Start(t.Context(), noon)
	b.Wait(fetcher.Source{URL: "https://example.com/0"}, why)
	for now := noon; now.Before(noon.Add(24 * time.Hour)); now = now.Add(time.Minute) {
		for _, ev := range b.Tell(now) {
			if ids[ev.Head().ID] {
				t.Fatalf("at %s something is said again, which is no news: %+v", now, ev)
			}
			ids[ev.Head().ID] = true
			all[ev.Head().Run].hear(t, ev, now)
		}
		for run, w := range all {
			if now.Sub(w.kept) >= doubts {
				t.Fatalf("at %s nothing was heard of run %s since %s", now, run, w.kept)
			}
		}
	}
	return all
}

func (w *waiting) hear(t *testing.T, ev event.Event, now time.Time) {
	t.Helper()
	s, ok := ev.(event.Status)
	if !ok {
		t.Fatalf("a %T is said", ev)
	}
	w.said = append(w.said, s.Message)
	if now.Sub(w.kept) >= forgets {
		w.kept = now
	}
}

func TestARunThatWaitsForItsDataForADayIsNeverForgotten(t *testing.T) {
	for name, tt := range map[string]struct {
		runs  int
		first string // what is said of the run whose transfer works
		why   string
	}{
		"for a source that says when to come again": {runs: 3, why: "answers 429 Too Many Requests", first: "/0: answers 429 Too Many Requests"},
		"for a source from which nothing comes":     {runs: 3, first: "sends nothing"},
		"among many":                                {runs: 50, first: "sends nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			all := day(t, tt.runs, tt.why)
			for run, w := range all {
				if n := len(w.said); n < 24*6 || n > 24*15 {
					t.Errorf("of run %s something is said %d times a day", run, n)
				}
			}
			if said := all["r00"].said[0]; !strings.Contains(said, tt.first) {
				t.Errorf("of the first it is said: %s", said)
			}
			if said := all["r02"].said[0]; !strings.Contains(said, "https://example.com/2 waits for a free transfer (1 ahead)") {
				t.Errorf("of the third it is said: %s", said)
			}
		})
	}
}

func TestARetryIsToldWithItsReasonAtOnceAndOnce(t *testing.T) {
	b := fetcher.NewBoard()
	from := fetcher.Source{URL: "https://example.com/0"}
	b.Order(fetcher.Order{Submitted: submitted("r0"), Sources: []fetcher.Source{from}, Asked: noon})
	b.Start(t.Context(), noon)
	b.Tell(noon)
	var said []string
	for i := range 60 {
		if try := i/20 + 2; i%20 == 0 {
			b.Wait(from, fmt.Sprintf("connection refused, retrying in 20s (try %d of 7)", try))
		}
		for _, ev := range b.Tell(noon.Add(time.Duration(i+1) * time.Second)) {
			if s, ok := ev.(event.Status); ok {
				said = append(said, s.Message)
			}
		}
	}
	var want []string
	for try := 2; try <= 4; try++ {
		want = append(want, fmt.Sprintf("fetching 1 data set: https://example.com/0: connection refused, retrying in 20s (try %d of 7)", try))
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

func TestOfAPrefetchItIsNotedWhatItWaitsForUntilItMoves(t *testing.T) {
	b := fetcher.NewBoard()
	from := fetcher.Source{URL: "https://example.com/0"}
	b.Order(fetcher.Order{Submitted: submitted("r0"), Sources: []fetcher.Source{from}, Asked: noon, Prefetch: true})
	b.Start(t.Context(), noon)
	b.Tell(noon)
	b.Wait(from, "connection refused")
	said := b.Noted(noon.Add(time.Minute))
	said = append(said, b.Noted(noon.Add(time.Hour))...)
	b.Come(from, 10)
	if said = append(said, b.Noted(noon.Add(2*time.Hour))...); len(said) != 2 || said[0] != "connection refused" || said[1] != "" {
		t.Errorf("noted %q", said)
	}
}

func TestOfARunWhoseDataMoveNothingElseIsSaid(t *testing.T) {
	b := fetcher.NewBoard()
	from := fetcher.Source{URL: "https://example.com/0"}
	b.Order(fetcher.Order{Submitted: submitted("r0"), Sources: []fetcher.Source{from}, Asked: noon})
	b.Start(t.Context(), noon)
	for i := range 3600 {
		b.Come(from, int64(i))
		for _, ev := range b.Tell(noon.Add(time.Duration(i) * time.Second)) {
			if s, ok := ev.(event.Status); !ok || s.Progress.Unit != "bytes" {
				t.Fatalf("after %d s it is said: %+v", i, ev)
			}
		}
	}
}
