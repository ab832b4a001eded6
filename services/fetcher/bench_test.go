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
	"sync"
	"sync/atomic"
	"testing"

	"github.com/benchmark-ai/bai/services/dataset"
)

// BenchmarkFetch compares the time of a run from submitted to fetched with a program
// that copies and sums the same bytes over the same loopback. FETCH_MIB is the size.
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
			if err := plainCopy(server.URL, to, sum); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := os.Remove(to); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("fetcher", func(b *testing.B) { fetch(b, server.URL, sum, mib, quick()) })
	b.Run("cut-5-times", func(b *testing.B) {
		l := newCuttingServer(file, mib, 5)
		defer l.Close()
		fetch(b, l.URL, sum, mib, quick())
		b.ReportMetric(float64(l.moved.Load())/float64(b.N)/(1<<20), "MiB-moved/op")
	})
	b.Run("in-parts", func(b *testing.B) {
		l, s := newCuttingServer(file, mib, 0), quick()
		defer l.Close()
		s.Sources.Slow = 1 << 50
		fetch(b, l.URL, sum, mib, s)
		b.ReportMetric(float64(l.moved.Load())/float64(b.N)/(1<<20), "MiB-moved/op")
	})
}

// fetch fetches a URL again and again.
func fetch(b *testing.B, url, sum string, mib int, s dataset.Settings) {
	b.Helper()
	b.SetBytes(int64(mib) << 20)
	w := newFixture(b)
	p := w.start(b, s)
	for n := 0; b.Loop(); n++ {
		run := fmt.Sprintf("r%d", n)
		p.PublishAndWait(runWith(run, data{src: fmt.Sprintf("%s/%d", url, n), sha256: sum}))
		got := p.waitFetched(b, run)
		b.StopTimer()
		if err := w.deleteFetched(b, got[0]); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(peak(b), "MiB-peak")
}

// cuttingServer serves a file, counts the bytes sent, and cuts each transfer a number
// of times.
type cuttingServer struct {
	*httptest.Server

	moved atomic.Int64
	mu    sync.Mutex
	cuts  map[string]int // number of remaining cuts, by path
}

func newCuttingServer(file string, mib, cuts int) *cuttingServer {
	l := &cuttingServer{cuts: make(map[string]int)}
	each := int64(mib) << 20 / int64(cuts+1)
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		cutsLeft, ok := l.cuts[r.URL.Path]
		if !ok {
			cutsLeft = cuts
		}
		l.cuts[r.URL.Path] = cutsLeft - 1
		l.mu.Unlock()
		c := &cutter{ResponseWriter: w, line: l}
		if cutsLeft > 0 {
			c.untilCut = each
		}
		http.ServeFile(c, r, file)
	}))
	return l
}

// cutter breaks off after a number of bytes; 0 means never.
type cutter struct {
	http.ResponseWriter

	line     *cuttingServer
	untilCut int64
}

// Write implements io.Writer.
func (c *cutter) Write(p []byte) (int, error) {
	cut := c.untilCut > 0 && int64(len(p)) >= c.untilCut
	if cut {
		p = p[:c.untilCut]
	}
	n, err := c.ResponseWriter.Write(p)
	if cut {
		_ = http.NewResponseController(c.ResponseWriter).Flush() // the client may be gone
	}
	c.line.moved.Add(int64(n))
	if c.untilCut > 0 {
		c.untilCut -= int64(n)
	}
	if !cut {
		return n, err
	}
	if conn, _, err := http.NewResponseController(c.ResponseWriter).Hijack(); err == nil {
		_ = conn.Close() // the client may have closed it
	}
	return n, io.ErrClosedPipe
}

// plainCopy is the baseline: the shortest program that does the same.
func plainCopy(url, to, sum string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // the body was only read
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

func writeBig(tb testing.TB, file string, mib int) (sum string) {
	tb.Helper()
	f, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	h := sha256.New()
	for i := range mib {
		if _, err := io.MultiWriter(f, h).Write(bytesOf(byte(i), 1<<20)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// peak returns the maximum memory of this process, with both servers, in MiB. It is 0
// if the system does not report it.
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
