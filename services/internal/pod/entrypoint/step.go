//go:build linux

package entrypoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Step is what a step has that a benchmark has not.
type Step struct {
	Name   string
	Limit  time.Duration // how long the command may take; then it has failed. Zero means no limit
	After  string        // the step starts once this step has succeeded, or the benchmark if it is pod.AfterBenchmark; empty means at once
	Output string        // the folder for its output; empty means none

	// Always is for a step that runs when its pod ends: it starts at the first SIGTERM or
	// SIGINT, and no later signal ends it before its limit. It runs once in a pod. Needs
	// are the steps that have to have succeeded by then; else it does not run, and has not
	// failed.
	Always bool
	Needs  []string
}

func (s Settings) outputFile() string {
	if s.Step.Name != "" {
		return pod.StepOutput(s.Step.Name)
	}
	return pod.Output
}

func (s Settings) exitFile() string { return exitFileOf(s.Step.Name) }

func (s Settings) lockFile() string { return lockFileOf(s.Step.Name) }

func exitFileOf(step string) string {
	if step == "" || step == pod.AfterBenchmark {
		return pod.ExitFile
	}
	return pod.StepExit(step)
}

func lockFileOf(step string) string {
	if step == "" || step == pod.AfterBenchmark {
		return pod.BenchmarkLock
	}
	return pod.StepLock(step)
}

// takeLock makes a file that is locked until this process ends, however it ends. A reader
// never sees the file without the lock.
func takeLock(path string) error {
	fd, err := unix.Open(path+".tmp", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil { // it stays open
		return err
	}
	return os.Rename(path+".tmp", path)
}

// lockPoll is how often the lock of a command that has not started is looked for.
const lockPoll = 50 * time.Millisecond

// waitForSuccess waits until a command of the pod has ended, and reports whether it has
// succeeded. It uses no CPU while the command runs. After a signal to end it returns the exit
// code for that signal.
func waitForSuccess(dir, name string, signals <-chan os.Signal) (stop int, succeeded bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		waitForLock(pod.PathIn(dir, lockFileOf(name)))
	}()
	for {
		select {
		case <-ended:
			return 0, hasSucceeded(pod.PathIn(dir, exitFileOf(name)))
		case s := <-signals:
			if sig, _ := s.(syscall.Signal); forward(sig).kill {
				return 128 + int(sig), false
			}
		}
	}
}

// waitForLock waits until a lock has been taken and released.
func waitForLock(path string) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			time.Sleep(lockPoll)
			continue
		}
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Flock(fd, unix.LOCK_SH)
		}
		_ = unix.Close(fd)
		return
	}
}

// awaitEnd waits for the signal that ends the pod of a step that runs always. If the step is
// not to run, awaitEnd writes the exit of one that did not, and returns the code to end with.
func (w *runner) awaitEnd(signals <-chan os.Signal) (code int, runs bool, err error) {
	s := w.settings
	waitForEndSignal(signals)
	end := time.Now().Add(s.Step.Limit + s.Grace)
	w.out.stop(end, end)
	if slices.ContainsFunc(s.Step.Needs, func(name string) bool { return !hasSucceeded(pod.PathIn(s.Dir, exitFileOf(name))) }) {
		return 0, false, w.writeJSON(s.exitFile(), pod.Exit{Skipped: true})
	}
	if !w.recordStart() {
		w.writeTerminationMessage("it was killed before it had ended, and does not run twice in a pod")
		return pod.StepKilled, false, w.writeJSON(s.exitFile(), pod.Exit{Code: pod.StepKilled})
	}
	return 0, true, nil
}

// recordStart records that the command of a step is started, and reports whether that is the first time. A start that cannot be recorded,
// as on a full disk, counts as the first.
func (w *runner) recordStart() bool {
	f, err := os.OpenFile(pod.PathIn(w.settings.Dir, pod.StepStarted(w.settings.Step.Name)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return !errors.Is(err, fs.ErrExist)
	}
	_ = f.Close()
	return true
}

// waitForEndSignal returns at the first signal that asks to end.
func waitForEndSignal(signals <-chan os.Signal) {
	for s := range signals {
		if sig, _ := s.(syscall.Signal); forward(sig).kill {
			return
		}
	}
}

// hasSucceeded reports whether the exit of a command is there and is that of a success.
func hasSucceeded(path string) bool {
	var end pod.Exit
	text, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(text, &end) == nil && end.Code == 0 && !end.Skipped
}

// judgeStep makes the exit of a step that broke a rule of the platform one of a failure.
func (w *runner) judgeStep(s Step, end *pod.Exit) {
	message := ""
	switch {
	case w.timedOut:
		end.Code, message = pod.StepTimedOut, fmt.Sprintf("timed out after %s (deadline)", s.Limit)
	case end.Code == 0 && s.Output != "":
		if err := checkOutput(s.Output); err != nil {
			end.Code, message = pod.StepOutputRefused, "its output is refused: "+err.Error()
		}
	}
	if message != "" {
		w.out.warn("bai: " + message + "\n")
		w.writeTerminationMessage(message)
	}
}

// checkOutput refuses an output folder with more than pod.MaxStepOutput bytes, and with
// anything but files and folders: other containers read it.
func checkOutput(dir string) error {
	var size int64
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder", path)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); size > pod.MaxStepOutput {
			return fmt.Errorf("%s holds more than %s", dir, pod.FormatSize(pod.MaxStepOutput))
		}
		return nil
	})
}
