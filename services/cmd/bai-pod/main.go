//go:build linux

// Bai-pod is the platform's one program in a benchmark's pod.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/emit"
)

const usage = `bai-pod is what Benchmark AI runs in the pods of a benchmark.

  bai-pod install DST                             copy this program to DST
  bai-pod exec [--script[=INTERPRETER]] -- CMD…   run the benchmark's command and record what it writes
  bai-pod step NAME LIMIT [AFTER] -- CMD…         run a step's command and record what it writes
  bai-pod always NAME LIMIT [NEEDED…] -- CMD…     run a step's command when the pod has to end, and record what it writes
  bai-pod mtu SIZE                                set the MTU of the pod's link to its network
  bai-pod hosts DOMAIN…                           wait for the addresses of the run's pods, and write the hosts file
  bai-pod supervise DIR                           run one pod of the local cluster
  bai-pod version

Called by the name bai-emit it emits metrics: bai-emit --help.
`

// Exit codes for errors of the program itself.
const (
	exitFailed = 1
	exitUsage  = 2
)

// errUsage is the error for a command line that the program does not know.
var errUsage = errors.New("usage")

// version is set when the program is built.
var version = "unknown"

func main() {
	if filepath.Base(os.Args[0]) == filepath.Base(pod.Emit) {
		os.Exit(emit.Run(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	signals := make(chan os.Signal, 16)
	// First of all, since a pod may be ended before the program has started completely.
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	code, err := dispatch(os.Args[1:], signals, os.Stdout)
	switch {
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintf(os.Stderr, "bai-pod: %v\n\n%s", err, usage)
		code = exitUsage
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "bai-pod: %v\n", err)
		code = exitFailed
	}
	os.Exit(code)
}

func dispatch(args []string, signals <-chan os.Signal, out io.Writer) (int, error) {
	if len(args) == 0 {
		return 0, fmt.Errorf("%w: no command", errUsage)
	}
	switch name, args := args[0], args[1:]; name {
	case "install":
		return 0, install(args)
	case "exec":
		return runExec(args, signals)
	case "step":
		return runStep(args, signals)
	case "always":
		return runAlways(args, signals)
	case "mtu":
		return 0, setMTU(args, out)
	case "hosts":
		return 0, writeHosts(args, signals, out)
	case "supervise":
		return 0, runSupervise(args, signals)
	case "version":
		return 0, printVersion(out)
	case "help", "-h", "--help":
		_, err := io.WriteString(out, usage)
		return 0, err
	default:
		return 0, fmt.Errorf("%w: no command %q", errUsage, name)
	}
}

func printVersion(out io.Writer) error {
	_, err := fmt.Fprintf(out, "bai-pod %s\n", version)
	return err
}
