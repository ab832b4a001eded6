//go:build linux

package local_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
)

// BenchmarkPod measures the life of a pod that runs true under the platform's program, from Create to its deletion. The CPU is that of all
// processes together.
func BenchmarkPod(b *testing.B) {
	c, err := local.New(local.Settings{Dir: b.TempDir(), PodBinary: podBinary})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(b.Context(), false) //nolint:errcheck // nothing runs
	seen := make(chan cluster.Snapshot, 1000)
	go c.Watch(b.Context(), func(s cluster.Snapshot) { seen <- s }) //nolint:errcheck // until the end
	var ended time.Duration
	before := cpu()
	n := 0
	for b.Loop() {
		n++
		j := entrypointJob(fmt.Sprintf("run%d", n), "true")
		began := time.Now()
		if err := c.Create(b.Context(), j); err != nil {
			b.Fatal(err)
		}
		awaitSeen(seen, func(s cluster.Snapshot) bool { return s.Job != nil && s.Job.Status.Succeeded == 1 })
		ended += time.Since(began)
		if err := c.Delete(b.Context(), refOf(j)); err != nil {
			b.Fatal(err)
		}
		awaitSeen(seen, func(s cluster.Snapshot) bool { return s.Job == nil })
	}
	b.ReportMetric(float64((cpu()-before).Microseconds())/1000/float64(n), "cpu-ms/pod")
	b.ReportMetric(float64(ended.Microseconds())/1000/float64(n), "ms-to-end")
}

func awaitSeen(seen <-chan cluster.Snapshot, ok func(cluster.Snapshot) bool) {
	for s := range seen {
		if ok(s) {
			return
		}
	}
}

// cpu returns the CPU time of this process and of all children that it has reaped.
func cpu() time.Duration {
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		_ = unix.Getrusage(who, &u)
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
