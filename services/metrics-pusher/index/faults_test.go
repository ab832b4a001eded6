package index_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

// Sizes of the odd data that the benchmarks write.
const (
	oddKeys  = 10_000  // labels of different names
	longLine = 5 << 20 // bytes
)

// TestWhatBenchmarksWriteThatIsOddLosesNothingElse has two runs write data that no mapping can hold unchanged, by way of their collectors,
// brokers and this service, and checks the data in the store.
func TestWhatBenchmarksWriteThatIsOddLosesNothingElse(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		faults(t, storetest.Open(t), func() int { return 0 })
	})
	t.Run("Elasticsearch", func(t *testing.T) {
		server := elasticsearch.Start(t)
		p := &harness{server: server.URL}
		prefix := p.prefix(t)
		s, err := elastic.Open(elastic.Settings{Addresses: []string{server.URL}, Prefix: prefix, Refresh: 40 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		faults(t, s, func() int { return p.fields(t, prefix) })
	})
}

// fields returns how many fields the mappings of all indices have.
func (p *harness) fields(t *testing.T, prefix string) int {
	t.Helper()
	var all map[string]struct{ Mappings json.RawMessage }
	p.do(t, http.MethodGet, prefix+"-*/_mapping", &all)
	n := 0
	for _, index := range all {
		n += strings.Count(string(index.Mappings), `"type":`)
	}
	return n
}

// faults has runs write odd data into a store, and counts the store's fields.
func faults(t *testing.T, s storetest.Store, fields func() int) {
	t.Helper()
	broker := kafkatest.Start(t, event.Topics()...)
	bus, err := kafka.NewBus(kafka.Settings{Brokers: broker.Addrs, Key: []byte("0123456789abcdef"), Retry: 10 * time.Millisecond, Session: time.Second}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run.All(ctx, index.New(index.Settings{}, index.Deps{Bus: bus, Store: s})) }()
	// The first run creates the indices, and has a metric that is a number.
	shipOutput(t, bus, "01kdvr00010000000000000001", `{"level": 1, "loss": 0.5}`+"\n", "before\n")
	waitComplete(t, s, "01kdvr00010000000000000001", 2, 1)
	before := fields()
	// In the second run the same metric is a text, and many other data are odd.
	metrics, good := oddOutput()
	shipOutput(t, bus, "01kdvr00020000000000000002", metrics, "before\n"+strings.Repeat("x", longLine)+"\n"+strings.Repeat("word ", longLine/5)+"\n{\"level\": {\"a\": 1}}\nafter\n")
	waitComplete(t, s, "01kdvr00020000000000000002", good, 5)
	stored(t, s, "01kdvr00020000000000000002")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if after := fields(); after != before {
		t.Errorf("the mappings have %d fields, and had %d", after, before)
	}
	t.Logf("%d fields before and after; %d samples stored of a run that wrote %d lines", before, good, strings.Count(metrics, "\n"))
	if n := broker.Count(t, event.TopicDead); n > 0 {
		t.Errorf("%d dead letters", n)
	}
}

// oddOutput returns the metrics that a run emits, and the number of valid samples: others are left out line by line.
func oddOutput() (text string, samples int64) {
	var b strings.Builder
	emit := func(line string, n int64) {
		b.WriteString(line + "\n")
		samples += n
	}
	emit(`{"level": "high"}`, 0)
	emit(`{"level": "high", "loss": 1}`, 1)
	emit(`{"level": {"deep": {"er": 1}}, "loss": 2}`, 1)
	emit(`{"level": [1, 2], "loss": 3}`, 1)
	emit(`{"loss": NaN}`, 1)
	emit(`{"loss": Infinity}`, 1)
	emit(`{"loss": -Infinity}`, 1)
	emit(`{"loss": 1e308, "tiny": 5e-324}`, 2)
	for i := range oddKeys {
		emit(fmt.Sprintf(`{"loss": %d, "@labels": {"key%d": "%d", "kind": %s}}`, i, i, i, []string{`"a"`, "1", "true"}[i%3]), 1)
	}
	for _, key := range []string{"a", "a.b", "a.b.c", ".", "..", "_id", "@timestamp", " ", "ünï"} {
		emit(fmt.Sprintf(`{"loss": 4, "@labels": {%q: "x"}}`, key), 1)
	}
	for i := range 300 { // names of metrics, which are values of one field
		emit(fmt.Sprintf(`{"metric%d.%d": 1}`, i, i), 1)
	}
	emit(`{"last": 1}`, 1)
	return b.String(), samples
}

// shipOutput has a collector ship the output of a run's pod to its end.
func shipOutput(t *testing.T, bus *kafka.Bus, id, metrics, output string) {
	t.Helper()
	dir := t.TempDir()
	err := os.MkdirAll(filepath.Join(dir, "run"), 0o700)
	var records []byte
	for data := []byte(output); len(data) > 0; { // as the entrypoint reads them
		n := min(len(data), 32<<10)
		records, data = pod.AppendRecord(records, pod.Record{Time: time.Now().UnixNano(), Data: data[:n]}), data[n:]
	}
	for name, text := range map[string][]byte{pod.Metrics: []byte(metrics), pod.Output: records, pod.ExitFile: []byte("{}")} {
		err = errors.Join(err, os.WriteFile(pod.PathIn(dir, name), text, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := collect.New(collect.Settings{
		Collect: pod.Collect{Header: event.NewHeader("m-"+id, id, "pets", "ann", time.Now().UTC()), Role: "benchmark", Container: "benchmark", MaxLine: 8 << 20},
		Dir:     dir, Pod: "p",
	}, bus, zap.NewNop())
	if err == nil {
		err = c.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// waitComplete waits until all data of a run are stored, and checks their numbers.
func waitComplete(t *testing.T, s store.Reader, id string, samples, lines int64) {
	t.Helper()
	var c store.Completeness
	var streams []store.Stream
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var err error
		if streams, err = s.Streams(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		c = store.Complete(store.Run{Phase: event.PhaseFinished, Collectors: []string{"p"}}, streams)
		if c.Complete {
			break
		}
	}
	if !c.Complete || c.Samples != samples || c.Missing > 0 || c.Lines < lines {
		t.Fatalf("%+v, want %d samples, %d lines or more, and nothing awaited: %v", c, samples, lines, streams)
	}
}

// stored checks some of the odd data, and the data around them.
func stored(t *testing.T, s store.Reader, id string) {
	t.Helper()
	values, labels := make(map[string][]float64), make(map[string]string)
	for cursor := ""; ; {
		page, next, err := s.Samples(t.Context(), store.SampleQuery{Run: id}, cursor, 5000)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page {
			values[v.Name] = append(values[v.Name], v.Float())
			maps.Copy(labels, v.Labels)
		}
		if cursor = next; len(page) == 0 {
			break
		}
	}
	loss := values["loss"]
	if len(loss) < 7 || loss[0] != 1 || loss[2] != 3 || !math.IsNaN(loss[3]) || !math.IsInf(loss[4], 1) || !math.IsInf(loss[5], -1) || loss[6] != 1e308 {
		t.Errorf("loss begins with %v", loss[:min(len(loss), 8)])
	}
	if len(values["last"]) != 1 || len(values["level"]) != 0 || len(values) != 303 || len(labels) != oddKeys+1+9 || labels["key9999"] != "9999" || labels["a.b.c"] != "x" {
		t.Errorf("%d metrics, %d labels, level %v", len(values), len(labels), values["level"])
	}
	linesStored(t, s, id)
}

// linesStored checks the lines around the odd ones.
func linesStored(t *testing.T, s store.Reader, id string) {
	t.Helper()
	texts := make(map[string]int)
	for cursor := ""; ; {
		page, next, err := s.Lines(t.Context(), store.LineQuery{Run: id}, cursor, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			texts[l.Text[:min(len(l.Text), 6)]]++
			if strings.HasPrefix(l.Text, "xxx") && !l.Truncated && len(l.Text) != longLine {
				t.Errorf("the long line has %d bytes, and is not said to be cut", len(l.Text))
			}
		}
		if cursor = next; len(page) == 0 {
			break
		}
	}
	for _, text := range []string{"before", "after", "xxxxxx", "word w", `{"leve`} {
		if texts[text] == 0 {
			t.Errorf("no line begins with %q: %v", text, texts)
		}
	}
}
