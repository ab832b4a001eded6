package collect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/services/internal/clustertest"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// The log of TestAGigabyteOfLogTakesLittleMemory.
const (
	logSize  = 1 << 30
	lineSize = 1000 // with its line feed
	longLine = 10 << 20
	mostMiB  = 64
)

// TestAGigabyteOfLogTakesLittleMemory has the program of the pods ship a log of 1 GiB with a line of 10 MiB in the middle, through Kafka.
func TestAGigabyteOfLogTakesLittleMemory(t *testing.T) {
	if os.Getenv("BAI_TEST_REAL") == "" {
		t.Skip("set BAI_TEST_REAL to ship a gigabyte")
	}
	v := newVolume(t)
	lines := writeLarge(t, v)
	v.append(t, pod.Metrics, `{"a": 1}`+"\n")
	v.exit(t, pod.Exit{})

	key := []byte("0123456789abcdef")
	broker := kafkatest.StartWide(t, 2, event.Topics()...)
	got := &lineChecker{tb: t, seen: make([]bool, lines+1), done: make(chan event.End, 1)}
	consume(t, connect(t, kafka.Settings{Brokers: broker.Addrs, Key: key}), got.logs, func(event.Metrics) {})

	startedAt := time.Now()
	spec := settings(v).Collect
	spec.Brokers, spec.Token = broker.Addrs, access.TokenFor(key, "r1")
	spec.Metrics = []pod.Metric{{Name: "loss", Pattern: `loss=(\S+)`}}
	peak := shipLarge(t, v, spec)
	elapsed := time.Since(startedAt)
	select {
	case end := <-got.done:
		want(t, end.Count, int64(lines)+1)
		want(t, end.Dropped, 0)
	case <-time.After(5 * time.Minute):
		t.Fatal("its end is not heard of")
	}
	got.check(t, lines)
	t.Logf("%d lines of %d bytes in %v, with %.1f MiB of memory at most", lines+1, lineSize, elapsed.Round(time.Millisecond), float64(peak)/1024)
	if peak > mostMiB<<10 {
		t.Errorf("%d KiB of memory, want %d MiB at most", peak, mostMiB)
	}
}

// numbered is line n without its line feed.
func numbered(n int) string {
	text := fmt.Sprintf("line %d loss=%d.5 ", n, n)
	return text + strings.Repeat("x", lineSize-1-len(text))
}

// writeLarge writes the output, and returns the number of its lines without the long one.
func writeLarge(t *testing.T, v volume) (lines int) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(v.dir, pod.Output), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	write := func() {
		var b []byte
		for rest := text; len(rest) > 0; {
			n := min(len(rest), pod.MaxRecord)
			b = pod.AppendRecord(b, pod.Record{Time: time.Now().UnixNano(), Data: rest[:n]})
			rest = rest[n:]
		}
		_, failed := f.Write(b)
		err, text = errors.Join(err, failed), text[:0]
	}
	for size := 0; size < logSize; size += lineSize {
		if text = append(append(text, numbered(lines)...), '\n'); len(text) > 1<<20 {
			write()
		}
		if lines++; lines == logSize/lineSize/2 {
			text = append(append(text, strings.Repeat("y", longLine)...), '\n')
		}
	}
	write()
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestTheLargestRequestsTakeLittleMemory sends the program the largest requests that it accepts, and serves it the largest pages.
func TestTheLargestRequestsTakeLittleMemory(t *testing.T) {
	if os.Getenv("BAI_TEST_REAL") == "" {
		t.Skip("set BAI_TEST_REAL to send much")
	}
	var page strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&page, "m{n=\"%d\", long=\"%s\"} 1\n", i, strings.Repeat("x", 80))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page.String())) }))
	defer server.Close()
	v := newVolume(t)
	broker := kafkatest.StartWide(t, 2, event.Topics()...)
	spec := settings(v).Collect
	spec.Brokers, spec.OTLP, spec.Scrape = broker.Addrs, true, pod.Scrape{URLs: []string{server.URL}}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		defer v.exit(t, pod.Exit{})
		url := endpoint(t, v, newStore(t))
		for round := range 5 {
			for _, each := range []int{59_000, 30_000} {
				if code := post(t, url, points(t, each, 4<<20, round)); code != http.StatusOK {
					t.Errorf("request of %d points: %d", each, code)
				}
			}
		}
	}()
	peak := shipLarge(t, v, spec)
	<-sent
	t.Logf("%.1f MiB of memory at most", float64(peak)/1024)
	if peak > 2*mostMiB<<10 {
		t.Errorf("%d KiB of memory, want %d MiB at most", peak, 2*mostMiB)
	}
}

