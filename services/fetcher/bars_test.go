package fetcher_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/internal/pairtest"
)

// Limits for fetching 1 GiB: the time relative to a program that only copies and sums
// the same bytes, and the memory, both in a process that does nothing else; and the
// bytes transferred if the transfer is cut five times.
const (
	maxTimeRatio  = 1.15
	maxMemoryMiB  = 64 // MiB
	maxMovedRatio = 1.2
)

// TestProgram is not a test: it runs the programs that the next test compares.
func TestProgram(t *testing.T) {
	part, src, sum := os.Getenv(pairtest.Env), os.Getenv("PAIR_SOURCE"), os.Getenv("PAIR_SUM")
	dir := os.Getenv("PAIR_DIR")
	var work func() error
	switch part {
	case "":
		t.Skip("for TestAFetchKeepsItsBars")
	case "bare":
		to := filepath.Join(dir, "copy")
		work = func() error {
			_ = os.Remove(to) // the first time there is none
			return plainCopy(src, to, sum)
		}
	default:
		s := quick()
		if part == "in-parts" {
			s.Sources.Slow = 1 << 50
		}
		work = fetching(t, dir, s, src, sum)
	}
	if err := pairtest.ServeTurns(os.Stdin, os.Stdout, work); err != nil {
		t.Error(err)
	}
}

// fetching returns a function that fetches a source again for another run.
func fetching(t *testing.T, dir string, s dataset.Settings, src, sum string) func() error {
	t.Helper()
	w := openFixture(t, dir)
	p := w.start(t, s)
	n := 0
	return func() error {
		n++
		run := fmt.Sprintf("r%d", n)
		p.PublishAndWait(runWith(run, data{src: fmt.Sprintf("%s/%d", src, n), sha256: sum}))
		return w.deleteFetched(t, p.waitFetched(t, run)[0])
	}
}

// TestAFetchKeepsItsBars measures on an idle machine, if BAI_BARS is set. BAI_BARS=1
// fetches 1 GiB. Another number is a size in MiB, for which only the limits of memory
// and of bytes transferred hold. BAI_TURNS is the number of measurements.
func TestAFetchKeepsItsBars(t *testing.T) {
	mib, turns := bars(t)
	file := filepath.Join(t.TempDir(), "source")
	sum := writeBig(t, file, mib)
	whole, parts, cuts := newCuttingServer(file, mib, 0), newCuttingServer(file, mib, 0), newCuttingServer(file, mib, 5)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) }))
	for _, c := range []interface{ Close() }{whole, parts, cuts, plain} {
		t.Cleanup(c.Close)
	}
	// GOGC and GOMEMLIMIT have the values of the program fetcher.
	start := func(part, src string) *pairtest.Program {
		return pairtest.Start(t, "TestProgram", part, "GOGC=50", "GOMEMLIMIT=36MiB", "PAIR_SOURCE="+src, "PAIR_SUM="+sum, "PAIR_DIR="+t.TempDir())
	}
	bareCopy := start("bare", plain.URL)
	one := start("fetcher", plain.URL)
	r := pairtest.Compare(t, turns, one, bareCopy, nil)
	t.Logf("%d MiB, one connection: %s; %.1f MiB of memory", mib, r, one.PeakMemory(t))
	if r.Best > maxTimeRatio && mib == 1024 {
		t.Errorf("%.2f × the time of a program that copies and sums the same, want %.2f at most", r.Best, maxTimeRatio)
	}
	split := start("in-parts", parts.URL)
	r = pairtest.Compare(t, turns, split, bareCopy, nil)
	t.Logf("%d MiB, in parts though one connection is fast: %s; %.1f MiB of memory", mib, r, split.PeakMemory(t))
	cut := start("cut", cuts.URL)
	for range turns {
		cut.RunOnce(t)
	}
	moved := float64(cuts.moved.Load()) / float64(turns) / float64(int64(mib)<<20)
	t.Logf("%d MiB, cut 5 times: %.3f × as many bytes moved; %.1f MiB of memory", mib, moved, cut.PeakMemory(t))
	if moved > maxMovedRatio {
		t.Errorf("%.2f × the bytes were moved, want %.1f at most", moved, maxMovedRatio)
	}
	for name, p := range map[string]*pairtest.Program{"one connection": one, "in parts": split, "cut": cut} {
		if peak := p.PeakMemory(t); peak > maxMemoryMiB {
			t.Errorf("%s: %.1f MiB of memory, want %d at most", name, peak, maxMemoryMiB)
		}
	}
}

// bars returns the number of MiB to fetch, and how often, or skips the test.
func bars(t *testing.T) (mib, turns int) {
	t.Helper()
	mib, err := strconv.Atoi(cmp.Or(os.Getenv("BAI_BARS"), "0"))
	if err != nil {
		t.Fatal(err)
	}
	if mib == 0 {
		t.Skip("measures: set BAI_BARS=1 on a machine that does nothing else")
	}
	if mib == 1 {
		mib = 1024
	}
	turns, err = strconv.Atoi(cmp.Or(os.Getenv("BAI_TURNS"), "5"))
	if err != nil {
		t.Fatal(err)
	}
	return mib, turns
}
