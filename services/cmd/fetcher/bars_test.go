package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/fetcher/download"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/test/testbed/s3"
)

// Limits of the program's memory in MiB, including its code, and of the memory for the
// parts that it writes to a bucket.
const (
	maxMemory    = 64
	uploadMemory = 8
)

// TestTheProgramTakesLittleMemory measures the program as it is shipped during a task,
// if BAI_BARS is set. BAI_BARS=1 is 1 GiB, and another number is a size in MiB.
func TestTheProgramTakesLittleMemory(t *testing.T) {
	mib, err := strconv.Atoi(cmp.Or(os.Getenv("BAI_BARS"), "0"))
	if err != nil {
		t.Fatal(err)
	}
	if mib == 0 {
		t.Skip("measures: set BAI_BARS=1")
	}
	if mib == 1 {
		mib = 1024
	}
	dir := t.TempDir()
	program, source := filepath.Join(dir, "fetcher"), filepath.Join(dir, "source")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "disable_grpc_modules", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sum := writeLargeFile(t, source, mib)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeFile(w, r, source)
	}))
	defer site.Close()
	folder := func(slow int64) func(*testing.T, string) string {
		return func(_ *testing.T, dir string) string {
			return fmt.Sprintf("[objects]\nurl = %q\n[fetcher.sources]\nslow = %d\n", "file://"+dir+"/objects", slow)
		}
	}
	for name, do := range map[string]struct {
		config func(t *testing.T, dir string) string
		most   float64
	}{
		"on one connection": {folder(0), maxMemory},
		"in parts":          {folder(1 << 50), maxMemory},
		"into a bucket":     {bucketSettings, maxMemory + uploadMemory},
	} {
		t.Run(name, func(t *testing.T) {
			if peak := peakOf(t, program, site.URL, sum, do.config); peak > do.most {
				t.Errorf("%d MiB: %.1f MiB of memory, want %.0f at most", mib, peak, do.most)
			} else {
				t.Logf("%d MiB: %.1f MiB of memory", mib, peak)
			}
		})
	}
}

// bucketSettings returns the settings of a program whose objects are in an S3 bucket.
func bucketSettings(t *testing.T, dir string) string {
	t.Helper()
	server := s3.Start(t)
	server.Bucket(t, "team")
	id, key := filepath.Join(dir, "id"), filepath.Join(dir, "key")
	if err := errors.Join(os.WriteFile(id, []byte(server.AccessKey), 0o600), os.WriteFile(key, []byte(server.SecretKey), 0o600)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[objects]\nurl = \"s3://team/bai\"\n[objects.s3]\nendpoint = %q\nregion = %q\npath_style = true\naccess_key_file = %q\nsecret_key_file = %q\n[fetcher.sources]\n",
		server.Endpoint, server.Region, id, key)
}

// writeLargeFile writes a file, and returns its digest.
func writeLargeFile(t *testing.T, path string, mib int) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	sum, piece := sha256.New(), make([]byte, 1<<20)
	for i := range mib {
		piece[0] = byte(i)
		if _, err := io.MultiWriter(f, sum).Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// peakOf runs a program with the task to fetch a URL, and returns the program's maximum
// memory in MiB; objects returns its settings of objects, followed by those of sources.
func peakOf(t *testing.T, program, url, sum string, objects func(t *testing.T, dir string) string) float64 {
	t.Helper()
	dir := t.TempDir()
	config := writeFile(t, fmt.Sprintf("store = %q\n[log]\nlevel = \"error\"\n[kafka]\nbrokers = [\"127.0.0.1:1\"]\n%snetworks = [\"loopback\"]\n",
		filepath.Join(dir, "bai.db"), objects(t, dir)))
	docs, err := sqlite.Open(t.Context(), filepath.Join(dir, "bai.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer docs.Close() //nolint:errcheck // it is not used any more
	task := download.Task{Source: dataset.Source{URL: url, SHA256: sum}, RequestedAt: time.Now(), Number: 1}
	if err := store.Create(t.Context(), docs, store.KindOrder, "job/"+task.Source.Key(), task); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-config", config, download.TransferFlag, task.Source.Key())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done, peak := make(chan error, 1), 0.0
	go func() { done <- cmd.Wait() }()
	for over := false; !over; {
		select {
		case err := <-done:
			over = true
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(5 * time.Millisecond):
			peak = max(peak, peakRSS(cmd.Process.Pid))
		}
	}
	if o, _, err := store.Get[store.Object](t.Context(), docs, store.KindObject, sum); err != nil || o.Size == 0 {
		t.Fatalf("it was not brought: %+v, %v", o, err)
	}
	if peak == 0 {
		t.Skip("this system does not tell how much memory a process has")
	}
	return peak
}

// peakRSS returns the maximum memory of a process so far, in MiB, or 0 if unknown. The
// value of wait4 would include the memory of the parent.
func peakRSS(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			kib, _ := strconv.ParseFloat(f[1], 64) // 0 where it is no number
			return kib / 1024
		}
	}
	return 0
}
