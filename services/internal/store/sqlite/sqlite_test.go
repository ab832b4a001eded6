package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store {
		t.Helper()
		return storetest.Open(t)
	})
}

func TestAStoreIsFoundAgainUnderAnyPath(t *testing.T) {
	for _, name := range []string{"store.db", "with space", "100%25", "a?mode=ro", "b#c", "ünï ☃", "&_pragma=x;y", "'q\"", ":memory:", "a%zz", "line\nfeed", "b\xff\xfe"} {
		path := filepath.Join(t.TempDir(), name)
		for n := range 3 {
			s := open(t, path)
			if err := s.CreateDoc(t.Context(), store.Doc{Kind: store.KindPlan, Key: fmt.Sprint(n), Value: []byte(`{}`)}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			docs, err := s.Docs(t.Context(), store.KindPlan, "", 10)
			if err != nil || len(docs) != n+1 {
				t.Errorf("%s: opened %d times, has %d documents, %v", name, n+1, len(docs), err)
			}
			closeStore(t, s)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v: want a file for its owner alone", name, info, err)
		}
	}
}

func TestManyMayOpenANewStoreAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			err = s.CreateDoc(t.Context(), store.Doc{Kind: store.KindPlan, Key: fmt.Sprint(i), Value: []byte(`{}`)})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestWhatCannotBeOpenedIsRefusedWithThePathAndTheRemedy(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(path string) error
		want    []string
	}{
		"a folder":                      {func(path string) error { return os.Mkdir(path, 0o700) }, []string{"is not a file", "give the path of a file"}},
		"no folder around it":           {func(path string) error { return os.Remove(filepath.Dir(path)) }, []string{"no such file or directory"}},
		"a text file":                   {func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("text\n"), 1000), 0o600) }, []string{"is not a SQLite database", "give another path"}},
		"a database of another program": {func(path string) error { return execute(path, "CREATE TABLE songs(title TEXT)") }, []string{"of another program", "give another path"}},
		"a store of a newer version":    {writeNewerVersion, []string{"schema version 99", "newer version", "reads up to 6", "run the newer version"}},
		"a damaged file":                {writeDamaged, []string{"is damaged", ".recover"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "store.db")
			check(t, os.Mkdir(filepath.Dir(path), 0o700))
			check(t, tt.prepare(path))
			s, err := sqlite.Open(t.Context(), path)
			if err == nil {
				closeStore(t, s)
				t.Fatal("it was opened")
			}
			for _, want := range append(tt.want, path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q\ndoes not say %q", err, want)
				}
			}
		})
	}
}

func TestARefusedFileStaysAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	check(t, execute(path, "CREATE TABLE songs(title TEXT)"))
	before, err := os.ReadFile(path)
	check(t, err)
	if _, err := sqlite.Open(t.Context(), path); err == nil {
		t.Fatal("it was opened")
	}
	after, err := os.ReadFile(path)
	check(t, err)
	if !bytes.Equal(before, after) {
		t.Error("it was changed")
	}
}

func TestDamageIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	for i := range 20 {
		check(t, s.AppendLines(t.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: numbered(i*100, 100)}}))
	}
	check(t, s.Check(t.Context()))
	check(t, s.CheckIntegrity(t.Context()))
	closeStore(t, s)
	b, err := os.ReadFile(path)
	check(t, err)
	copy(b[len(b)-8192:], bytes.Repeat([]byte{0x5a}, 8192))
	check(t, os.WriteFile(path, b, 0o600))
	s = open(t, path)
	defer closeStore(t, s)
	check(t, s.Check(t.Context())) // it reads only the beginning
	if err := s.CheckIntegrity(t.Context()); err == nil {
		t.Error("the damage is not there")
	}
	_, _, err = s.Lines(t.Context(), store.LineQuery{Run: "r"}, "", 5000)
	if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), path) {
		t.Errorf("reading says %v", err)
	}
}

func TestAFileThatCannotBeReadIsOfNoUse(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	check(t, s.Check(t.Context()))
	closeStore(t, s)
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "check: store ") {
		t.Errorf("check of a store that is closed: %v", err)
	}
}

func TestALockIsWaitedForUntilTheContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	defer closeStore(t, s)
	db, err := sql.Open("sqlite", path)
	check(t, err)
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	check(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if err := s.CreateDoc(ctx, store.Doc{Kind: store.KindPlan, Key: "k"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > time.Minute {
		t.Errorf("after %s: %v, want %v at once", time.Since(begun), err, context.DeadlineExceeded)
	}
	if _, err := s.Doc(t.Context(), store.KindPlan, "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a reader beside the lock got %v, want %v", err, store.ErrNotFound)
	}
	done := make(chan error, 1)
	go func() {
		done <- s.CreateDoc(context.WithoutCancel(ctx), store.Doc{Kind: store.KindPlan, Key: "k"})
	}()
	_, err = db.ExecContext(t.Context(), "ROLLBACK")
	check(t, errors.Join(err, <-done, db.Close()))
}

func TestACallWhoseContextHasEndedReturnsWhatItHas(t *testing.T) {
	s := storetest.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, c := storetest.NewRun("r", time.Unix(1, 0))
	_, doc := s.Doc(ctx, store.KindPlan, "k")
	_, run := s.Run(ctx, "r")
	_, streams := s.Streams(ctx, "r")
	_, _, lines := s.Lines(ctx, store.LineQuery{Run: "r"}, "", 1)
	for verb, err := range map[string]error{
		"CreateDoc": s.CreateDoc(ctx, store.Doc{Kind: store.KindPlan, Key: "k"}), "PutRun": s.PutRun(ctx, r, c), "Doc": doc, "Run": run, "Streams": streams, "Lines": lines,
		"AppendLines": s.AppendLines(ctx, []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: numbered(0, 1)}}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", verb, err, context.Canceled)
		}
	}
	check(t, s.PutRun(t.Context(), r, c))
}

func TestWhoWaitsForARunIsWokenByWhatIsWrittenAboutIt(t *testing.T) {
	s := storetest.Open(t)
	r, c := storetest.NewRun("r", time.Unix(1, 0))
	o := storetest.NewOrigin("r", "p")
	for name, write := range map[string]func() error{
		"a change": func() error { return s.PutRun(t.Context(), r, c) },
		"lines":    func() error { return s.AppendLines(t.Context(), []store.Lines{{Origin: o, Lines: numbered(0, 1)}}) },
		"an end":   func() error { return s.AppendLines(t.Context(), []store.Lines{{Origin: o, End: &event.End{}}}) },
		"samples": func() error {
			return s.AppendSamples(t.Context(), []store.Samples{{Origin: o, Samples: []event.Sample{storetest.NewSample(0, "v", 1)}}})
		},
		"two waits": func() error {
			s.Changed("r")
			return s.AppendSamples(t.Context(), []store.Samples{{Origin: o, End: &event.End{}}})
		},
	} {
		run, every, other := s.Changed("r"), s.Changed(""), s.Changed("other")
		check(t, write())
		for what, c := range map[string]<-chan struct{}{"the run": run, "any run": every} {
			select {
			case <-c:
			case <-time.After(time.Minute):
				t.Errorf("%s: who waits for %s is not woken", name, what)
			}
		}
		select {
		case <-other:
			t.Errorf("%s: who waits for another run is woken", name)
		default:
		}
	}
	again := s.Changed("r")
	if err := s.PutRun(t.Context(), r, c); !errors.Is(err, store.ErrExists) {
		t.Errorf("again: %v, want %v", err, store.ErrExists)
	}
	select {
	case <-again:
		t.Error("who waits is woken by what changed nothing")
	default:
	}
}

// TestTheLogOfWritesStaysSmallHoweverMuchIsRead has readers at any time.
func TestTheLogOfWritesStaysSmallHoweverMuchIsRead(t *testing.T) {
	const limit = 1 << 20
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	var readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := s.Lines(ctx, store.LineQuery{Run: "r"}, "", 2); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	largest := int64(0)
	for n := range 60 {
		s.SetWALLimit(limit)
		line := storetest.NewLine(int64(n), strings.Repeat("x", 100<<10))
		check(t, s.AppendLines(t.Context(), []store.Lines{{Origin: storetest.NewOrigin("r", "p"), Lines: []event.Line{line}}}))
		info, err := os.Stat(path + "-wal")
		check(t, err)
		largest = max(largest, info.Size())
	}
	cancel()
	readers.Wait()
	closeStore(t, s)
	if largest > 4*limit {
		t.Errorf("of 6 MiB written %d bytes lay in the log, want about %d at most", largest, limit)
	}
}

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	check(t, err)
	return s
}

func closeStore(t *testing.T, s *sqlite.Store) {
	t.Helper()
	check(t, s.Close())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// execute has another program write to the file.
func execute(path, statement string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(context.Background(), statement)
	return errors.Join(err, db.Close())
}

// writeNewerVersion makes a store that a newer version has written.
func writeNewerVersion(path string) error {
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	return errors.Join(s.Close(), execute(path, "PRAGMA user_version = 99"))
}

// writeDamaged makes a store and writes over its first pages.
func writeDamaged(path string) error {
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	copy(b[100:], bytes.Repeat([]byte{0xff}, 8000))
	return os.WriteFile(path, b, 0o600)
}

func numbered(from, n int) []event.Line {
	lines := make([]event.Line, n)
	for i := range lines {
		lines[i] = storetest.NewLine(int64(from+i), fmt.Sprint("line ", from+i))
	}
	return lines
}
