package elasticsearch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	es "github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esutil"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
	realkafka "github.com/benchmark-ai/bai/services/test/testbed/kafka"
)

const (
	each       = 1000 // samples of a message
	runs       = 8
	partitions = 4
)

// BenchmarkIndexedOverBare has the index service bring samples from a topic that
// was filled before into Elasticsearch, and a bare BulkIndexer the very same
// documents from memory, in turns, and reports both rates and their ratio. Run
// it with -benchtime 1x. BAI_BENCH_SAMPLES says how many, 400,000 by default.
func BenchmarkIndexedOverBare(b *testing.B) {
	broker, server := realkafka.Start(b), elasticsearch.Start(b)
	total := 400_000
	if n, err := strconv.Atoi(os.Getenv("BAI_BENCH_SAMPLES")); err == nil {
		total = n
	}
	bus := filled(b, broker.Addr, total)
	docs := documents(b, total)
	turns := []string{"", "index", "bare", "bare", "index"} // the first warms the server up
	const rounds = 2
	for b.Loop() {
		var indexed, bare time.Duration
		var heap uint64
		for round, turn := range turns {
			prefix := fmt.Sprintf("bench%d", time.Now().UnixNano())
			s := opened(b, elastic.Settings{Addresses: []string{server.URL}, Prefix: prefix})
			runtime.GC()
			switch turn {
			case "index":
				took, h := throughIndex(b, bus, s, total, round == 1)
				indexed, heap = indexed+took, max(heap, h)
			case "bare":
				bare += throughBulkIndexer(b, server.URL, prefix, docs)
			default:
				throughBulkIndexer(b, server.URL, prefix, docs)
			}
			drop(b, server.URL+"/"+prefix+"-*")
			drop(b, server.URL+"/_index_template/"+prefix+"-*")
		}
		b.ReportMetric(float64(rounds*total)/indexed.Seconds(), "indexed/s")
		b.ReportMetric(float64(rounds*total)/bare.Seconds(), "bare/s")
		b.ReportMetric(bare.Seconds()/indexed.Seconds(), "ratio")
		b.ReportMetric(float64(heap)/(1<<20), "heap-MiB") // beyond what the benchmark itself holds
	}
}

func opened(b *testing.B, s elastic.Settings) *elastic.Store {
	b.Helper()
	st, err := elastic.Open(s)
	if err == nil {
		err = st.Setup(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return st
}

func drop(b *testing.B, url string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodDelete, url, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		err = resp.Body.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// message returns the nth message.
func message(n int) event.Metrics {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := fmt.Sprintf("01kdvr0000000000000000000%d", n%runs)
	m := event.Metrics{
		Header: event.NewHeader(event.Derive(id, strconv.Itoa(n)), id, "pets", "ann", at),
		Source: event.Source{Role: "benchmark", Pod: "0b5a3c1e-7d6f-4a2b-9c8d-1e2f3a4b5c6d", Container: "benchmark", Stream: event.StreamMetrics},
	}
	for i := range each {
		seq := int64(n/runs*each + i)
		v := event.Sample{Seq: seq * 60, Name: []string{"loss", "accuracy", "speed"}[i%3], Unit: "s", Time: at.UnixNano() + seq*1_000_003}
		v.Set(float64(seq) * 1.25)
		m.Samples = append(m.Samples, v)
	}
	return m
}

// filled returns a bus whose topic of samples holds so many.
func filled(b *testing.B, addr string, total int) *kafka.Bus {
	b.Helper()
	settings := kafka.Settings{Brokers: []string{addr}, Key: []byte("0123456789abcdef"), Topics: kafka.TopicSettings{Partitions: partitions, Replication: 1}}
	if err := kafka.CreateTopics(b.Context(), settings); err != nil {
		b.Fatal(err)
	}
	bus, err := kafka.NewBus(settings, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bus.Close)
	for n := range total / each {
		if err := bus.Publish(b.Context(), message(n)); err != nil {
			b.Fatal(err)
		}
	}
	return bus
}

// counted is a store that says when all samples are stored.
type counted struct {
	*elastic.Store

	left atomic.Int64
	done chan struct{}
}

// AppendSamples implements index.Store.
func (c *counted) AppendSamples(ctx context.Context, batches []store.Samples) error {
	if err := c.Store.AppendSamples(ctx, batches); err != nil {
		return err
	}
	n := int64(0)
	for _, b := range batches {
		n += int64(len(b.Samples))
	}
	if left := c.left.Add(-n); left <= 0 && left+n > 0 {
		close(c.done)
	}
	return nil
}

// throughIndex returns how long the service takes, and the largest heap. Before
// the first time a real broker has no group yet that could be rewound.
func throughIndex(b *testing.B, bus *kafka.Bus, s *elastic.Store, total int, first bool) (time.Duration, uint64) {
	b.Helper()
	c := &counted{Store: s, done: make(chan struct{})}
	c.left.Store(int64(total))
	parts := index.New(index.Settings{}, index.Deps{Bus: bus, Store: c})
	if err := bus.Rewind(b.Context()); err != nil && !first {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	begun := time.Now()
	go func() { ended <- run.All(ctx, parts) }()
	heap, before := uint64(0), inUse()
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		select {
		case <-tick.C:
			heap = max(heap, inUse()-min(before, inUse()))
			continue
		case <-c.done:
			tick.Stop()
		}
		break
	}
	took := time.Since(begun)
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.Logf("indexed: %d in %s", total, took)
	return took, heap
}

// inUse returns how large the heap is.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// document is one action of a bulk request and its document.
type document struct {
	id, routing string
	source      []byte
}

// documents returns what the store makes of all messages.
func documents(b *testing.B, total int) []document {
	b.Helper()
	var mu sync.Mutex
	var docs []document
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
			docs = append(docs, document{action.Create.ID, action.Create.Routing, lines[i+1]})
		}
		_, _ = io.WriteString(w, `{"items":[`+strings.TrimSuffix(strings.Repeat(`{"create":{"status":201}},`, len(lines)/2), ",")+`]}`)
	}))
	defer server.Close()
	s := opened(b, elastic.Settings{Addresses: []string{server.URL}})
	for n := range total / each {
		m := message(n)
		origin := store.Origin{Run: m.Run, Attempt: m.Attempt, Source: m.Source}
		if err := s.AppendSamples(b.Context(), []store.Samples{{Origin: origin, Samples: m.Samples}}); err != nil {
			b.Fatal(err)
		}
	}
	if len(docs) != total {
		b.Fatalf("%d documents, want %d", len(docs), total)
	}
	return docs
}

// throughBulkIndexer returns how long a bare BulkIndexer takes.
func throughBulkIndexer(b *testing.B, url, prefix string, docs []document) time.Duration {
	b.Helper()
	client, err := es.NewClient(es.Config{Addresses: []string{url}})
	if err != nil {
		b.Fatal(err)
	}
	bi, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: client, Index: prefix + "-metrics-2026.01"})
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	for _, d := range docs {
		err = errors.Join(err, bi.Add(b.Context(), esutil.BulkIndexerItem{Action: "create", DocumentID: d.id, Routing: d.routing, Body: bytes.NewReader(d.source)}))
	}
	if err := errors.Join(err, bi.Close(b.Context())); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begun)
	if s := bi.Stats(); s.NumCreated != uint64(len(docs)) {
		b.Fatalf("%+v, want %d created", s, len(docs))
	}
	b.Logf("bare: %d in %s", len(docs), took)
	return took
}
