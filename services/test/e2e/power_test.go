package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/powertest"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// TestRunsGoOnWhereTheEndsOfTheBrokersFilesAreTorn: new runs finish, and finished runs
// keep their data.
func TestRunsGoOnWhereTheEndsOfTheBrokersFilesAreTorn(t *testing.T) {
	t.Parallel()
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--slots", "4")
	var runs []string
	for range 12 {
		runs = append(runs, p.submit(script(`echo hi; echo '{"x": 1}' >>"$BENCHMARK_AI_FILE"`)))
	}
	before := make(map[string]string)
	for _, run := range runs {
		p.awaitComplete(run)
		before[run] = p.snapshot(run)
	}
	p.stop()
	tearSegments(t, p.dir)
	p.begin()
	for range 12 {
		if r := p.awaitComplete(p.submit(script("echo after"))); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("a new run ended as %v", r)
		}
	}
	for _, run := range runs {
		if got := p.snapshot(run); got != before[run] {
			t.Errorf("run %s was %s\nand is %s", run, before[run], got)
		}
	}
}

// tearSegments takes the last bytes of each segment of the broker.
func tearSegments(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "broker", "data", "partitions", "*", "*.dat"))
	if err != nil {
		t.Fatal(err)
	}
	torn := 0
	for _, path := range segments {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			if err := os.Truncate(path, info.Size()-7); err != nil {
				t.Fatal(err)
			}
			torn++
		}
	}
	if torn < 8 {
		t.Fatalf("only %d segments were torn", torn)
	}
}

// TestAStoreThatIsSecondsOlderThanTheBrokerHearsAgainWhatItLacks: the events that the
// store has lost do not change the outcome of a finished run.
func TestAStoreThatIsSecondsOlderThanTheBrokerHearsAgainWhatItLacks(t *testing.T) {
	t.Parallel()
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--slots", "4")
	var runs []string
	for range 4 {
		runs = append(runs, p.submit(counter(150)))
	}
	for _, run := range runs {
		p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	}
	p.kill()
	old := t.TempDir()
	copyStore(t, p.dir, old)
	p.begin()
	for _, run := range runs {
		p.awaitComplete(run)
	}
	p.kill()
	copyStore(t, old, p.dir)
	p.begin()
	if !strings.Contains(p.log.String(), "the store is older than the broker's files") {
		t.Error("nothing says that the store is older")
	}
	for _, run := range runs {
		if r := p.awaitComplete(run); r.GetReason() != "NonZeroExit" || r.GetExitCode() != 7 {
			t.Errorf("ended as %v, want exit 7 of the benchmark's own", r)
		}
		wantCounted(t, p, run, 150)
	}
	if r := p.awaitComplete(p.submit(script("echo after"))); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("a new run ended as %v", r)
	}
}

