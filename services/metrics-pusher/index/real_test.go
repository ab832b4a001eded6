package index_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
	"sync"
	"syscall"
	"testing"
	"time"

	es "github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esutil"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
	realkafka "github.com/benchmark-ai/bai/services/test/testbed/kafka"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// Environment variables of the long form.
const (
	envDocs  = "BAI_INDEX_DOCS"  // how many documents memory is watched over; 300,000 by default, 60,000 in the short form
	envPairs = "BAI_INDEX_PAIRS" // how often index and a bare BulkIndexer take turns; 4 by default, never in the short form
	envPair  = "BAI_INDEX_PAIR"  // of how many documents a turn is; 300,000 by default
)

// key is the platform's.
const key = "0123456789abcdef"

// The peak memory at the end may be growth times that after a fifth of the documents, plus slack MiB for the timing of the garbage
// collector.
const (
	growth = 1.25
	slack  = 24
)

// TestIndexOnRealServers has the program itself bring samples from a topic that
// was filled before into Elasticsearch.
func TestIndexOnRealServers(t *testing.T) {
	broker, server := realkafka.Start(t), elasticsearch.Start(t)
	docs, pairs, pair := number(t, envDocs, testbed.Size(300_000, 60_000)), number(t, envPairs, testbed.Size(4, 0)), number(t, envPair, 300_000)
	if pairs == 0 {
		pair = 0
	}
	p := &harness{program: buildProgram(t), broker: broker.Addr, server: server.URL}
	p.fill(t, max(docs, pair))
	if pairs > 0 {
		t.Run("it reaches four fifths of a bare BulkIndexer with the same documents", func(t *testing.T) { p.race(t, pair, pairs) })
	}
	t.Run("its memory does not grow with what goes through", func(t *testing.T) {
		rate, peaks := p.index(t, docs)
		t.Logf("indexed %d documents, %.0f/s; peaks of memory in MiB after each tenth: %d", docs, rate, peaks)
		if early, last := peaks[1], peaks[len(peaks)-1]; float64(last) > growth*float64(early)+slack {
			t.Errorf("it needs %d MiB after all and needed %d after a fifth", last, early)
		}
	})
}

// number returns the number in an environment variable.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(name))
	if os.Getenv(name) == "" {
		return otherwise
	}
	if err != nil || n < each*10 || n%each != 0 {
		if name != envPairs || err != nil || n < 1 {
			t.Fatalf("%s=%q: want a number", name, os.Getenv(name))
		}
	}
	return n
}

// buildProgram returns the path of the program.
func buildProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := process.Build(dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "metrics-pusher")
}

// harness is the program, and the servers that it works with.
type harness struct {
	program, broker, server string

	bus    *kafka.Bus
	filled int
}

// message returns the nth message of a topic that several runs write to.
func message(n int) event.Metrics {
	const runs = 8
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := fmt.Sprintf("01kdvr0000000000000000000%d", n%runs)
	m := event.Metrics{
		Header: event.NewHeader(event.Derive(id, strconv.Itoa(n)), id, "pets", "ann", at),
		Stream: event.Stream{Role: "benchmark", Pod: "0b5a3c1e-7d6f-4a2b-9c8d-1e2f3a4b5c6d", Container: "benchmark", Kind: event.StreamMetrics},
	}
	for i := range each {
		seq := int64(n/runs*each + i)
		v := event.Sample{Seq: seq * 60, Name: []string{"loss", "accuracy", "speed"}[i%3], Unit: "s", Time: at.UnixNano() + seq*1_000_003}
		v.Set(float64(seq) * 1.25)
		m.Samples = append(m.Samples, v)
	}
	return m
}

