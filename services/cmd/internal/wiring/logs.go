package wiring

import (
	"crypto/rand"
	"fmt"
	"os"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Logs is a cluster with logs to follow. It implements follow.Cluster.
type Logs struct {
	cluster.Observer
	cluster.Logger
}

// NewLogs returns the Logs of a cluster.
func NewLogs(o cluster.Observer, l cluster.Logger) Logs { return Logs{o, l} }

// ProcessName returns a unique name for this process.
func ProcessName() string {
	host, _ := os.Hostname() // the rest is unique
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text())
}
