package elastic_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// BenchmarkWriteSamples measures the driver alone: the server accepts every document.
func BenchmarkWriteSamples(b *testing.B) {
	const each = 1000
	created := `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"create":{"status":201}},`, each), ",") + `]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "metrics-other/_bulk"):
			_, _ = io.WriteString(w, created)
		case strings.HasSuffix(r.URL.Path, "_bulk"):
			_, _ = io.WriteString(w, `{"items":[{"create":{"status":201}}]}`)
		default:
			_, _ = io.WriteString(w, "{}")
		}
	}))
	defer server.Close()
	s, err := elastic.Open(elastic.Settings{Addresses: []string{server.URL}})
	if err != nil {
		b.Fatal(err)
	}
	batch := store.Samples{Origin: storetest.NewOrigin("r", "p")}
	for i := range each {
		batch.Samples = append(batch.Samples, storetest.NewSample(int64(i), []string{"loss", "accuracy"}[i%2], 1.25))
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.AppendSamples(b.Context(), []store.Samples{batch}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*each)/b.Elapsed().Seconds(), "samples/s")
}