// fill publishes n samples.
func (p *harness) fill(t *testing.T, n int) {
	t.Helper()
	settings := kafka.Settings{Brokers: []string{p.broker}, Key: []byte(key), Topics: kafka.TopicSettings{Partitions: 4, Replication: 1}}
	if err := kafka.CreateTopics(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.bus, err = kafka.NewBus(settings, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.bus.Close)
	index.New(index.Settings{}, index.Deps{Bus: p.bus}) // whose groups are rewound
	for m := range n / each {
		if err := p.bus.Publish(t.Context(), message(m)); err != nil {
			t.Fatal(err)
		}
	}
	p.filled = n
}

// race runs index and a bare BulkIndexer in turn.
func (p *harness) race(t *testing.T, docs, pairs int) {
	t.Helper()
	bare := documents(t, docs)
	var rounds []raceRound
	p.indexBare(t, bare) // warms the server up
	for n := range pairs {
		indexed, _ := p.index(t, docs)
		rounds = append(rounds, raceRound{indexed, p.indexBare(t, bare)})
		t.Logf("pair %d: indexed %.0f/s, bare %.0f/s, ratio %.3f", n+1, indexed, rounds[n].bare, indexed/rounds[n].bare)
	}
	best, conclusive, err := evaluateRace(rounds)
	t.Logf("best ratio %.3f of %d pairs", best, pairs)
	switch {
	case err == nil:
	case conclusive:
		t.Error(err)
	default:
		t.Logf("%v: %s=400000 %s=4 measures more, on a machine with nothing else to do", err, envPair, envPairs)
	}
}

// index runs the program over the first docs samples of the topic and all that follow, into an Elasticsearch of its own, and returns how
// many a second were stored from the first on, and the peak of its memory in MiB after each tenth of them.
func (p *harness) index(t *testing.T, docs int) (float64, []int) {
	t.Helper()
	if err := p.bus.Rewind(t.Context()); err != nil {
		t.Fatal(err)
	}
	prefix, health := p.prefix(t), port.Addr(t)
	file := filepath.Join(t.TempDir(), "settings.toml")
	text := fmt.Sprintf("health = %q\n[log]\nlevel = \"warn\"\n[kafka]\nbrokers = [%q]\nkey_file = %q\nsession = \"10s\"\n[elasticsearch]\naddresses = [%q]\nprefix = %q\n", health, p.broker, file+".key", p.server, prefix)
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.WriteFile(file+".key", []byte(key), 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(p.program, "index", "--config", file) // the test stops it
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			t.Errorf("end the program: %v", err)
		}
	}()
	return p.waitIndexed(t, "http://"+health+"/metrics", cmd.Process.Pid, prefix, docs)
}

// waitIndexed waits until docs documents are stored. A document that is handled twice, after consumers were rebalanced, counts once.
func (p *harness) waitIndexed(t *testing.T, url string, pid int, prefix string, docs int) (rate float64, peaks []int) {
	t.Helper()
	var first time.Time
	already, messages := 0, docs/each
	for end := time.Now().Add(20 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		n := handledMessages(url)
		if n == 0 {
			continue
		}
		if first.IsZero() {
			first, already = time.Now(), n
		}
		for len(peaks) < 10 && n*10 >= messages*(len(peaks)+1) {
			peaks = append(peaks, peak(t, pid))
		}
		elapsed := time.Since(first).Seconds()
		if n >= messages && p.countDocuments(t, prefix) >= docs {
			return float64((messages-already)*each) / elapsed, peaks
		}
	}
	t.Fatal("it does not come to an end")
	return 0, nil
}

// handledMessages returns how many messages of samples the program has handled.
func handledMessages(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0 // not yet
	}
	defer func() { _ = resp.Body.Close() }()
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), `bai_events_heard_total{group="metrics-pusher-metrics",topic="bai.metrics"} `); ok {
			n, _ := strconv.ParseFloat(text, 64)
			return int(n)
		}
	}
	return 0
}

// peak returns the most memory that a process ever had, in MiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			n, _ := strconv.Atoi(f[1])
			return n >> 10
		}
	}
	t.Fatal("the system does not say how much memory a process had")
	return 0
}

