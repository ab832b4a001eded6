//go:build linux

package entrypoint

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/artifacts"
	"github.com/benchmark-ai/bai/services/internal/pod/parse"
	"github.com/benchmark-ai/bai/services/internal/pod/proc"
)

// RunFunc runs a program beside the command: see proc.Table.Run.
type RunFunc func(ctx context.Context, out io.Writer, path string, args ...string) error

// Settings name the command and the files to keep.
type Settings struct {
	Dir            string        // of the pod's volume
	Args           []string      // the command; at least one
	Script         bool          // Args[0] is the text of a script, not its name
	Shell          []string      // interpreter of a script; none means that of its first line, or else /bin/sh
	ReadyTimeout   time.Duration // how long the command waits for the collector to be there; zero means not at all
	Grace          time.Duration // between SIGTERM and SIGKILL; zero means 10 s
	DiskTimeout    time.Duration // how long a full disk is waited for after a signal to end, within Grace; zero means 10 s
	Linger         time.Duration // how long processes that outlive the command may still write; zero means 500 ms
	MaxBacklog     int64         // bytes of the disk that output may take which the collector is not done with; zero means no limit
	BacklogTimeout time.Duration // how long the command then waits for the collector; zero means 10 s
	// how long the end waits for a collector that was killed; zero means 6 min, more than kubelet's longest pause before a restart
	RestartTimeout time.Duration
	MinFree        int64          // bytes of the volume's disk that remain free of output; zero means none
	Artifacts      []pod.Artifact // files to be kept once the command has ended
	Parsers        []pod.Parser   // of the command's output and files

	// OnStart, if not nil, is called with the command's process once that has begun, and with a function that runs other programs beside
	// it: package os/exec cannot be used in this process, see proc.Table. Of the functions that it returns, stop is called when
	// the command has ended, and end with its exit, before that is written down. The context of end is done 2 s after a signal to end.
	OnStart func(pid int, run RunFunc) (stop func(), end func(context.Context, pod.Exit)) `json:"-"`

	ReadyFile string // the command is ready when this file exists; empty means that no file tells
	ReadyLog  string // the command is ready when a line of its output matches this regular expression; empty means that no line tells

	// OnReady, if not nil, is called once, when the command is ready.
	OnReady func() error `json:"-"`

	Step Step // if it has a name, the command is a step
	Lock bool // the lock of the benchmark is taken, for steps that come after it

	MessagePath string // file for the last words about a command that could not be started, or has failed and left none, where there is one
}

// Run runs the command until it ends, and returns the exit code that a shell would: that
// of the command, 128 + n if signal n ended it, 127 if there is no such command and 126
// if it cannot be executed. No output before the command's end is lost; the rest of its
// process group is killed.
//
// SIGTERM, SIGINT, SIGQUIT and SIGHUP in signals are handed on to the command's
// process group, SIGUSR1 and SIGUSR2 to the command. After the grace that
// follows the first SIGTERM or SIGINT the group is killed.
//
// The command's PATH is that of the entrypoint, with the folder of the pod's own programs
// at its end; the entrypoint's own PATH becomes the same.
//
// Artifacts are copied to the pod's volume (pod.ArtifactsDir) once the command has ended, with
// any exit code. A notice names those that were there before the command and have not changed.
//
// Parsers read the output and, once the command has ended, files, unless these were there before the command and have not changed; their
// metrics are appended to the metrics file. A command that ends well without a result that is required has the exit code
// pod.ExitNoResults. Parsers of kind command run one after the other once the command has ended; a signal to end leaves them the rest of
// the grace.
//
// While the disk is full, Run and the command's writes wait; they also wait for a while
// if the collector is behind. After a signal to end, which may also come before the command
// has started or once it has ended, Run waits for the disk no longer than DiskTimeout, and
// counts unrecorded output as dropped. Run returns an error if it could not write the
// command's exit.
func Run(s Settings, signals <-chan os.Signal) (int, error) {
	if err := os.MkdirAll(filepath.Dir(pod.PathIn(s.Dir, pod.ExitFile)), 0o777); err != nil {
		return 0, fmt.Errorf("prepare the directory of the output: %w", err)
	}
	if err := os.Setenv("PATH", searchPath(os.Getenv("PATH"), filepath.Dir(pod.PathIn(s.Dir, pod.Emit)))); err != nil {
		return 0, fmt.Errorf("extend PATH: %w", err)
	}
	if s.Lock || s.Step.Name != "" {
		if err := takeLock(pod.PathIn(s.Dir, s.lockFile())); err != nil {
			return 0, fmt.Errorf("take the lock of the command: %w", err)
		}
	}
	waitForFile(pod.PathIn(s.Dir, pod.FIFO), s.ReadyTimeout)
	w := &runner{settings: defaults(s), out: &output{
		path: pod.PathIn(s.Dir, s.outputFile()), limit: s.MaxBacklog, minFree: s.MinFree,
		backlogTimeout: cmp.Or(s.BacklogTimeout, 10*time.Second), ending: make(chan struct{}),
	}}
	if !s.Step.Always {
		var stop func()
		signals, stop = w.takeSignals(signals)
		defer stop()
	}
	if s.Step.After != "" {
		if stop, runs := waitForSuccess(s.Dir, s.Step.After, signals); !runs {
			return stop, w.writeJSON(s.exitFile(), pod.Exit{Code: stop, Skipped: true})
		}
	}
	if s.Step.Always {
		if code, runs, err := w.awaitEnd(signals); !runs || err != nil {
			return code, err
		}
		signals = nil
	}
	end, err := w.run(signals)
	if err != nil {
		return 0, err
	}
	end.Dropped, end.DroppedLines = w.out.dropped, w.out.droppedLines
	return end.Code, w.writeExit(end)
}

