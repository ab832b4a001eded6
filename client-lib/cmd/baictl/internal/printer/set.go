package printer

import (
	"cmp"
	"fmt"
	"strings"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// SetStatus is how a set stands in one word: its outcome, or else its state.
func SetStatus(s *baiv1.Set) string {
	if s.GetState() == baiv1.SetState_SET_STATE_FINISHED && s.GetOutcome() != 0 {
		return Word(s.GetOutcome())
	}
	return Word(s.GetState())
}

// SetCounts are the numbers of a set's runs: "5 of 12 runs ended, 1 failed, 4 active".
func SetCounts(s *baiv1.Set) string {
	parts := []string{fmt.Sprintf("%d of %s ended", s.GetSucceeded()+s.GetFailed()+s.GetCanceled(), Plural(s.GetRunCount(), "run"))}
	for _, part := range []struct {
		n    int32
		word string
	}{{s.GetFailed(), "failed"}, {s.GetCanceled(), "canceled"}, {s.GetSkipped(), "skipped"}, {s.GetActive(), "active"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	return strings.Join(parts, ", ")
}

// SetProgress is the numbers of a set's runs, and its end as far as it is known: "5 of 12
// runs ended, 4 active, ends about 2026-01-02T03:04:05Z".
func SetProgress(s *baiv1.Set) string {
	text := SetCounts(s)
	if end := Time(s.GetEstimatedEndTime()); end != "" {
		text += ", ends about " + end
	}
	return text
}

// Plural is a number of things: "1 run", "2 runs".
func Plural[N int | int32](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// SetSize is the numbers of a set's cells and runs: "set sizes, 6 cells, 12 runs".
func SetSize(s *baiv1.Set) string {
	return Clean(fmt.Sprintf("set %s, %s, %s", cmp.Or(s.GetName(), s.GetId()), Plural(s.GetCellCount(), "cell"),
		Plural(s.GetRunCount(), "run")))
}

// CellRuns is how many runs each cell of a set has: "2 repetitions and 1 warm-up". Where the
// entries of a suite differ, or some runs are made again, it is how many a cell has at most.
func CellRuns(s *baiv1.Set, warmup string) string {
	text := Plural(s.GetRepetitions(), "repetition")
	if n := s.GetWarmup(); n > 0 {
		text += " and " + Plural(n, warmup)
	}
	if s.GetRunCount() != s.GetCellCount()*(s.GetRepetitions()+s.GetWarmup()) {
		return "up to " + text
	}
	return text
}

// Set is a set on one line.
func Set(s *baiv1.Set) string {
	return Clean(fmt.Sprintf("set %s, %s, %s: %s", cmp.Or(s.GetName(), s.GetId()),
		Plural(s.GetCellCount(), "cell"), SetStatus(s), SetCounts(s)))
}
