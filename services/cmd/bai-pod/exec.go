//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shim"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/entrypoint"
)

// spool is the number of bytes of output, beyond the limit of the log, that may wait
// for the collector.
const spool = 64 << 20

// runExec runs the benchmark's command.
func runExec(args []string, signals <-chan os.Signal) (int, error) {
	s, err := execSettings(args, os.Getenv)
	if err != nil {
		return 0, err
	}
	s.OnReady = listenWhenReady
	s.OnStart = newHostRecorder(s.Dir, os.Getenv(pod.EnvSystem)).start
	return entrypoint.Run(s, signals)
}

// runStep runs the command of a step.
func runStep(args []string, signals <-chan os.Signal) (int, error) {
	i := slices.Index(args, "--")
	if i != 2 && i != 3 || args[0] == "" {
		return 0, fmt.Errorf("%w: step: want NAME LIMIT [AFTER] -- CMD…", errUsage)
	}
	limit, err := time.ParseDuration(args[1])
	if err != nil || limit <= 0 {
		return 0, fmt.Errorf("%w: step: %q is not a time such as 10s", errUsage, args[1])
	}
	s, err := execSettings(args[i:], os.Getenv)
	if err != nil {
		return 0, err
	}
	s.Step = entrypoint.Step{Name: args[0], Limit: limit, Output: os.Getenv(pod.EnvStepOutput)}
	if i == 3 {
		s.Step.After = args[2]
	}
	return entrypoint.Run(s, signals)
}

// runAlways runs the command of a step that runs at the end of its pod.
func runAlways(args []string, signals <-chan os.Signal) (int, error) {
	i := slices.Index(args, "--")
	if i < 2 || args[0] == "" {
		return 0, fmt.Errorf("%w: always: want NAME LIMIT [NEEDED…] -- CMD…", errUsage)
	}
	limit, err := time.ParseDuration(args[1])
	if err != nil || limit <= 0 {
		return 0, fmt.Errorf("%w: always: %q is not a time such as 10s", errUsage, args[1])
	}
	s, err := execSettings(args[i:], os.Getenv)
	if err != nil {
		return 0, err
	}
	s.Step = entrypoint.Step{Name: args[0], Limit: limit, Output: os.Getenv(pod.EnvStepOutput), Always: true, Needs: args[2:i]}
	return entrypoint.Run(s, signals)
}

// listenWhenReady accepts connections of pods that wait for this one, until the process ends.
func listenWhenReady() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", ":"+strconv.Itoa(pod.ReadyPort))
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return nil
}

// execSettings parses the command line and the environment of exec.
func execSettings(args []string, env func(string) string) (entrypoint.Settings, error) {
	s := entrypoint.Settings{Dir: env(pod.EnvDir), MessagePath: cmp.Or(env(pod.EnvMessage), pod.TerminationMessage)}
	for len(args) > 0 && args[0] != "--" {
		if args[0] == "--lock" {
			s.Lock, args = true, args[1:]
			continue
		}
		shell, isScript := strings.CutPrefix(args[0], "--script")
		if !isScript || shell != "" && shell[0] != '=' {
			return s, fmt.Errorf("%w: exec: %q is no option; the command follows --", errUsage, args[0])
		}
		s.Script, s.Shell, args = true, strings.Fields(strings.TrimPrefix(shell, "=")), args[1:]
	}
	if len(args) < 2 || args[1] == "" {
		return s, fmt.Errorf("%w: exec: no command after --", errUsage)
	}
	s.Args, s.ReadyFile, s.ReadyLog = args[1:], env(pod.EnvReadyFile), env(pod.EnvReadyLog)
	err := readLimits(&s, env)
	return s, err
}

// readLimits reads the settings that come from the environment.
func readLimits(s *entrypoint.Settings, env func(string) string) (err error) {
	if v := env(pod.EnvAwait); v != "" {
		if s.ReadyTimeout, err = time.ParseDuration(v); err != nil || s.ReadyTimeout < 0 {
			return fmt.Errorf("%s: %q is not a time such as 10s", pod.EnvAwait, v)
		}
	}
	if v := env(pod.EnvGrace); v != "" {
		if s.Grace, err = time.ParseDuration(v); err != nil || s.Grace <= 0 {
			return fmt.Errorf("%s: %q is not a time such as 10s", pod.EnvGrace, v)
		}
	}
	if v := env(pod.EnvArtifacts); v != "" {
		if err = json.Unmarshal([]byte(v), &s.Artifacts); err != nil {
			return fmt.Errorf("%s: %w", pod.EnvArtifacts, err)
		}
	}
	if v := env(pod.EnvParsers); v != "" {
		if err = json.Unmarshal([]byte(v), &s.Parsers); err != nil {
			return fmt.Errorf("%s: %w", pod.EnvParsers, err)
		}
	}
	if s.MaxBacklog, err = spoolBytes(env(pod.EnvMaxLog)); err != nil {
		return err
	}
	reserve, err := bytesOf(pod.EnvReserve, env(pod.EnvReserve))
	s.MinFree = pod.RecordingFloor(reserve)
	return err
}

// spoolBytes returns how many bytes of output may wait, given the limit of the log.
func spoolBytes(text string) (int64, error) {
	limit, err := bytesOf(pod.EnvMaxLog, text)
	if err != nil || limit == 0 {
		return 0, err
	}
	return limit + spool, nil
}

// bytesOf parses the number of bytes in a variable. An unset variable gives zero.
func bytesOf(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is not a number of bytes", name, text)
	}
	return n, nil
}

// runSupervise runs a pod of the local cluster, probes the machine, or bridges the
// networks of several pods.
func runSupervise(args []string, signals <-chan os.Signal) error {
	switch {
	case len(args) == 2 && args[0] == "--probe":
		return shim.Probe(args[1])
	case len(args) == 2 && args[0] == "--probe-network":
		return shim.ProbeNetwork()
	case len(args) == 2 && args[0] == "--hub": // the directory is only for people
		return shim.RunBridge()
	case len(args) != 1:
		return fmt.Errorf("%w: supervise wants one directory", errUsage)
	}
	return shim.Run(args[0], signals)
}
