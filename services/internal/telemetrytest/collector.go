// Package telemetrytest takes traces in place of an OpenTelemetry collector.
package telemetrytest

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector takes traces by OTLP over HTTP.
type Collector struct {
	URL string

	mu    sync.Mutex
	spans []*v1.Span
}

// Start starts a collector, which stops with the test.
func Start(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.receive(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	tb.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) receive(r *http.Request) error {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = z
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var req collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(text, &req); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range req.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			c.spans = append(c.spans, ss.GetSpans()...)
		}
	}
	return nil
}

// Spans are those that came so far of one run, or of all where run is empty, in
// the order in which they began.
func (c *Collector) Spans(run string) []*v1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*v1.Span
	for _, s := range c.spans {
		if run == "" || Attribute(s, "bai.run") == run {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b *v1.Span) int { return int(a.GetStartTimeUnixNano()) - int(b.GetStartTimeUnixNano()) }) //nolint:gosec // times of one test
	return out
}

// Attribute returns the text of an attribute of a span.
func Attribute(s *v1.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// Tree shows spans as what follows from what, a line for each: name, and
// milliseconds from the first one's start. Those whose cause is not among them
// come on the left. What follows from a span that was there again, under the same
// ID, is shown once.
func Tree(spans []*v1.Span) string {
	var b strings.Builder
	spanIDs, shown := make(map[string]bool), make(map[string]bool)
	for _, s := range spans {
		spanIDs[string(s.GetSpanId())] = true
	}
	var show func(parent *v1.Span, depth int)
	show = func(parent *v1.Span, depth int) {
		for _, s := range spans {
			if parent == nil && spanIDs[string(s.GetParentSpanId())] || parent != nil &&
				string(s.GetParentSpanId()) != string(parent.GetSpanId()) {
				continue
			}
			from := float64(s.GetStartTimeUnixNano()-spans[0].GetStartTimeUnixNano()) / 1e6
			fmt.Fprintf(&b, "%s%s  +%.1f ms, %.1f ms\n", strings.Repeat("  ", depth), s.GetName(), from,
				float64(s.GetEndTimeUnixNano()-s.GetStartTimeUnixNano())/1e6)
			if id := string(s.GetSpanId()); !shown[id] {
				shown[id] = true
				show(s, depth+1)
			}
		}
	}
	show(nil, 0)
	return b.String()
}
