package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Delays of a tokenServer.
const (
	firstToken     = 100 * time.Millisecond
	slowFirstToken = 3 * time.Second // of every fifth request
	nextToken      = 20 * time.Millisecond
	tokensOfAnswer = 11
)

// tokenServer is a server with OpenAI's API that streams tokens with known delays, and measures them.
type tokenServer struct {
	*httptest.Server

	mu      sync.Mutex
	answers []answer
}

// answer is what a server has measured of an answer.
type answer struct{ begin, first, last time.Time }

func newTokenServer(t *testing.T) *tokenServer {
	t.Helper()
	s := &tokenServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// complete answers a request. The first is that which opens the connection.
func (s *tokenServer) complete(w http.ResponseWriter, r *http.Request) {
	a := answer{begin: time.Now()}
	s.mu.Lock()
	number := len(s.answers)
	s.answers = append(s.answers, a)
	s.mu.Unlock()
	var request struct {
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	events := http.NewResponseController(w)
	send := func(text string) {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
		_ = events.Flush()
	}
	wait := firstToken
	if number > 0 && number%5 == 0 {
		wait = slowFirstToken
	}
	for i := range request.MaxTokens {
		<-time.After(wait)
		wait = nextToken
		if a.last = time.Now(); i == 0 {
			a.first = a.last
		}
		send(chunk(`"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]`))
	}
	send(chunk(fmt.Sprintf(`"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":%d,"total_tokens":%d}`, request.MaxTokens, request.MaxTokens+20)))
	send("[DONE]")
	s.mu.Lock()
	s.answers[number] = a
	s.mu.Unlock()
}

// chunk returns a piece of an answer.
func chunk(members string) string {
	return `{"id":"a","object":"chat.completion.chunk","created":1767323045,"model":"m",` + members + `}`
}

// measured returns the mean time to a first token and to a later one, and how long all answers took, in seconds.
func (s *tokenServer) measured(t *testing.T) (first, token, all float64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) != 11 {
		t.Fatalf("%d requests, want 11", len(s.answers))
	}
	counted := s.answers[1:]
	begin, end := counted[0].begin, counted[0].last
	for _, a := range counted {
		first += a.first.Sub(a.begin).Seconds() / float64(len(counted))
		token += a.last.Sub(a.first).Seconds() / float64((tokensOfAnswer-1)*len(counted))
		if a.last.After(end) {
			end = a.last
		}
	}
	return first, token, end.Sub(begin).Seconds()
}
