package gotest_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/test/ci/gotest"
)

// recorded are events of Go's own test runner: a test that fails, one that panics,
// one that hangs, one with a race, a package that does not build, and one whose
// TestMain fails.
func recorded(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/events.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func text(r gotest.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped\nskipped: %s\n", r.Passed, r.Failed, r.Skipped, strings.Join(r.Skips, ", "))
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\n%s %s\n", f.Package, f.Test)
		for _, line := range f.Why {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}

func TestEachFailureIsReportedOnceWithTheLinesThatExplainIt(t *testing.T) {
	t.Parallel()
	var r gotest.Reader
	if _, err := r.Write(recorded(t)); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/report.txt", []byte(text(r.Report())))
}

func TestTheReportIsTheSameHoweverTheStreamIsCut(t *testing.T) {
	t.Parallel()
	var whole, cut gotest.Reader
	_, _ = whole.Write(recorded(t))
	for _, b := range bytes.SplitAfter(recorded(t), []byte(`"`)) {
		_, _ = cut.Write(b)
	}
	if diff := cmp.Diff(whole.Report(), cut.Report()); diff != "" {
		t.Errorf("whole (-) and in pieces (+):\n%s", diff)
	}
}

func TestLinesThatAreNoEventsAreLeftOut(t *testing.T) {
	t.Parallel()
	var r gotest.Reader
	_, _ = r.Write([]byte("NOTE: no C compiler\n{\"a\": 1}\n{not json\n....\nRan 4 tests in 0.1s\n\nOK\n"))
	if diff := cmp.Diff(gotest.Report{}, r.Report()); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyTestsThatRunThemselvesBecomeOverdue(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	event := func(after time.Duration, action, test string) string {
		return fmt.Sprintf(`{"Time":%q,"Action":%q,"Package":"p","Test":%q}`+"\n", begin.Add(after).Format(time.RFC3339Nano), action, test)
	}
	var r gotest.Reader
	for _, e := range []string{
		event(0, "run", "TestParent"), event(time.Second, "run", "TestParent/child"),
		event(0, "run", "TestWaitsForItsTurn"), event(time.Second, "pause", "TestWaitsForItsTurn"),
		event(0, "run", "TestEnded"), event(time.Minute, "pass", "TestEnded"),
		event(0, "run", "TestTurn"), event(time.Second, "pause", "TestTurn"), event(9*time.Minute, "cont", "TestTurn"),
	} {
		_, _ = r.Write([]byte(e))
	}
	want := []gotest.Overdue{{Package: "p", Test: "TestParent/child", Since: begin.Add(time.Second)}}
	if diff := cmp.Diff(want, r.Overdue(begin.Add(5*time.Minute))); diff != "" {
		t.Error(diff)
	}
}

func FuzzAnyOutputIsTaken(f *testing.F) {
	f.Add([]byte(`{"Action":"fail","Package":"p","Test":"T/a"}` + "\n" + `{"Action":"cont","Test":"T"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r gotest.Reader
		if n, err := r.Write(b); n != len(b) || err != nil {
			t.Fatalf("Write returned %d, %v", n, err)
		}
		_, _ = r.Report(), r.Overdue(time.Now())
	})
}