// countDocuments returns the number of documents in the store.
func (p *harness) countDocuments(t *testing.T, prefix string) int {
	t.Helper()
	p.do(t, http.MethodPost, prefix+"-metrics-*/_refresh", nil)
	var got struct{ Count int }
	p.do(t, http.MethodGet, prefix+"-metrics-*/_count", &got)
	if got.Count > p.filled {
		t.Errorf("%d documents are there, of %d", got.Count, p.filled)
	}
	return got.Count
}

// prefix returns that of indices which go with the test.
func (p *harness) prefix(t *testing.T) string {
	t.Helper()
	prefix := fmt.Sprintf("index%d", time.Now().UnixNano())
	t.Cleanup(func() {
		p.do(t, http.MethodDelete, prefix+"-*", nil)
		p.do(t, http.MethodDelete, "_index_template/"+prefix+"-*", nil)
	})
	return prefix
}

func (p *harness) do(t *testing.T, method, path string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, p.server+"/"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && into != nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s: %v", method, path, resp.Status, err)
	}
}

// document is one action of a bulk request and its document.
type document struct {
	id, routing string
	source      []byte
}

// documents returns the documents that the store makes of the first docs samples.
func documents(t *testing.T, docs int) []document {
	t.Helper()
	var mu sync.Mutex
	var all []document
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		body, _ := io.ReadAll(r.Body)
		if !strings.HasSuffix(r.URL.Path, "/_bulk") {
			_, _ = io.WriteString(w, "{}")
			return
		}
		lines := bytes.Split(bytes.TrimSpace(body), []byte("\n"))
		mu.Lock()
		defer mu.Unlock()
		for i := 0; i < len(lines) && strings.Contains(r.URL.Path, "-metrics-"); i += 2 {
			var action struct {
				Create struct {
					ID      string `json:"_id"`
					Routing string `json:"routing"`
				} `json:"create"`
			}
			_ = json.Unmarshal(lines[i], &action)
			all = append(all, document{action.Create.ID, action.Create.Routing, lines[i+1]})
		}
		_, _ = io.WriteString(w, `{"items":[`+strings.TrimSuffix(strings.Repeat(`{"create":{"status":201}},`, len(lines)/2), ",")+`]}`)
	}))
	defer server.Close()
	s, err := elastic.Open(elastic.Settings{Addresses: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for n := range docs / each {
		m := message(n)
		origin := store.Origin{Run: m.Run, Attempt: m.Attempt, Stream: m.Stream}
		if err := s.AppendSamples(t.Context(), []store.Samples{{Origin: origin, Samples: m.Samples}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) != docs {
		t.Fatalf("%d documents, want %d", len(all), docs)
	}
	return all
}

// indexBare has a bare BulkIndexer create documents, and returns how many a second.
func (p *harness) indexBare(t *testing.T, docs []document) float64 {
	t.Helper()
	prefix := p.prefix(t)
	s, err := elastic.Open(elastic.Settings{Addresses: []string{p.server}, Prefix: prefix})
	if err == nil {
		_, err = s.Setup(t.Context())
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	client, err := es.NewClient(es.Config{Addresses: []string{p.server}})
	if err != nil {
		t.Fatal(err)
	}
	bi, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: client, Index: prefix + "-metrics-2026.01"})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for _, d := range docs {
		err = errors.Join(err, bi.Add(t.Context(), esutil.BulkIndexerItem{Action: "create", DocumentID: d.id, Routing: d.routing, Body: bytes.NewReader(d.source)}))
	}
	if err := errors.Join(err, bi.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	elapsed := time.Since(start)
	if s := bi.Stats(); s.NumCreated != uint64(len(docs)) {
		t.Fatalf("%+v, want %d created", s, len(docs))
	}
	return float64(len(docs)) / elapsed.Seconds()
}
