//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/supervise"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/wrap"
)

// spool is how many bytes of output may wait for the collector, above the limit of
// the log.
const spool = 64 << 20

// wrapped runs the benchmark's command.
func wrapped(args []string, signals <-chan os.Signal) (int, error) {
	s, err := wrapSettings(args, os.Getenv)
	if err != nil {
		return 0, err
	}
	s.Beside = newObserver(s.Dir, os.Getenv(pod.EnvSystem)).beside
	return wrap.Run(s, signals)
}

// wrapSettings reads the command line and the environment of exec.
func wrapSettings(args []string, env func(string) string) (wrap.Settings, error) {
	s := wrap.Settings{Dir: env(pod.EnvDir), Message: cmp.Or(env(pod.EnvMessage), pod.TerminationMessage)}
	for len(args) > 0 && args[0] != "--" {
		shell, isScript := strings.CutPrefix(args[0], "--script")
		if !isScript || shell != "" && shell[0] != '=' {
			return s, fmt.Errorf("%w: exec: %q is no option; the command follows --", errUsage, args[0])
		}
		s.Script, s.Shell, args = true, strings.Fields(strings.TrimPrefix(shell, "=")), args[1:]
	}
	if len(args) < 2 || args[1] == "" {
		return s, fmt.Errorf("%w: exec: no command after --", errUsage)
	}
	s.Args = args[1:]
	err := bounds(&s, env)
	return s, err
}

// bounds reads what of the settings comes from the environment.
func bounds(s *wrap.Settings, env func(string) string) (err error) {
	if v := env(pod.EnvAwait); v != "" {
		if s.Await, err = time.ParseDuration(v); err != nil || s.Await < 0 {
			return fmt.Errorf("%s: %q is not a time such as 10s", pod.EnvAwait, v)
		}
	}
	if v := env(pod.EnvGrace); v != "" {
		if s.Grace, err = time.ParseDuration(v); err != nil || s.Grace <= 0 {
			return fmt.Errorf("%s: %q is not a time such as 10s", pod.EnvGrace, v)
		}
	}
	if v := env(pod.EnvArtifacts); v != "" {
		if err = json.Unmarshal([]byte(v), &s.Keep); err != nil {
			return fmt.Errorf("%s: %w", pod.EnvArtifacts, err)
		}
	}
	if s.Spool, err = spooled(env(pod.EnvMaxLog)); err != nil {
		return err
	}
	s.Room, err = bytesOf(pod.EnvReserve, env(pod.EnvReserve))
	return err
}

// spooled is how many bytes of output may wait, by the limit of the log.
func spooled(text string) (int64, error) {
	limit, err := bytesOf(pod.EnvMaxLog, text)
	if err != nil || limit == 0 {
		return 0, err
	}
	return limit + spool, nil
}

// bytesOf reads the number of bytes that a variable has; zero where it is not set.
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

// supervised runs a pod of the local cluster, or joins several.
func supervised(args []string, signals <-chan os.Signal) error {
	switch {
	case len(args) == 2 && args[0] == "--probe":
		return supervise.Probe(args[1])
	case len(args) == 2 && args[0] == "--probe-network":
		return supervise.ProbeNetwork()
	case len(args) == 2 && args[0] == "--hub": // the directory is for people to see
		return supervise.Hub()
	case len(args) != 1:
		return fmt.Errorf("%w: supervise wants one directory", errUsage)
	}
	return supervise.Run(args[0], signals)
}