func defaults(s Settings) Settings {
	if s.Grace == 0 {
		s.Grace = 10 * time.Second
	}
	if s.DiskTimeout == 0 {
		s.DiskTimeout = 10 * time.Second
	}
	if s.Linger == 0 {
		s.Linger = 500 * time.Millisecond
	}
	if s.RestartTimeout == 0 {
		s.RestartTimeout = 6 * time.Minute
	}
	return s
}

type runner struct {
	settings Settings
	out      *output
	table    *proc.Table
	timedOut bool // a step that has not ended in its time

	before []artifacts.States // of each artifact, before the command started
}

// hurry is how long the end of OnStart may take in a pod that has to end.
const hurry = 2 * time.Second

// run runs the command, records its output, and returns its exit.
func (w *runner) run(signals <-chan os.Signal) (pod.Exit, error) {
	started := time.Now()
	if err := w.out.open(); err != nil {
		return pod.Exit{}, err
	}
	defer w.out.close()
	streams, err := newStreams(w.out)
	if err != nil {
		return pod.Exit{}, err
	}
	done := make(chan struct{})
	defer close(done)
	if streams.ready, err = newReadiness(w.settings, w.out.warn, done); err != nil {
		return pod.Exit{}, err
	}
	streams.parsers = parse.Start(w.settings.Parsers, parse.Spool{Dir: filepath.Dir(w.out.path), Missing: w.out.fullReason})
	for _, a := range w.settings.Artifacts {
		w.before = append(w.before, artifacts.StatesOf(a.Path))
	}
	w.table = proc.NewTable()
	pid, code, err := w.start(streams)
	streams.startReading()
	if err != nil {
		message := fmt.Sprintf("cannot start %s: %v", commandName(w.settings), err)
		w.out.warn("bai: " + message + "\n")
		w.writeTerminationMessage(message)
		streams.finish(0)
		return pod.Exit{Code: code, Problem: err.Error(), Started: started, Ended: time.Now()}, nil
	}
	stop, onEnd := func() {}, func(context.Context, pod.Exit) {}
	if w.settings.OnStart != nil {
		stop, onEnd = w.settings.OnStart(pid, w.table.Run)
	}
	end := toPodExit(started, w.waitForExit(pid, signals))
	streams.finish(w.settings.Linger)
	_ = syscall.Kill(-pid, syscall.SIGKILL) // the rest of its group
	stop()
	w.takeResults(streams.parsers.End(w.commandRunner(end.Code)), &end)
	if info, err := os.Stat(w.settings.MessagePath); end.Code != 0 && err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		w.writeTerminationMessage(w.out.lastLines())
	}
	ctx, cancel := w.out.contextAfterStop(func() time.Duration { return hurry })
	onEnd(ctx, end)
	cancel()
	if s := w.settings.Step; s.Name != "" {
		w.judgeStep(s, &end)
	}
	return end, nil
}

// writeTerminationMessage writes the last lines of output to the container's termination
// file. A missing file is no error: the output has the same lines.
func (w *runner) writeTerminationMessage(message string) {
	f, err := os.OpenFile(w.settings.MessagePath, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	_, _ = f.WriteString(message)
	_ = f.Close()
}

func toPodExit(started time.Time, e proc.Exit) pod.Exit {
	end := pod.Exit{
		Code: e.Code, Started: started, Ended: e.At,
		User: e.User.Seconds(), System: e.System.Seconds(), MaxRSS: e.MaxRSS,
	}
	if e.Signal != 0 {
		end.Signal = proc.SignalName(e.Signal)
	}
	return end
}

// waitForExit hands signals on until the command ends.
func (w *runner) waitForExit(pid int, signals <-chan os.Signal) proc.Exit {
	var kill, limit <-chan time.Time
	if d := w.settings.Step.Limit; d > 0 {
		limit = time.After(d)
	}
	for {
		select {
		case e := <-w.table.Ends():
			return e
		case <-limit:
			if kill != nil {
				continue // a signal has asked it to end, and leaves it the rest of its grace
			}
			w.timedOut, kill = true, time.After(w.settings.Grace)
			_ = syscall.Kill(-pid, syscall.SIGTERM)
		case <-kill:
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		case s := <-signals:
			sig, _ := s.(syscall.Signal)
			f := forward(sig)
			if f.kill && kill == nil {
				kill = time.After(w.settings.Grace)
			}
			if f.group {
				pid := -pid
				_ = syscall.Kill(pid, f.signal)
				continue
			}
			_ = syscall.Kill(pid, f.signal)
		}
	}
}

// writeExit writes the command's exit, after the artifacts are copied and while the collector runs: a reader of the exit finds the
// artifacts, and a collector that has read the exit ends as soon as it has shipped all.
func (w *runner) writeExit(end pod.Exit) error {
	if err := w.copyArtifacts(); err != nil { // the output is closed
		notice := fmt.Sprintf("artifacts are not kept: %v", err)
		end.Notices = append(end.Notices, notice)
		printWarning(notice)
	}
	if !w.out.stopping() { // in a pod that has to end, no collector is restarted
		waitForReader(pod.PathIn(w.settings.Dir, pod.FIFO), w.settings.RestartTimeout, w.out.ending)
	}
	end.Stopped = w.out.stopping()
	if err := w.writeJSON(w.settings.exitFile(), end); err != nil {
		return fmt.Errorf("write how the command ended: %w", err)
	}
	return nil
}
