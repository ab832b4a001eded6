package wiring

import (
	"crypto/rand"
	"fmt"
	"os"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Logs is a cluster whose logs are followed. It implements follow.Cluster.
type Logs struct {
	cluster.Observer
	cluster.Logger
}

// NewLogs returns the Logs of a cluster.
func NewLogs(o cluster.Observer, l cluster.Logger) Logs { return Logs{o, l} }

// ProcessName names this process as no other is called.
func ProcessName() string {
	host, _ := os.Hostname() // what follows is enough
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text())
}
