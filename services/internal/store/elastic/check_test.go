package elastic_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// fakeVersionServer is a server that returns the versions of templates and indices.
type fakeVersionServer struct {
	template, index int
	other           string // a template of another owner
	requests        []string
}

// ServeHTTP implements http.Handler.
func (v *fakeVersionServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	w.Header().Set("Content-Type", "application/json")
	v.requests = append(v.requests, r.Method+" "+r.URL.Path)
	meta := func(n int) string { return fmt.Sprintf(`"mappings":{"_meta":{"bai":{"version":%d}}}`, n) }
	if strings.HasSuffix(r.URL.Path, "/_mapping") {
		_, _ = fmt.Fprintf(w, `{"bai-runs":{%s},"bai-logs-2026.01":{%s}}`, meta(schema.Version), meta(v.index))
		return
	}
	templates := []string{fmt.Sprintf(`{"name":"bai-%s","index_template":{"template":{%s}}}`, v.other, meta(99))}
	for _, i := range schema.Indices() {
		templates = append(templates, fmt.Sprintf(`{"name":"bai-%s","index_template":{"template":{%s}}}`, i.Name, meta(v.template)))
	}
	_, _ = fmt.Fprintf(w, `{"index_templates":[%s]}`, strings.Join(templates, ","))
}

func TestACheckCostsLittleAndIsRemembered(t *testing.T) {
	for name, tt := range map[string]struct {
		server fakeVersionServer
		again  int // requests that a second check costs
		want   string
	}{
		"what is as it is to be":       {fakeVersionServer{template: schema.Version, index: 1}, 0, ""},
		"templates that nobody made":   {fakeVersionServer{template: 0, index: 1}, 2, "bai admin store setup"},
		"an index of a newer version":  {fakeVersionServer{template: schema.Version, index: 99}, 2, "index bai-logs-2026.01 has version 99"},
		"templates of a newer version": {fakeVersionServer{template: 99, index: 1}, 2, "has version 99 and this program knows up to"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.server.other = "x-runs" // of the prefix bai-x
			server := httptest.NewServer(&tt.server)
			defer server.Close()
			s, err := elastic.Open(elastic.Settings{Addresses: []string{server.URL}})
			check(t, err)
			defer s.Close() //nolint:errcheck // only read
			for _, requests := range []int{2, 2 + tt.again} {
				wantFault(t, s.Check(t.Context()), tt.want)
				if len(tt.server.requests) != requests {
					t.Errorf("asked %q, want %d requests in all", tt.server.requests, requests)
				}
			}
		})
	}
}

// wantFault checks the error of a check, empty for none.
func wantFault(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("check: %v, want %q", err, want)
	}
	if strings.Contains(want, "99") && !errors.Is(err, schema.ErrNewer) {
		t.Errorf("check: %v, want %v", err, schema.ErrNewer)
	}
}