// points returns a message of n points, of at most size bytes.
func points(t *testing.T, n, size, round int) []byte {
	t.Helper()
	g := &metricsv1.Gauge{}
	for i := range n {
		g.DataPoints = append(g.DataPoints, &metricsv1.NumberDataPoint{
			TimeUnixNano: uint64(1e9 + round*n + i), Value: &metricsv1.NumberDataPoint_AsDouble{AsDouble: float64(i)},
		})
	}
	b, err := proto.Marshal(&metricsv1.MetricsData{ResourceMetrics: []*metricsv1.ResourceMetrics{{ScopeMetrics: []*metricsv1.ScopeMetrics{{
		Metrics: []*metricsv1.Metric{{Name: fmt.Sprint("n", n), Data: &metricsv1.Metric_Gauge{Gauge: g}}},
	}}}}})
	if err != nil || len(b) > size {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	return b
}

// shipLarge runs the program until it has shipped everything, and returns its peak memory in KiB.
func shipLarge(t *testing.T, v volume, spec pod.Collect) (peak int) {
	t.Helper()
	dir := t.TempDir()
	program, err := clustertest.BuildPod(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(spec)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, pod.CollectFile), b, 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program+pod.ShipSuffix, "collect")
	cmd.Env = append(os.Environ(), pod.EnvDir+"="+v.dir, pod.EnvStateDir+"="+v.state, pod.EnvSecretDir+"="+dir, pod.EnvPodUID+"=u1")
	var output strings.Builder
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, output.String())
			}
			return peak
		case <-time.After(5 * time.Millisecond):
			peak = max(peak, peakMemory(cmd.Process.Pid))
		}
	}
}

// peakMemory returns the peak memory of a process in KiB, 0 once it has ended.
func peakMemory(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			n, _ := strconv.Atoi(f[1]) // 0 for a text that is no number
			return n
		}
	}
	return 0
}

// lineChecker compares received lines with those that were written.
type lineChecker struct {
	tb   testing.TB
	done chan event.End

	mu   sync.Mutex
	seen []bool
	cut  int
}

func (l *lineChecker) logs(ev event.Logs) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range ev.Lines {
		l.line(line)
	}
	if ev.End != nil {
		l.done <- *ev.End
	}
}

func (l *lineChecker) line(line event.Line) {
	if line.Truncated {
		if l.cut++; line.Raw != longLine || line.Text != strings.Repeat("y", 64<<10) {
			l.tb.Errorf("a line of %d bytes is cut to %d, %.20q…", line.Raw, len(line.Text), line.Text)
		}
		return
	}
	var n int
	if _, err := fmt.Sscanf(line.Text, "line %d ", &n); err != nil || n < 0 || n >= len(l.seen) || line.Text != numbered(n) {
		l.tb.Errorf("no line of ours: %.60q", line.Text)
		return
	}
	l.seen[n] = true
}

// check checks that every line was received.
func (l *lineChecker) check(t *testing.T, lines int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	missing := 0
	for n := range lines {
		if !l.seen[n] {
			missing++
		}
	}
	if missing > 0 || l.cut != 1 {
		t.Errorf("%d lines are missing, and %d are cut", missing, l.cut)
	}
}
