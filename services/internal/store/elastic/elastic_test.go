package elastic_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

// TestOnARealElasticsearch runs every suite that needs a server on one.
func TestOnARealElasticsearch(t *testing.T) {
	server := elasticsearch.Start(t)
	t.Run("contract", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) storetest.Store {
			t.Helper()
			return open(t, server, elastic.Settings{})
		})
	})
	for name, test := range map[string]func(t *testing.T, server *elasticsearch.Server){
		"what is odd loses nothing else and grows no mapping":          testEdgeCases,
		"a document that is refused loses nothing else":                testRefused,
		"setting up again changes nothing":                             testSetup,
		"settings that change have an effect, and that is said":        testSettings,
		"what a newer version has written is refused, with the remedy": testNewer,
		"what an older version has set up is brought to this one":      testOlder,
		"documents of every version are read":                          testVersions,
		"a log is followed without gaps whatever is refreshed when":    testFollow,
		"old months are forgotten whole, and others are not":           testForget,
		"both stores answer alike":                                     testEquivalence,
		"what runs come to is there for dashboards, once":              testResultDocs,
		"incidents are there for dashboards, as they are now":          testIncidentRecords,
		"points cost as many requests however many there are":          testPointRequests,
		"points that a kill has cut are missing until they are whole":  testCutPoints,
		"many who put points of one run leave those of one revision":   testConcurrentPoints,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
	t.Run("what was acknowledged is there after a crash, and nothing twice", testCrash)
}

// open opens an empty store with a short refresh, and removes it after the test.
func open(tb testing.TB, server *elasticsearch.Server, s elastic.Settings) *elastic.Store {
	tb.Helper()
	if s.Prefix == "" {
		s.Prefix = newPrefix(tb, server)
	}
	s.Addresses = []string{server.URL}
	if s.Refresh == 0 {
		s.Refresh = 40 * time.Millisecond
	}
	store, err := elastic.Open(s)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return store
}

// newPrefix returns the prefix of indices that are removed with the test.
func newPrefix(tb testing.TB, server *elasticsearch.Server) string {
	tb.Helper()
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	name := "t" + hex.EncodeToString(b)
	tb.Cleanup(func() {
		ctx := context.WithoutCancel(tb.Context())
		sendRequest(ctx, tb, http.MethodDelete, server.URL+"/"+name+"-*", "")
		sendRequest(ctx, tb, http.MethodDelete, server.URL+"/_index_template/"+name+"-*", "")
	})
	return name
}

// search returns the documents of an index in the order that a query names, with all that was stored.
func search(t *testing.T, index, query string) (sources []map[string]any) {
	t.Helper()
	sendRequest(t.Context(), t, http.MethodPost, index+"/_refresh", "")
	var found struct {
		Hits struct {
			Hits []struct {
				Source map[string]any `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	check(t, json.Unmarshal(sendRequest(t.Context(), t, http.MethodGet, index+"/_search?"+query, ""), &found))
	for _, h := range found.Hits.Hits {
		sources = append(sources, h.Source)
	}
	return sources
}

// sendRequest speaks to the server itself, and returns its answer.
func sendRequest(ctx context.Context, tb testing.TB, method, url, body string) []byte {
	tb.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewBufferString(body))
	if err != nil {
		tb.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-ndjson")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		tb.Fatal(err)
	}
	if resp.StatusCode >= http.StatusBadRequest && resp.StatusCode != http.StatusNotFound {
		tb.Fatalf("%s %s: %s: %s", method, url, resp.Status, b)
	}
	return b
}

// eventually polls until done, for two minutes.
func eventually(t *testing.T, description string, done func() (bool, error)) {
	t.Helper()
	var err error
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if ok, err = done(); ok && err == nil {
			return
		}
	}
	t.Fatalf("%s: waited five minutes in vain: %v", description, err)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ulidOf returns a run's ID of the nth second of 2026.
func ulidOf(n int) string { return fmt.Sprintf("01kdvr%04x00000000000000%02x", n, n%256) }
