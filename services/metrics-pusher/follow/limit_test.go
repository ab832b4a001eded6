package follow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// lines are n lines of 10 bytes in a log, one each millisecond from a second on.
func lines(from, n int) []string {
	var all []string
	for i := from; i < from+n; i++ {
		all = append(all, logLine(time.Second+time.Duration(i)*time.Millisecond, fmt.Sprintf("line %04d", i)))
	}
	return all
}

// newLimitedFixture returns a fixture whose run stores 1,000 bytes of its log.
func newLimitedFixture(t *testing.T, log ...string) fixture {
	t.Helper()
	return newFixtureOf(t, newFakeCluster(log...), descriptor+"[limits]\nmax_log_size = \"1000B\"\n")
}

// wantCut checks that the first 50 and the last 50 of the n lines of a log are stored.
func wantCut(t *testing.T, got stored, n int) {
	t.Helper()
	if len(got.Lines) != 100 || !strings.HasSuffix(got.Lines[0], " line 0000") || !strings.HasSuffix(got.Lines[49], " line 0049") ||
		!strings.HasSuffix(got.Lines[50], fmt.Sprintf(" line %04d", n-50)) || !strings.HasSuffix(got.Lines[99], fmt.Sprintf(" line %04d", n-1)) {
		t.Errorf("%d lines: %q", len(got.Lines), got.Lines)
	}
	want := event.End{Count: got.LogEnd.Count, Last: got.LogEnd.Last, Dropped: int64(n - 100), Reason: fmt.Sprintf("limits.max_log_size: the log is cut at 1000 bytes, in the middle: %d bytes are not stored", 10*(n-100))}
	if got.LogEnd != want || got.LogEnd.Count < 100 || got.LogEnd.Last != int64(time.Second+time.Duration(n-1)*time.Millisecond) {
		t.Errorf("its end is %+v, want %+v", got.LogEnd, want)
	}
}

func TestOfALogOverItsLimitTheBeginningAndTheEndAreKept(t *testing.T) {
	t.Parallel()
	w := newLimitedFixture(t, append(lines(0, 299), logLine(1299*time.Millisecond, "line 0299"))...)
	w.change(func() { w.log[150] = logLine(time.Second+150*time.Millisecond, "n=7      ") })
	w.process(t, "a")
	until(t, "the beginning", func() bool { return len(w.stored().Lines) == 50 })
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	got := w.stored()
	wantCut(t, got, 300)
	if len(got.Samples) != 1 || !strings.HasSuffix(got.Samples[0], " n=7") || got.LogEnd.Count != 100 {
		t.Errorf("samples %q of the middle, %d lines", got.Samples, got.LogEnd.Count)
	}
}

func TestTheEndOfALogOverItsLimitOutlivesWhoReadIt(t *testing.T) {
	t.Parallel()
	w := newLimitedFixture(t, lines(0, 60)...)
	for k := range 6 {
		kill := w.process(t, fmt.Sprint("p", k))
		w.change(func() { w.log = append(w.log, lines(60+40*k, 40)...) })
		until(t, "a save behind the beginning", func() bool { return w.progress(t).Cut.Lines >= int64(40*k) && w.progress(t).Cut.Lines > 0 })
		kill()
	}
	w.fail(2)
	w.process(t, "last")
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	wantCut(t, w.stored(), 300)
}

func TestALogThatJustFitsIsWhole(t *testing.T) {
	t.Parallel()
	for n, dropped := range map[int]int64{50: 0, 51: 0, 100: 0, 101: 1} {
		w := newLimitedFixture(t, lines(0, n)...)
		w.process(t, "a")
		w.change(func() { w.ended = true })
		until(t, "the end", w.shipped(t))
		if got := w.stored(); len(got.Lines) != n-int(dropped) || got.LogEnd.Dropped != dropped || (got.LogEnd.Reason == "") != (dropped == 0) {
			t.Errorf("%d lines: %d stored, %+v", n, len(got.Lines), got.LogEnd)
		}
	}
}

func TestTheEndOfALogWhosePodIsGoneIsCounted(t *testing.T) {
	t.Parallel()
	w := newLimitedFixture(t, lines(0, 300)...)
	kill := w.process(t, "a")
	until(t, "a save behind the beginning", func() bool { return w.progress(t).Cut.Lines == 250 })
	kill()
	w.change(func() { w.deleted = true })
	w.process(t, "b")
	until(t, "the end", w.shipped(t))
	if got := w.stored(); len(got.Lines) != 50 || got.LogEnd.Dropped != 250 || !strings.Contains(got.LogEnd.Reason, "the pod was gone") {
		t.Errorf("%d lines, %+v", len(got.Lines), got.LogEnd)
	}
}

func TestAnEndThatCannotBeSaidIsSaidAgain(t *testing.T) {
	t.Parallel()
	w := newLimitedFixture(t, lines(0, 300)...)
	w.process(t, "a")
	until(t, "the beginning", func() bool { return len(w.stored().Lines) == 50 })
	w.fail(4)
	w.change(func() { w.ended = true })
	until(t, "the end", w.shipped(t))
	wantCut(t, w.stored(), 300)
}
