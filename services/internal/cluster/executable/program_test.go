//go:build unix

package executable_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/executable"
)

// job returns the Job of a run whose benchmark is a shell script.
func job(run, script string) *batchv1.Job {
	labels, second := map[string]string{cluster.LabelRun: run, cluster.LabelAttempt: "1", cluster.LabelRole: "benchmark"}, int64(1)
	j := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "bai-" + run + "-1", Namespace: "default", Labels: labels}}
	j.Spec.Template.Spec.TerminationGracePeriodSeconds = &second
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: cluster.ContainerBenchmark, Image: "debian:12", Command: []string{"sh", "-c", script}}}
	return j
}

func TestAProgramThatDoesNotKeepToTheProtocolIsKilledAndQuoted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want string }{
		"one that hangs":                          {`cat > /dev/null; sleep 600`, "states: no answer in 300ms"},
		"one that dies":                           {`read line; echo out of disk >&2; exit 3`, `states: it ended without an answer; standard error ends with "out of disk"`},
		"one that dies within a line":             {`read line; printf '{"id":'`, `it ended without an answer, after "{\"id\":"`},
		"one that writes no JSON":                 {`read line; echo Welcome`, `the line is not an answer: invalid character 'W' looking for beginning of value: "Welcome"`},
		"one that answers another call":           {`read line; echo '{"id":7}'`, `the answer has id 7, want 1: "{\"id\":7}"`},
		"one that writes what is not the schema":  {`read line; echo '{"id":1,"states":[{"run":"r","attempt":1,"phase":"odd","record":{"job":"j","uid":"u"}}]}'`, `states[0]: phase is "odd", want pending, running, succeeded or failed`},
		"one that floods without a line break":    {`yes | tr -d '\n'`, "an answer has more than 8 MiB"},
		"one that floods with line breaks":        {`exec yes`, `the line is not an answer: invalid character 'y' looking for beginning of value: "y"`},
		"one that is not there":                   {"", "start /nowhere/engine: fork/exec"},
		"one that says that it cannot":            {`n=0; while read line; do n=$((n+1)); echo "{\"id\":$n,\"error\":{\"message\":\"no route to host\"}}"; done`, "states: no route to host"},
		"one that ends before it reads a request": {`exit 4`, "it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := []string{"sh", "-c", tt.script}
			if tt.script == "" {
				command = []string{"/nowhere/engine"}
			}
			timeout := 20 * time.Second
			if strings.Contains(tt.want, "no answer") {
				timeout = 300 * time.Millisecond
			}
			c := open(t, executable.Settings{Command: command, Timeout: timeout})
			for range 2 { // the second time with another copy
				if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
			}
		})
	}
}

func TestAProgramThatWritesWithoutBeingAskedIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := open(t, executable.Settings{Command: []string{"sh", "-c", `while read line; do printf '{"id":1}\n{"id":2}\n'; done`}})
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), `it wrote without being asked: "{\"id\":2}"`) {
		t.Errorf("%v", err)
	}
}

func TestACallThatIsGivenUpEndsItsCopy(t *testing.T) {
	t.Parallel()
	c := open(t, executable.Settings{Command: []string{"sh", "-c", "cat > /dev/null"}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// A program may leave a process in a session of its own behind, which no signal to the program's group reaches, and which
// holds the program's output and standard error open.
func TestAProgramWhoseDescendantKeepsItsOutputOpenEndsWithItsCall(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"one that hangs": "exec cat", "one that dies": "exit 3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := `cd "$1"; mkfifo begun; setsid sh -c 'echo $$ > pid; : > begun; sleep 20; : > ended' & : < begun
				read line; echo '{"id":1}'; read line; ` + end
			c, err := executable.New(executable.Settings{Command: []string{"sh", "-c", script, "sh", dir}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { killSession(t, dir) })
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := c.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			c.Close()
			if _, err := os.Stat(filepath.Join(dir, "ended")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the call lasted as long as the descendant: %v", err)
			}
		})
	}
}

// killSession kills the processes of the session whose leader wrote its ID into a folder.
func killSession(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(-id, syscall.SIGKILL) // it may have ended
}

func TestLinesComeBackWithTheirTimes(t *testing.T) {
	t.Parallel()
	c := open(t, executable.Settings{Command: sample(t), Poll: 10 * time.Millisecond})
	j := job("r1", "for i in 1 2 3; do echo line $i; sleep 0.1; done; printf 'no break'; exit 3")
	if err := c.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	r := cluster.Ref{Run: "r1", Attempt: 1, Scope: "default", Job: j.Name}
	seen := await(t, c, r, func(cluster.Snapshot) bool { return true })
	if !cluster.RunsWithoutEntrypoint(seen.Pods[0]) {
		t.Error("nobody would read its log")
	}
	log, err := c.Log(t.Context(), cluster.Log{Scope: "default", Pod: seen.Pods[0].Name, Container: cluster.ContainerBenchmark})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // it only ends the reading
	var lines []string
	var times []time.Time
	for s := bufio.NewScanner(log); s.Scan(); {
		stamp, text, _ := strings.Cut(s.Text(), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			t.Fatal(err)
		}
		lines, times = append(lines, text), append(times, at)
	}
	if diff := cmp.Diff([]string{"line 1", "line 2", "line 3", "no break"}, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.IsSortedFunc(times, time.Time.Compare) {
		t.Errorf("the times are %v", times)
	}
	if _, err := c.Log(t.Context(), cluster.Log{Scope: "default", Pod: "none"}); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("the log of a pod that is not there: %v", err)
	}
	if err := c.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, c, r)
}
