package cluster

import (
	"context"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RunsWithoutEntrypoint reports whether a pod's benchmark runs the command of its image without the platform's entrypoint, so that its
// output is only in the cluster's log.
func RunsWithoutEntrypoint(p corev1.Pod) bool {
	for _, c := range p.Spec.Containers {
		if c.Name == ContainerBenchmark {
			return len(c.Command) == 0
		}
	}
	return false
}

// Log names the log of one container of a pod, as the cluster stores it.
type Log struct {
	Scope, Pod, Container string
	Since                 time.Time // from the first line of this second on; zero means from the beginning
}

// Logger reads logs.
type Logger interface {
	// Log opens a log and follows it until the container has ended, ctx is done or the connection breaks. Each line begins with its time in
	// the format of RFC 3339, with fractions, and a space. Lines that the cluster has discarded are missing without notice. It returns
	// ErrNotFound if the pod does not exist. The caller closes the result.
	Log(ctx context.Context, l Log) (io.ReadCloser, error)
}
