package collect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
)

// TestMain is also the process that the tests kill: a collector that ships into
// a file.
func TestMain(m *testing.M) {
	dir := os.Getenv("COLLECT_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	s := settings(volume{dir, os.Getenv("COLLECT_OWN")})
	s.Metrics = []pod.Metric{{Name: "n", Pattern: `n=(\d+)`}}
	s.OTLP = os.Getenv("COLLECT_OTLP") != ""
	var bus collect.Publisher = filePublisher{filepath.Join(dir, "shipped")}
	var err error
	if broker := os.Getenv("COLLECT_BROKER"); broker != "" {
		s.Poll = 0
		bus, err = kafka.NewBus(kafka.Settings{Brokers: []string{broker}}, zap.NewNop())
	}
	c, failed := collect.New(s, bus, zap.NewNop())
	err = errors.Join(err, failed)
	if err == nil {
		err = c.Run(context.Background())
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// filePublisher is a Publisher whose events are safe once they are in a file.
type filePublisher struct{ path string }

func (f filePublisher) Publish(_ context.Context, events ...event.Event) error {
	var b []byte
	for _, ev := range events {
		m, err := event.Encode(ev)
		if err != nil {
			return err
		}
		b = fmt.Appendf(b, "%s\t%s\n", m.Topic, m.Value)
	}
	out, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, _ = out.WriteString("\n") // ends an event that a kill has cut off
	_, err = out.Write(b)
	_ = out.Close()
	return err
}

func TestKilledAtAnyTimeItShipsEverythingOnce(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]volume{
		"of a pod with a volume of the collector's own": newVolume(t),
		"of a pod that an older executor made":          newVolume(t).withoutState(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killOnce(t, v)
		})
	}
}

// killOnce kills the collector while a benchmark writes, and checks the shipped events.
func killOnce(t *testing.T, v volume) {
	t.Helper()
	const lines = 8000
	killRepeatedly(t, v, func() { writeAll(t, v, lines) })
	store := readShipped(t, v)
	store.complete(t)
	for stream, n := range map[string]int{"output": lines, "metrics": lines} {
		if end := store.end(stream, event.TopicMetrics); end.Count != int64(n) || end.Dropped > 0 {
			t.Errorf("samples of %s end with %+v, want %d", stream, end, n)
		}
	}
	if end := store.end("output", event.TopicLogs); end.Count != 2*lines {
		t.Errorf("lines end with %+v, want %d", end, 2*lines)
	}
}

// killRepeatedly runs the collector's process while the benchmark writes, kills it again and again, and returns when it has ended by
// itself. The benchmark ends after the last kill: before that no collector can end by itself, however slow the machine is.
func killRepeatedly(t *testing.T, v volume, benchmark func(), env ...string) {
	t.Helper()
	const kills = 8
	written := make(chan struct{})
	go func() {
		defer close(written)
		benchmark()
	}()
	var complaint strings.Builder
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(append(os.Environ(), "COLLECT_DIR="+v.dir, "COLLECT_OWN="+v.state), env...)
		cmd.Stderr = &complaint
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	for range kills {
		cmd := start()
		time.Sleep(time.Duration(30+rand.IntN(150)) * time.Millisecond) // any moment will do
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || complaint.Len() > 0 {
			t.Fatalf("it ended by itself before the benchmark did: %s", complaint.String())
		}
	}
	cmd := start()
	<-written
	v.exit(t, pod.Exit{})
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, complaint.String())
	}
}

func TestKilledAtAnyTimeItShipsWhatIsSentToItOnce(t *testing.T) {
	t.Parallel()
	const points = 1500
	v := newVolume(t)
	killRepeatedly(t, v, func() {
		url := endpoint(t, v, newStore(t))
		for i := range points {
			for body := gauge(t, "n", float64(i), int64(i+1)); post(t, url, body) != http.StatusOK; { // again until the collector answers
			}
		}
	}, "COLLECT_OTLP=yes")
	store := readShipped(t, v)
	store.complete(t)
	values := make(map[float64]int)
	for _, sample := range store.values[event.StreamOTLP] {
		values[sample.Float()]++
	}
	if end := store.end(event.StreamOTLP, event.TopicMetrics); end.Count != points || end.Dropped > 0 || len(values) != points || len(store.values[event.StreamOTLP]) != points {
		t.Errorf("%d samples of %d values, and it ends with %+v, want %d", len(store.values[event.StreamOTLP]), len(values), end, points)
	}
}

// writeAll writes numbered lines to both streams, in pieces that end anywhere,
// and to the metrics file.
func writeAll(t *testing.T, v volume, lines int) {
	t.Helper()
	var stdout, stderr string
	for i := range lines {
		stdout += fmt.Sprintf("n=%d %s\n", i, strings.Repeat("x", rand.IntN(50)))
		stderr += fmt.Sprintf("warning %d\n", i)
		if i%20 > 0 {
			continue
		}
		cut, cutErr := rand.IntN(len(stdout)), rand.IntN(len(stderr))
		v.record(t, stdoutRecord(stdout[:cut]), stderrRecord(stderr[:cutErr]))
		stdout, stderr = stdout[cut:], stderr[cutErr:]
		time.Sleep(500 * time.Microsecond) // a benchmark does other work too
	}
	v.record(t, stderrRecord(stderr), stdoutRecord(stdout))
	var metrics strings.Builder
	for i := range lines {
		fmt.Fprintf(&metrics, `{"m": %d}`+"\n", i)
	}
	v.append(t, pod.Metrics, metrics.String())
}

// readShipped reads the events that were shipped into the file of a volume.
func readShipped(t *testing.T, v volume) *fakeStore {
	t.Helper()
	f, err := os.Open(filepath.Join(v.dir, "shipped"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	s := newStore(t)
	in := bufio.NewScanner(f)
	in.Buffer(nil, 2<<20)
	for in.Scan() {
		topic, value, _ := strings.Cut(in.Text(), "\t")
		switch topic {
		case event.TopicLogs:
			saveEvent[event.Logs](s, value)
		case event.TopicMetrics:
			saveEvent[event.Metrics](s, value)
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

// saveEvent stores an event that is whole: an event that a kill has cut off was not acknowledged.
func saveEvent[T event.Event](s *fakeStore, value string) {
	var ev T
	if json.Unmarshal([]byte(value), &ev) == nil {
		s.save(ev)
	}
}
