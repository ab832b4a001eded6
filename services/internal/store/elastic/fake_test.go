package elastic_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// fakeServer is a server whose answers to bulk requests a test chooses. It answers other requests as if all indices were set up.
type fakeServer struct {
	bulk func(w http.ResponseWriter, ids []string)

	fault string // the error type that the server returns for a document

	mu     sync.Mutex
	stored []string // IDs of lines in the order in which they were created
}

func (f *fakeServer) kind() string { return cmp.Or(f.fault, "document_parsing_exception") }

// ServeHTTP implements http.Handler.
func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	if !strings.HasSuffix(r.URL.Path, "/_bulk") {
		_, _ = io.WriteString(w, "{}")
		return
	}
	var ids []string
	for i, line := range strings.Split(strings.TrimSpace(string(body)), "\n") {
		var action struct {
			Create struct {
				ID string `json:"_id"`
			} `json:"create"`
		}
		if i%2 == 0 && json.Unmarshal([]byte(line), &action) == nil {
			ids = append(ids, action.Create.ID)
		}
	}
	if strings.Contains(r.URL.Path, "-sources-") {
		f.answer(w, ids, func(string) int { return http.StatusCreated })
		return
	}
	f.bulk(w, ids)
}

// answer returns a status for each document.
func (f *fakeServer) answer(w http.ResponseWriter, ids []string, status func(id string) int) {
	var items []any
	for _, id := range ids {
		s := status(id)
		if s == http.StatusCreated && strings.Count(id, ".") == 1 && !strings.Contains(id, "bai") {
			f.mu.Lock()
			f.stored = append(f.stored, id[strings.IndexByte(id, '.')+1:])
			f.mu.Unlock()
		}
		items = append(items, map[string]any{"create": map[string]any{"_id": id, "status": s, "error": map[string]any{"type": f.kind(), "reason": "because"}}})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": true, "items": items})
}

// store returns a store on the fake.
func (f *fakeServer) store(t *testing.T, s elastic.Settings) *elastic.Store {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	s.Addresses = []string{server.URL}
	opened, err := elastic.Open(s)
	check(t, err)
	t.Cleanup(func() { check(t, opened.Close()) })
	return opened
}

func someLines(n int) []store.Lines {
	b := store.Lines{Origin: storetest.NewOrigin("r", "p")}
	for i := range n {
		b.Lines = append(b.Lines, storetest.NewLine(int64(i), "x"))
	}
	return []store.Lines{b}
}

func TestWhatTheServerHasNoRoomForIsWrittenAgainInOrder(t *testing.T) {
	f, tries := &fakeServer{}, 0
	f.bulk = func(w http.ResponseWriter, ids []string) {
		tries++
		switch tries {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			f.answer(w, ids, func(id string) int {
				if id[strings.IndexByte(id, '.')+1:] > "2" {
					return http.StatusTooManyRequests
				}
				return http.StatusCreated
			})
		default:
			f.answer(w, ids, func(string) int { return http.StatusCreated })
		}
	}
	check(t, f.store(t, elastic.Settings{}).AppendLines(t.Context(), someLines(5)))
	if diff := gocmp.Diff([]string{"0", "1", "2", "3", "4"}, f.stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if tries != 3 {
		t.Errorf("%d requests, want 3", tries)
	}
}

func TestAServerThatStaysFullIsAwayAndRefusesNothing(t *testing.T) {
	f := &fakeServer{bulk: func(w http.ResponseWriter, _ []string) { w.WriteHeader(http.StatusTooManyRequests) }}
	begun := time.Now()
	err := f.store(t, elastic.Settings{}).AppendLines(t.Context(), someLines(1))
	if err == nil || errors.Is(err, store.ErrRefused) || time.Since(begun) > 2*time.Minute {
		t.Errorf("after %s: %v, want an error that asks to wait", time.Since(begun), err)
	}
}

func TestARefusedDocumentIsNamedAndTheOthersAreStored(t *testing.T) {
	f := &fakeServer{}
	f.bulk = func(w http.ResponseWriter, ids []string) {
		f.answer(w, ids, func(id string) int {
			switch {
			case strings.HasSuffix(id, ".2"):
				return http.StatusBadRequest
			case strings.HasSuffix(id, ".3"):
				return http.StatusConflict // it exists
			}
			return http.StatusCreated
		})
	}
	err := f.store(t, elastic.Settings{}).AppendLines(t.Context(), someLines(5))
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), ".2: Elasticsearch answers 400: document_parsing_exception: because") {
		t.Errorf("append: %v, want %v, which and why", err, store.ErrRefused)
	}
	if diff := gocmp.Diff([]string{"0", "1", "4"}, f.stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestAFaultThatIsNotTheDocumentsRefusesNothing(t *testing.T) {
	requests := 0
	f := &fakeServer{fault: "validation_exception"} // as many shards as the server may have
	f.bulk = func(w http.ResponseWriter, ids []string) {
		requests++
		f.answer(w, ids, func(string) int { return http.StatusBadRequest })
	}
	err := f.store(t, elastic.Settings{}).AppendLines(t.Context(), someLines(50))
	if err == nil || errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "validation_exception: because") {
		t.Errorf("append: %v, want why it has to wait", err)
	}
	if requests > 2 {
		t.Errorf("%d requests, want two: for all, and for the reason", requests)
	}
}

func TestARequestThatIsTooLargeIsHalved(t *testing.T) {
	f := &fakeServer{}
	f.bulk = func(w http.ResponseWriter, ids []string) {
		if len(ids) > 3 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		f.answer(w, ids, func(string) int { return http.StatusCreated })
	}
	check(t, f.store(t, elastic.Settings{}).AppendLines(t.Context(), someLines(9)))
	if len(f.stored) != 9 {
		t.Errorf("stored %q, want 9", f.stored)
	}
}

func TestRequestsUnderWayAreBounded(t *testing.T) {
	var now, most atomic.Int32
	f := &fakeServer{}
	f.bulk = func(w http.ResponseWriter, ids []string) {
		for n := now.Add(1); ; {
			old := most.Load()
			if n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		time.Sleep(time.Millisecond) // for concurrent requests to come
		now.Add(-1)
		f.answer(w, ids, func(string) int { return http.StatusCreated })
	}
	s := f.store(t, elastic.Settings{Writers: 2, BulkBytes: 2000})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			b := someLines(40)
			b[0].Origin.Pod = fmt.Sprint(i)
			if err := s.AppendLines(t.Context(), b); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() > 4 { // a request is over its size by a document at most, and sources are small
		t.Errorf("%d requests at once, want about 2", most.Load())
	}
}

func TestAServerThatIsAwayIsNamedAndRefusesNothing(t *testing.T) {
	s, err := elastic.Open(elastic.Settings{Addresses: []string{"http://127.0.0.1:1"}})
	check(t, err)
	_, runErr := s.Run(t.Context(), "r")
	_, _, linesErr := s.Lines(t.Context(), store.LineQuery{Run: "r"}, "", 1)
	for verb, err := range map[string]error{"append": s.AppendLines(t.Context(), someLines(1)), "create": s.CreateDoc(t.Context(), store.Doc{Kind: "k", Key: "k"}), "run": runErr, "lines": linesErr} {
		if err == nil || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "ask Elasticsearch at http://127.0.0.1:1: ") {
			t.Errorf("%s: %v, want where it is not", verb, err)
		}
	}
	check(t, s.Close())
}

func TestACallEndsWithItsContext(t *testing.T) {
	block := make(chan struct{})
	f := &fakeServer{bulk: func(http.ResponseWriter, []string) { <-block }}
	s := f.store(t, elastic.Settings{})
	t.Cleanup(func() { close(block) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.AppendLines(ctx, someLines(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append: %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestWhoWaitsForARunIsWokenByWhatIsWrittenAboutIt(t *testing.T) {
	f := &fakeServer{}
	f.bulk = func(w http.ResponseWriter, ids []string) {
		f.answer(w, ids, func(string) int { return http.StatusCreated })
	}
	s := f.store(t, elastic.Settings{})
	run, every, other := s.Changed("r"), s.Changed(""), s.Changed("other")
	check(t, s.AppendSamples(t.Context(), []store.Samples{{Origin: storetest.NewOrigin("r", "p"), Samples: []event.Sample{storetest.NewSample(1, "v", 1)}}}))
	<-run
	<-every
	select {
	case <-other:
		t.Error("who waits for another run is woken")
	default:
	}
}

func TestSettingsThatCannotBeRightAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	check(t, os.WriteFile(empty, nil, 0o600))
	const url = "http://127.0.0.1:9200"
	for name, tt := range map[string]struct {
		settings elastic.Settings
		want     string
	}{
		"no address":                {elastic.Settings{}, "elasticsearch.addresses: at least one is needed"},
		"an address without scheme": {elastic.Settings{Addresses: []string{"localhost:9200"}}, "want a URL such as"},
		"a password in an address":  {elastic.Settings{Addresses: []string{"http://u:p@h:9200"}}, "use username and password_file"},
		"a prefix with a pattern":   {elastic.Settings{Addresses: []string{url}, Prefix: "a*"}, "elasticsearch.prefix"},
		"a negative time":           {elastic.Settings{Addresses: []string{url}, Refresh: -1}, "must not be negative"},
		"a password of nowhere":     {elastic.Settings{Addresses: []string{url}, PasswordFile: "/nowhere"}, "read the password for Elasticsearch: open /nowhere"},
		"authorities of nowhere":    {elastic.Settings{Addresses: []string{url}, CAFile: "/nowhere"}, "read the authorities of Elasticsearch: open /nowhere"},
		"no authorities":            {elastic.Settings{Addresses: []string{url}, CAFile: empty}, "holds no certificate in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := elastic.Open(tt.settings); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("open: %v, want %q", err, tt.want)
			}
		})
	}
}
