package index_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
)

// BenchmarkPipeline measures how many samples a second get from a metrics file to the store, by way of the embedded broker. Run it with
// -benchtime 2000000x: one iteration is one sample.
func BenchmarkPipeline(b *testing.B) {
	w := newFixture(b)
	dir := writeVolume(b, b.N)
	c, err := collect.New(collect.Settings{
		Collect: pod.Collect{Header: event.NewHeader("m1", "r", "pets", "ann", time.Unix(0, 0).UTC()), Role: "benchmark", Container: "benchmark"},
		Dir:     dir, Pod: "p",
	}, w.bus, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	defer w.index(b)()
	b.ResetTimer()
	if err := c.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	w.waitAll(b, int64(b.N))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

// writeVolume returns the volume of a pod whose benchmark emitted n samples and ended.
func writeVolume(b *testing.B, n int) string {
	b.Helper()
	dir := b.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(pod.PathIn(dir, pod.Metrics))
	if err != nil {
		b.Fatal(err)
	}
	to := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		_, _ = fmt.Fprintf(to, "{\"t\": %d}\n", i)
	}
	for _, err := range []error{to.Flush(), f.Close(), os.WriteFile(pod.PathIn(dir, pod.ExitFile), []byte("{}"), 0o600)} {
		if err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// waitAll waits until n samples are stored, of all sources.
func (w *fixture) waitAll(b *testing.B, n int64) {
	b.Helper()
	for {
		changed := w.store.Changed("r")
		streams, err := w.store.Streams(b.Context(), "r")
		if err != nil {
			b.Fatal(err)
		}
		stored := int64(0)
		for _, s := range streams {
			stored += s.Stored
		}
		if stored == n {
			return
		}
		<-changed
	}
}
