package reporttest

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Suite is what a parser is held to, beside the expectations of its own tests.
type Suite struct {
	Kind   report.Kind
	Own    []string // captures that the parser recognises
	Others []string // texts that it does not recognise
	Open   string   // how a document of the tool begins, as `{"results": [`
	Cuts   []Cut
}

// Cut is a capture of which a test parses beginnings. The report of one that is ok has the headlines of the whole capture.
type Cut struct {
	File       string
	End        string   // a beginning without the last of these words is not ok
	NoHeadline bool     // nor has it a headline
	Bytes      bool     // it may end within a line
	Also       []string // names of metrics that are headlines as long as the rest of the capture is missing
}

// Run runs the suite. It measures memory: no other test may run at once.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	t.Run("output of the tool is recognised, and no other", s.testLooks)
	t.Run("a text without output of the tool is empty", s.testEmpty)
	t.Run("a text that ends anywhere is not ok with another headline", s.testCuts)
	t.Run("many brackets take no long time", s.testBrackets)
	t.Run("an endless text takes no more memory than it may", s.testMemory)
}

func (s Suite) testLooks(t *testing.T) {
	for _, file := range s.Own {
		if !s.Kind.Looks([]byte(Capture(t, file))) {
			t.Errorf("%s is not recognised", file)
		}
	}
	for _, text := range append(s.Others, "", "hello\n", "\x00\xff") {
		if s.Kind.Looks([]byte(text)) {
			t.Errorf("%.60q is recognised", text)
		}
	}
}

func (s Suite) testEmpty(t *testing.T) {
	for _, text := range []string{"", "\n", " \r\n\t", "hello\nworld\n", "\x00\xff\n", "\uFEFF"} {
		if r := Parse(t, s.Kind, text); r.State != report.Empty {
			t.Errorf("%q: %s", text, State(r))
		}
	}
}

func (s Suite) testBrackets(t *testing.T) {
	for _, text := range []string{"[", "{\"", "[\n", "{\"a\":[", "[1,", "\"{", "<a>"} {
		Parse(t, s.Kind, strings.Repeat(text, 2000))
	}
	for _, text := range []string{s.Open, "\n" + s.Open} {
		Parse(t, s.Kind, strings.Repeat(text, 400))
	}
}

// testMemory reads texts that do not fit into the memory that a parser may take.
func (s Suite) testMemory(t *testing.T) {
	if s.Kind.Document {
		r, err := s.Kind.Parse(&repeated{text: " ", left: report.MaxDocument + 1}, report.Options{})
		if err != nil || State(r) != "empty it has more than 64 MiB" {
			t.Errorf("a document over the limit: %s, error %v", State(r), err)
		}
		return
	}
	const size, most = 3 << 20, 2 << 20
	var runs strings.Builder
	for _, file := range s.Own {
		runs.WriteString(Capture(t, file))
	}
	for name, text := range map[string]string{"a line": "x", "words": "hello 1 2 3\n", "runs": runs.String()} {
		before := liveMemory()
		in := &repeated{text: text, left: size}
		r, err := s.Kind.Parse(in, report.Options{})
		if err != nil || s.Kind.Check(r) != nil {
			t.Errorf("%s: %v, %v", name, err, s.Kind.Check(r))
		}
		if used := in.memory - before; used > most {
			t.Errorf("%s: %d bytes of memory at the end of %d bytes of text, want %d at most", name, used, size, most)
		}
	}
}

// repeated reads a text again and again, until left bytes are read.
type repeated struct {
	text   string
	at     int
	left   int
	memory int64 // that was live at the end
}

// Read leaves the memory as it is where the text is a blank, for large texts: a parser only counts their bytes.
func (r *repeated) Read(p []byte) (n int, err error) {
	p = p[:min(len(p), r.left)]
	if r.left -= len(p); len(p) == 0 {
		r.memory = liveMemory()
		return 0, io.EOF
	}
	for n = len(p); r.text != " " && len(p) > 0; {
		part := copy(p, r.text[r.at:])
		p, r.at = p[part:], (r.at+part)%len(r.text)
	}
	return n, nil
}

func liveMemory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no memory has so much
}

func (s Suite) testCuts(t *testing.T) {
	for _, c := range s.Cuts {
		t.Run(c.File, func(t *testing.T) { c.test(t, s.Kind) })
	}
}

func (c Cut) test(t *testing.T, k report.Kind) {
	t.Helper()
	text := Capture(t, c.File)
	end := strings.LastIndex(text, c.End) + len(c.End)
	if c.End == "" {
		end = 0
	}
	want := headlines(Parse(t, k, text))
	for _, at := range places(text, c.Bytes) {
		r := Parse(t, k, text[:at])
		got := headlines(r, c.Also...)
		switch {
		case r.State == report.OK && at < end:
			t.Errorf("cut at %d of %d: ok", at, len(text))
		case r.State == report.OK && !slices.Equal(got, want) && len(got) == len(headlines(r)):
			t.Errorf("cut at %d of %d: ok with the headlines %q, want %q", at, len(text), got, want)
		case c.NoHeadline && at < end && len(got) > 0:
			t.Errorf("cut at %d of %d: %s with the headlines %q", at, len(text), State(r), got)
		}
	}
}

// headlines returns the headlines of a report but those of some names, without the state.
func headlines(r report.Report, but ...string) (all []string) {
	for _, m := range r.Metrics {
		if m.Headline && !slices.Contains(but, m.Name) {
			all = append(all, fmt.Sprint(m.Name, m.Labels, " ", m.Value, m.Unit))
		}
	}
	return all
}