// copyStore makes the files of the store of one data folder those of another.
func copyStore(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{"store.db", "store.db-wal", "store.db-shm"} {
		if err := os.Remove(filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestAPlatformThatWasKilledIsNotScanned: after a mere end of the process nothing
// is read again.
func TestAPlatformThatWasKilledIsNotScanned(t *testing.T) {
	t.Parallel()
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"))
	p.awaitComplete(p.submit(script("echo hi")))
	for range 2 {
		p.kill()
		p.begin()
	}
	p.stop()
	p.begin()
	if strings.Contains(p.log.String(), "heard again") {
		t.Errorf("the data folder was doubted: %s", p.log)
	}
}

// cuts are states of a file after a power cut.
func cuts() map[string]func(path string) error {
	return map[string]func(path string) error{
		"its last bytes are missing":     powertest.Truncate,
		"it is empty":                    powertest.Empty,
		"it is absent":                   os.Remove,
		"it has a page of zeros":         powertest.ZeroMiddle,
		"it begins with a page of zeros": powertest.ZeroFirst,
	}
}

// TestAPlatformStartsAfterThePowerWasCut simulates the cut on each file that the platform
// writes, found by a walk over the data folder, on all files of the broker, and on all at
// once. If the start is refused, the test carries out the remedy in the message. Finished
// runs keep their data, and new ones work.
func TestAPlatformStartsAfterThePowerWasCut(t *testing.T) {
	t.Parallel()
	first := startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--slots", "4")
	had := make(map[string]string)
	for range 4 {
		run := first.submit(script(`echo hi; echo there; echo '{"x": 1}' >>"$BENCHMARK_AI_FILE"`))
		first.awaitComplete(run)
		had[run] = first.retainedState(run)
	}
	first.stop()
	for name, cut := range cuts() {
		for _, file := range append(writtenFiles(t, first.dir), "broker", "") {
			t.Run(name+"/"+strings.ReplaceAll(file, "/", " "), func(t *testing.T) {
				t.Parallel()
				p := &platform{t: t, dir: filepath.Join(t.TempDir(), "data"), args: []string{"--slots", "4"}}
				cutCopy(t, first.dir, p.dir, file, cut)
				p.beginAfterRemedy()
				if file != "" { // of all at once nothing may be left
					p.wantRetained(had)
				}
				if r := p.awaitComplete(p.submit(script("echo after"))); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
					t.Errorf("a new run ended as %v", r)
				}
			})
		}
	}
}

// cutCopy makes one data folder of another, and plays a cut on one of its files or
// folders.
func cutCopy(t *testing.T, from, to, file string, cut func(path string) error) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil { // with times
		t.Fatalf("%v: %s", err, out)
	}
	if file != "broker/port" { // which others of these tests have
		if err := os.Remove(filepath.Join(to, "broker", "port")); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range writtenFiles(t, to, file) {
		if err := cut(filepath.Join(to, f)); err != nil {
			t.Fatal(err)
		}
	}
}

// wantRetained compares runs with their earlier state.
func (p *platform) wantRetained(before map[string]string) {
	p.t.Helper()
	for run, want := range before {
		if got := p.retainedState(run); got != want {
			p.t.Errorf("run %s had %s\nand has %s", run, want, got)
		}
	}
}

// retainedState returns the lasting state of a run; empty for an unknown one.
func (p *platform) retainedState(run string) string {
	p.t.Helper()
	r, err := p.api.GetRun(p.t.Context(), &baiv1.GetRunRequest{Run: run}, grpc.WaitForReady(true))
	if err != nil {
		return ""
	}
	return fmt.Sprint(r.GetRun().GetPhase(), r.GetRun().GetOutcome(), r.GetRun().GetReason(), p.lines(run), p.samples(run))
}

// beginAfterRemedy starts a platform and, if it refuses, carries out the remedy in its
// message first. The platform ends with the test.
func (p *platform) beginAfterRemedy() {
	p.t.Helper()
	p.log = &lockedBuffer{}
	if err := p.tryBegin(); err != nil {
		remedy := regexp.MustCompile(`start again: (mv .*)`).FindStringSubmatch(p.log.String())
		if remedy == nil {
			p.t.Fatalf("start: %v; it says nothing of what to do: %s", err, p.log)
		}
		if out, err := exec.CommandContext(p.t.Context(), "sh", "-c", remedy[1]).CombinedOutput(); err != nil {
			p.t.Fatalf("%s: %v: %s", remedy[1], err, out)
		}
		p.cmd = nil
		p.runToEnd()
		return
	}
	p.t.Cleanup(func() {
		p.stop()
		p.wantNothingLeft()
	})
}

// writtenFiles returns the files below a folder that the platform writes, relative
// to it, but for those of the broker one by one, which have a test of their own;
// or all those below one of its files or folders.
func writtenFiles(t *testing.T, dir string, below ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if len(below) > 0 && (below[0] == "" || name == below[0] || strings.HasPrefix(name, below[0]+"/")) || len(below) == 0 && !strings.HasPrefix(name, "broker/data/") {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestSubmitAnswersOnceTheStoreIsOnTheDisk traces the system calls of a platform:
// between a request and its answer the store's log is flushed.
func TestSubmitAnswersOnceTheStoreIsOnTheDisk(t *testing.T) {
	t.Parallel()
	strace := tooltest.Program(t, "strace", "strace")
	trace := filepath.Join(t.TempDir(), "trace")
	program := filepath.Join(t.TempDir(), "bai")
	text := fmt.Sprintf("#!/bin/sh\nexec %s -D -ff -y -e trace=fsync,fdatasync -o %s %s \"$@\"\n", strace, trace, filepath.Join(bin, "bai"))
	tooltest.WriteProgram(t, program, text)
	p := &platform{t: t, program: program, dir: filepath.Join(t.TempDir(), "data")}
	p.runToEnd()
	flushes := func() (n int) { // each thread's calls are in a file of their own, whole
		files, err := filepath.Glob(trace + ".*")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			n += strings.Count(read(t, file), "store.db-wal>) = 0")
		}
		return n
	}
	for range 3 {
		before := flushes()
		p.submit(script("echo hi"))
		if after := flushes(); after <= before {
			t.Errorf("a submit was answered after %d flushes of the store, %d before it", after, before)
		}
	}
}
