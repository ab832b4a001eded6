package collect_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// TestWhatABenchmarkWritesUnderTheCollectorsNamesIsNotRead has the benchmark write a cursor that says that everything is shipped, and a
// spool with samples that no program sent.
func TestWhatABenchmarkWritesUnderTheCollectorsNamesIsNotRead(t *testing.T) {
	t.Parallel()
	v, bus := newVolume(t), newStore(t)
	forged := v.withoutState()
	forged.append(t, pod.Cursor, `{"run":"r1","attempt":1,"sources":{"output":{"ended":true},"metrics":{"ended":true},"system":{"ended":true},"fifo":{"ended":true}}}`)
	for _, name := range []string{pod.Spool, pod.OTLP, pod.Scraped, pod.Series} {
		forged.append(t, name, `{"forged": 1}`+"\n")
	}
	forged.append(t, pod.OTLPURL, "http://0.0.0.0:1/forged/v1/metrics")
	v.record(t, stdoutRecord("n=1\n"))
	v.append(t, pod.Metrics, `{"true": 1}`+"\n")
	s := settings(v)
	s.OTLP, s.Scrape = true, pod.Scrape{URLs: []string{"http://127.0.0.1:1"}}
	done := start(t, s, bus)
	bus.waitUntil(t, func() bool { // the collector writes the endpoint again
		b, err := os.ReadFile(filepath.Join(v.dir, pod.OTLPURL))
		return err == nil && strings.HasPrefix(string(b), "http://127.0.0.1:")
	})
	if code := post(t, endpoint(t, v, bus), gauge(t, "sent", 2, 1)); code != http.StatusOK {
		t.Errorf("the collector answers %d", code)
	}
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	bus.complete(t)
	for stream, n := range map[string]int64{event.StreamMetrics: 1, event.StreamOTLP: 1, event.StreamFIFO: 0, event.StreamScraped: 0} {
		if end := bus.end(stream, event.TopicMetrics); end.Count != n {
			t.Errorf("samples of %s end with %+v, want %d", stream, end, n)
		}
	}
	if end := bus.end(event.StreamOutput, event.TopicLogs); end.Count != 1 {
		t.Errorf("lines end with %+v", end)
	}
}

// TestACollectorThatWasKilledTellsAgainWhereItListens: the collector may be killed between writing its own note and writing the one for the
// benchmark, and the benchmark may remove its note.
func TestACollectorThatWasKilledTellsAgainWhereItListens(t *testing.T) {
	t.Parallel()
	v, bus := newVolume(t), newStore(t)
	const text = "http://127.0.0.1:1/thekey/v1/metrics"
	if err := os.WriteFile(filepath.Join(v.state, pod.OTLPURL), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings(v)
	s.OTLP = true
	done := start(t, s, bus)
	if got := endpoint(t, v, bus); got != text {
		t.Errorf("programs are told %s, want %s", got, text)
	}
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
