package fetcher_test

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
)

// BenchmarkFetch compares a run's way from submitted to fetched with a program
// that copies and sums the same over the same loopback. FETCH_MIB says how much.
func BenchmarkFetch(b *testing.B) {
	mib, err := strconv.Atoi(cmp.Or(os.Getenv("FETCH_MIB"), "16"))
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "source")
	sum := writeBig(b, file, mib)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) }))
	defer server.Close()
	b.Run("bare", func(b *testing.B) {
		b.SetBytes(int64(mib) << 20)
		to := filepath.Join(b.TempDir(), "copy")
		for b.Loop() {
			if err := bare(server.URL, to, sum); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := os.Remove(to); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("fetcher", func(b *testing.B) {
		b.SetBytes(int64(mib) << 20)
		w := newWorld(b)
		p := w.start(b, quick())
		for n := 0; b.Loop(); n++ {
			run := fmt.Sprintf("r%d", n)
			p.Say(ask(run, data{src: fmt.Sprintf("%s/%d", server.URL, n), sha256: sum}))
			got := p.fetched(b, run)
			b.StopTimer()
			if err := w.forget(b, got[0]); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		b.ReportMetric(peak(b), "MiB-peak")
	})
}

// bare is what is compared to: the shortest program that does the same.
func bare(url, to, sum string) error {
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

func writeBig(b *testing.B, file string, mib int) (sum string) {
	b.Helper()
	f, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	h := sha256.New()
	for i := range mib {
		if _, err := io.MultiWriter(f, h).Write(bytesOf(byte(i), 1<<20)); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// peak returns the most memory that this process had, with both servers, in MiB;
// 0 where the system does not tell.
func peak(b *testing.B) float64 {
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
