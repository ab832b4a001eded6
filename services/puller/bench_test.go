package puller_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/puller"
)

// BenchmarkPull compares a pull over loopback HTTP and from a folder with a program that only copies and sums the data. PULL_MIB sets the
// size.
func BenchmarkPull(b *testing.B) {
	mib, err := strconv.Atoi(cmp.Or(os.Getenv("PULL_MIB"), "16"))
	if err != nil {
		b.Fatal(err)
	}
	depot, d := filledStore(b, mib)
	server := httptest.NewServer(http.FileServer(http.Dir(depot)))
	defer server.Close()
	b.Run("bare", func(b *testing.B) {
		measure(b, mib, func(dir string) error {
			return baselinePull(server.URL+"/"+d.Object, filepath.Join(dir, "0"), d.SHA256)
		})
	})
	for name, cfg := range map[string]pod.Pull{
		"http": {Store: server.URL}, "file": {Store: "file://" + depot}, "linked": {Store: "file://" + depot, Linked: true},
	} {
		cfg.Data = []event.Data{d}
		b.Run(name, func(b *testing.B) {
			measure(b, mib, func(dir string) error { return puller.Run(b.Context(), dir, cfg, nil) })
		})
	}
}

// filledStore returns a store with one object of mib MiB, readable for all.
func filledStore(tb testing.TB, mib int) (dir string, d event.Data) {
	tb.Helper()
	dir = tb.TempDir()
	d = event.Data{Source: "x", Path: "/x", Object: "objects/big", Size: int64(mib) << 20}
	if err := os.Mkdir(filepath.Join(dir, "objects"), 0o755); err != nil {
		tb.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, d.Object), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	sum, piece := sha256.New(), bytesOf(1<<20)
	for range mib {
		if _, err := io.MultiWriter(f, sum).Write(piece); err != nil {
			tb.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	d.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return dir, d
}

// measure brings the data again and again, each time to an empty folder.
func measure(b *testing.B, mib int, bring func(dir string) error) {
	b.Helper()
	b.SetBytes(int64(mib) << 20)
	for b.Loop() {
		dir := b.TempDir()
		if err := bring(dir); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(peakMemory(b), "MiB-peak")
}

// baselinePull is the baseline: the shortest program that does the same.
func baselinePull(url, to, sum string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, h), answer.Body); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return fmt.Errorf("sha256 %s, want %s", got, sum)
	}
	return nil
}

// peakMemory returns the peak memory of this process, with the server, in MiB; 0 if the system does not provide it.
func peakMemory(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			kib, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	return 0
}
