package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// envRole makes this test binary another program: see children.
const envRole = "BAI_TEST_ROLE"

func TestMain(m *testing.M) {
	child, ok := children()[os.Getenv(envRole)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := child(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestAProcessThatIsKilledLosesNothingAndHarmsNobody kills a process that writes to a file again and again, while this process writes to it
// and reads from it.
func TestAProcessThatIsKilledLosesNothingAndHarmsNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	ours := 0
	for range 5 {
		acknowledged := killWriter(t, path, 1+rand.IntN(10), func() {
			check(t, s.AppendLines(t.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", "ours"), Lines: numbered(ours, 10)}}))
			ours += 10
		})
		theirs := checkConsistent(t, s, ours)
		if theirs < acknowledged {
			t.Fatalf("%d lines were stored, but only %d are there", acknowledged, theirs)
		}
	}
	check(t, s.CheckIntegrity(t.Context()))
	closeStore(t, s)

	s = open(t, path)
	defer closeStore(t, s)
	check(t, s.CheckIntegrity(t.Context()))
	checkConsistent(t, s, ours)
}

// killWriter starts a process that writes, kills it once it has written the given number of batches, and returns how many lines it reported
// as stored. Meanwhile it calls do again and again.
func killWriter(t *testing.T, path string, batches int, do func()) (acknowledged int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], path) //nolint:gosec // this very program
	c.Env, c.Stderr = append(os.Environ(), envRole+"=writer"), os.Stderr
	out, err := c.StdoutPipe()
	check(t, errors.Join(err, c.Start()))
	last := make(chan int)
	go func() {
		n := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			n, _ = strconv.Atoi(lines.Text())
			if batches--; batches == 0 {
				_ = c.Process.Kill() // if it ended by itself, Wait returns that
			}
		}
		last <- n
	}()
	for {
		select {
		case acknowledged = <-last:
			if err := c.Wait(); err == nil || c.ProcessState.Exited() {
				t.Fatalf("the writer was not killed: %v", err)
			}
			return acknowledged
		default:
			do()
		}
	}
}

// checkConsistent checks that each source has its lines without a gap, that counts are right and that a run agrees with its changes. It
// returns how many lines the other process has stored.
func checkConsistent(t *testing.T, s *sqlite.Store, ours int) int {
	t.Helper()
	n := make(map[string]int64)
	for cursor := ""; ; {
		page, next, err := s.Lines(t.Context(), store.LineQuery{Run: "r"}, cursor, 5000)
		check(t, err)
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			if l.Seq != n[l.Origin.Pod] || l.Text != fmt.Sprint("line ", l.Seq) {
				t.Fatalf("of %s line %d is %d: %q", l.Origin.Pod, n[l.Origin.Pod], l.Seq, l.Text)
			}
			n[l.Origin.Pod]++
		}
		cursor = next
	}
	streams, err := s.Streams(t.Context(), "r")
	check(t, err)
	for _, st := range streams {
		if st.Stored != n[st.Origin.Pod] || st.Last != st.Stored-1 {
			t.Fatalf("of %s %d lines are there, but it says %d up to %d", st.Origin.Pod, n[st.Origin.Pod], st.Stored, st.Last)
		}
	}
	if n["ours"] != int64(ours) {
		t.Fatalf("%d lines of ours are there, want %d", n["ours"], ours)
	}
	r, err := s.Run(t.Context(), "theirs")
	check(t, err)
	changes, err := s.Changes(t.Context(), "theirs", 0, 1<<20)
	check(t, err)
	if int64(len(changes)) != r.Revision {
		t.Fatalf("%d changes of a run at revision %d", len(changes), r.Revision)
	}
	return int(n["theirs"])
}

// children are the programs that this binary can be, each with a path as argument.
func children() map[string]func(path string) error {
	return map[string]func(string) error{"writer": writer, "disk": exerciseFullDisk}
}

// writer continues where an earlier writer was killed. It prints the number of stored lines after each batch.
func writer(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	streams, err := s.Streams(ctx, "r")
	if err != nil {
		return err
	}
	n := 0
	for _, st := range streams {
		if st.Origin.Pod == "theirs" {
			n = int(st.Stored)
		}
	}
	for ; ; n += 60 {
		if err := errors.Join(advance(ctx, s), s.AppendLines(ctx, []store.Lines{{Origin: storetest.NewOrigin("r", "theirs"), Lines: numbered(n, 60)}})); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, n+60); err != nil {
			return err
		}
	}
}

// advance records one more change of a run.
func advance(ctx context.Context, s *sqlite.Store) error {
	old, err := s.Run(ctx, "theirs")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	r, c := storetest.NewRun("theirs", time.Unix(1, 0))
	r.Revision = old.Revision + 1
	r.Labels = map[string]string{"revision": fmt.Sprint(r.Revision)}
	c.Revision, c.Event, c.Phase = r.Revision, fmt.Sprint(r.Revision), event.PhaseRunning
	return s.PutRun(ctx, r, c)
}
