//go:build linux

package entrypoint_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/entrypoint"
)

// keptFiles returns the entrypoint's list of artifacts, and the text of each file.
func (r *entrypointProcess) keptFiles(t *testing.T) (pod.ArtifactList, map[string]string) {
	t.Helper()
	var k pod.ArtifactList
	if err := json.Unmarshal(r.file(t, pod.ArtifactsFile), &k); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range k.Files {
		texts[name] = string(r.file(t, filepath.Join(pod.ArtifactsDir, name)))
	}
	return k, texts
}

func TestWhatACommandLeavesIsKept(t *testing.T) {
	t.Parallel()
	const tree = "mkdir -p out/deep && echo 1 > out/a.txt && echo 22 > out/deep/b.txt && echo 333 > out/c.log && " +
		"ln -s a.txt out/inside && ln -s /etc/passwd out/outside && ln -s .. out/up && mkfifo out/pipe && echo secret > secret && ln -s out latest"
	for name, tt := range map[string]struct {
		artifact pod.Artifact
		files    map[string]string
		notice   string // its end
	}{
		"a file":   {pod.Artifact{Path: "out/a.txt"}, map[string]string{"out/a.txt": "1\n"}, ""},
		"a folder": {pod.Artifact{Path: "out"}, map[string]string{"out/a.txt": "1\n", "out/inside": "1\n", "out/deep/b.txt": "22\n", "out/c.log": "333\n"}, `artifact "out" holds what cannot be kept: "outside" (a link that leads out, or nowhere), "pipe" (a FIFO), "up" (a link that leads out, or nowhere)`},
		"a pattern": {
			pod.Artifact{Path: "out/*.*"}, map[string]string{"out/a.txt": "1\n", "out/c.log": "333\n"}, "",
		},
		"a link to a folder beside it":            {pod.Artifact{Path: "latest"}, map[string]string{"latest/a.txt": "1\n", "latest/inside": "1\n", "latest/deep/b.txt": "22\n", "latest/c.log": "333\n"}, `artifact "latest" holds what cannot be kept: "latest/outside" (a link that leads out, or nowhere), "latest/pipe" (a FIFO), "latest/up" (a link to a folder)`},
		"a link that leads out is not followed":   {pod.Artifact{Path: "out/outside"}, map[string]string{}, `artifact "out/outside" is not kept: statat outside: path escapes from parent`},
		"what is not there is said":               {pod.Artifact{Path: "none*"}, map[string]string{}, `artifact "none*" is not kept: the benchmark left no such file`},
		"unless nobody wants to know":             {pod.Artifact{Path: "none*", Quiet: true}, map[string]string{}, ""},
		"what is no pattern is said":              {pod.Artifact{Path: "[x"}, map[string]string{}, `artifact "[x" is not kept: it is no pattern for files`},
		"what is too large is not kept, and said": {pod.Artifact{Path: "out", MaxSize: 9}, map[string]string{}, `artifact "out" holds what cannot be kept: "outside" (a link that leads out, or nowhere), "pipe" (a FIFO), "up" (a link that leads out, or nowhere)` + `; artifact "out" is not kept: it has 11 bytes, more than its max_size, 9`},
		"what is just small enough is":            {pod.Artifact{Path: "out/deep", MaxSize: 3}, map[string]string{"out/deep/b.txt": "22\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			r := command(t, entrypoint.Settings{Args: []string{"sh", "-c", tree}, Artifacts: []pod.Artifact{tt.artifact}})
			r.Dir = work
			r.waitForExit(t)
			k, got := r.keptFiles(t)
			if diff := cmp.Diff(tt.files, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if notice := strings.Join(k.Notices, "; "); notice != tt.notice {
				t.Errorf("it says %q, want %q", notice, tt.notice)
			}
		})
	}
}

func TestWhatIsNoFileIsNamedInOneNotice(t *testing.T) {
	t.Parallel()
	script := `mkdir out && cd out && echo 1 > good && echo 2 > "$(printf 'bad\377')" && mkfifo ff && ln -s /etc/passwd pw && ln -s none gone && ` +
		`for i in 1 2 3 4 5 6 7 8 9; do mkfifo z$i; done; mkdir "$(printf 'dir\377')" && echo 3 > "$(printf 'dir\377')/x"`
	r := command(t, entrypoint.Settings{Args: []string{"sh", "-c", script}, Artifacts: []pod.Artifact{{Path: "out"}}})
	r.Dir = t.TempDir()
	r.waitForExit(t)
	k, got := r.keptFiles(t)
	if diff := cmp.Diff(map[string]string{"out/good": "1\n"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{`artifact "out" holds what cannot be kept: "bad\xff" (the name is not UTF-8), "dir\xff" (the name is not UTF-8), "ff" (a FIFO), "gone" (a link that leads out, or nowhere), ` +
		`"pw" (a link that leads out, or nowhere), "z1" (a FIFO), "z2" (a FIFO), "z3" (a FIFO), "z4" (a FIFO), "z5" (a FIFO), and 4 more`}
	if diff := cmp.Diff(want, k.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

func TestFilesThatWereThereBeforeAreKeptWithANotice(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(work, name), "old", 0o600)
	}
	r := command(t, entrypoint.Settings{Args: sh("echo new > b; echo new > c"), Artifacts: []pod.Artifact{{Path: "."}, {Path: "c"}}})
	r.Dir = work
	r.waitForExit(t)
	k, got := r.keptFiles(t)
	if diff := cmp.Diff(map[string]string{"a": "old", "b": "new\n", "c": "new\n"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`artifact "." has files that were there before the benchmark and have not changed: "a"`}, k.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

// TestOfTwoFilesWithOneNameTheFirstIsKept has a relative and an absolute path, which are stored alike.
func TestOfTwoFilesWithOneNameTheFirstIsKept(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	relative := strings.TrimPrefix(work, "/") + "/f"
	r := command(t, entrypoint.Settings{
		Args:      sh("mkdir -p " + filepath.Dir(relative) + "; echo relative > " + relative + "; echo absolute > " + work + "/f"),
		Artifacts: []pod.Artifact{{Path: relative}, {Path: work + "/f"}, {Path: work}},
	})
	r.Dir = work
	r.waitForExit(t)
	k, got := r.keptFiles(t)
	if diff := cmp.Diff(map[string]string{relative: "relative\n", relative[:len(relative)-1] + relative: "relative\n"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	notice := `artifact "` + work + `/f" is not kept: "` + relative + `" is stored under the same name`
	if diff := cmp.Diff([]string{notice}, k.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

func TestAnAbsolutePathIsKeptUnderItsName(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	r := command(t, entrypoint.Settings{Args: []string{"sh", "-c", "echo x > " + work + "/f"}, Artifacts: []pod.Artifact{{Path: work + "/f"}, {Path: work}}})
	r.waitForExit(t)
	_, got := r.keptFiles(t)
	if diff := cmp.Diff(map[string]string{strings.TrimPrefix(work, "/") + "/f": "x\n"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFilesAreKeptHoweverTheCommandEnds: a reader of the end finds the files.
func TestFilesAreKeptHoweverTheCommandEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		signal syscall.Signal
		code   int
	}{
		"by itself, badly":       {"echo ready; exit 3", 0, 3},
		"by a signal":            {"echo ready; kill -KILL $$", 0, 137},
		"as it is told to":       {"echo ready; sleep 100", syscall.SIGTERM, 143},
		"killed after the grace": {"trap '' TERM; echo ready; while true; do sleep 0.01; done", syscall.SIGTERM, 137},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			r := start(t, entrypoint.Settings{
				Args: []string{"sh", "-c", "cd " + work + "; echo x > f; " + tt.script}, Artifacts: []pod.Artifact{{Path: work + "/f"}}, Grace: 50 * time.Millisecond,
			})
			r.signal(t, tt.signal)
			if got := r.waitForExit(t).Code; got != tt.code {
				t.Errorf("it ended with %d, want %d", got, tt.code)
			}
			if _, got := r.keptFiles(t); len(got) != 1 {
				t.Errorf("kept %v", got)
			}
		})
	}
}

func TestArtifactsThatCannotBeListedAreANoticeOfTheExit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := command(t, entrypoint.Settings{
		Dir: dir, Args: sh("mkdir " + pod.PathIn(dir, pod.ArtifactsFile) + ".tmp"), Artifacts: []pod.Artifact{{Path: dir + "/none", Quiet: true}},
	})
	e := r.waitForExit(t)
	if len(e.Notices) != 1 || !strings.HasPrefix(e.Notices[0], "artifacts are not kept: ") || !strings.HasSuffix(e.Notices[0], ": is a directory") {
		t.Errorf("notices %q", e.Notices)
	}
	if text := r.stderr.String(); !strings.Contains(text, "bai: artifacts are not kept: ") || strings.Contains(text, "cannot record") {
		t.Errorf("it says %q", text)
	}
}

// signal sends a signal, unless it is none.
func (r *entrypointProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if s == 0 {
		return
	}
	if err := r.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
