package cluster

import (
	"context"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RunsWithoutEntrypoint reports whether a pod's benchmark is run as its image says, and not
// under our program, so that the cluster's log is all that there is of its output.
func RunsWithoutEntrypoint(p corev1.Pod) bool {
	for _, c := range p.Spec.Containers {
		if c.Name == ContainerBenchmark {
			return len(c.Command) == 0
		}
	}
	return false
}

// Log is what one container of a pod wrote, as the cluster kept it.
type Log struct {
	Scope, Pod, Container string
	Since                 time.Time // from the first line of this second on; zero means from the beginning
}

// Logger reads logs.
type Logger interface {
	// Log opens a log and follows it until the container has ended, ctx is done
	// or the connection breaks. Each line begins with its time as of RFC 3339,
	// with fractions, and a space. Lines that the cluster has thrown away are
	// missing without a word. It says ErrNotFound where there is no such pod.
	// Close what it returns.
	Log(ctx context.Context, l Log) (io.ReadCloser, error)
}
