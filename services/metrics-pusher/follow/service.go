// Package follow ships the output of a benchmark whose container runs without the platform's entrypoint. If a descriptor names no command
// and the image's registry did not answer which entrypoint the image has, the image runs unchanged, and the follower reads its output from
// the log that the cluster stores of the container.
//
// The first and the last lines of a log over limits.max_log_size are stored, as in package collect. The last lines are in memory until the
// log has ended. Patterns are matched with all lines.
//
// The guarantee is weaker than that of package collect: the log does not separate standard error from standard output, lines that a node
// rotates away before they are read are missing without notice, and after a pod was canceled or deleted its last lines may be missing.
// Lines that were read are shipped at least once and stored once. A source (event.Source) is the log of one container, and the sequence
// number of a line is its time in nanoseconds since the pod was created, or one more than that of the line before it if that is greater;
// both are the same each time the log is read.
//
// One of all processes follows the logs of an engine, under a lease. The progress of each log is stored, so that another process continues
// after a kill, from the second in which the last line was written. When a container has ended and its log is read, the source ends with an
// event.End for each topic, and a document records the end for those that wait for it (store.LogShippedKey).
package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	MaxLogs int `toml:"most"` // logs that are followed at a time; zero means 200
	// bytes that are kept of the log of a run that gives no limit, half of them and 1 MiB at most of its end; zero means no limit
	MaxLog       int64         `toml:"max_log"`
	Lease        time.Duration `toml:"lease"`     // how long another process waits for one that is gone; zero means 3 s
	Reconcile    time.Duration `toml:"reconcile"` // between two looks at what was begun and is not there any more; zero means 30 s
	RetryBackoff time.Duration `toml:"retry"`     // first wait before what failed is tried again; zero means 250 ms
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.MaxLogs < 0 || s.MaxLog < 0 {
		errs = append(errs, errors.New("follow.most, follow.max_log: must not be negative"))
	}
	for name, d := range map[string]time.Duration{"lease": s.Lease, "reconcile": s.Reconcile, "retry": s.RetryBackoff} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("follow.%s: must not be negative", name))
		}
	}
	return errors.Join(errs...)
}

func (s Settings) withDefaults() Settings {
	s.MaxLogs = cmp.Or(s.MaxLogs, 200)
	s.Lease = cmp.Or(s.Lease, 3*time.Second)
	s.Reconcile = cmp.Or(s.Reconcile, 30*time.Second)
	s.RetryBackoff = cmp.Or(s.RetryBackoff, 250*time.Millisecond)
	return s
}

// Publisher publishes.
type Publisher interface {
	// Publish publishes events, those of one run in their order, and returns when they are safe.
	Publish(ctx context.Context, events ...event.Event) error
}

// Store stores how far logs are shipped, and returns runs.
type Store interface {
	store.Docs
	store.Lister
	// Run is that of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
}

// Cluster is the cluster of the containers.
type Cluster interface {
	cluster.Observer
	cluster.Logger
}

// Deps are the dependencies of the service.
type Deps struct {
	Bus     Publisher
	Store   Store
	Cluster Cluster
	Engine  string           // whose cluster it is; empty for the default one
	Holder  string           // of the lease: this process, as no other is called
	Clock   func() time.Time // nil means the machine's clock
	Log     *zap.Logger      // nil means no log
}

// New returns the parts of the service for one engine, by name. The names are unique among all
// services, so that one process can run several.
func New(s Settings, d Deps) map[string]service.Runnable {
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	s = s.withDefaults()
	part, lease := "metrics-pusher/follow", leaseName
	if d.Engine != "" {
		part, lease = part+"/"+d.Engine, lease+"/"+d.Engine
	}
	leader := control.NewLeader(d.Store, lease, d.Holder, s.Lease, control.LeaderSettings{Now: d.Clock, Log: d.Log})
	return map[string]service.Runnable{part: func(ctx context.Context) error {
		return leader.Lead(ctx, func(ctx context.Context, fence int64) error { return newFollower(s, d).run(ctx, fence) })
	}}
}
