package elasticsearch_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

func TestAServerKeepsItsDataWhenItIsKilled(t *testing.T) {
	s := elasticsearch.Own(t)
	do(t, http.MethodPut, s.URL+"/kept/_doc/1", `{"a":1}`)
	s.Kill(t)
	s.Restart(t)
	if got := do(t, http.MethodGet, s.URL+"/kept/_doc/1", ""); !strings.Contains(got, `"found":true`) {
		t.Errorf("it answers %s, want the document", got)
	}
}

func do(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
