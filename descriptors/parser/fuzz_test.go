package parser_test

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// FuzzParse checks the promises for every text: no panic, faults in order and inside the
// text, each explained and with its position and code, a descriptor or an error, and
// working methods of a descriptor.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"../examples/*.toml", "testdata/original/*.toml", "testdata/bad/*.toml"} {
		for _, text := range files(f, pattern) {
			f.Add(text)
		}
	}
	f.Add([]byte("\"ends inside its last character: 뿻"))
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		d, faults := parser.Parse("f.toml", text)
		if !bytes.Equal(before, text) {
			t.Error("the text has changed")
		}
		if (d == nil) != (faults.Err() != nil) {
			t.Errorf("descriptor %v, faults %v", d, faults)
		}
		wantOrdered(t, text, faults)
		again, _ := parser.Parse("f.toml", text)
		if diff := cmp.Diff(d, again); diff != "" && !bytes.Contains(text, []byte("nan")) {
			t.Errorf("read twice: %s", diff)
		}
		if same, err := parser.Diff(text, text); err == nil && len(same) > 0 {
			t.Errorf("differs from itself: %v", same)
		}
		if d != nil {
			wantUsable(t, d)
		}
	})
}

func wantOrdered(t *testing.T, text []byte, faults parser.Faults) {
	t.Helper()
	lines := bytes.Split(text, []byte("\n"))
	last := parser.Fault{Line: 1, Column: 1}
	for _, f := range faults {
		if f.Line < last.Line || f.Line == last.Line && f.Column < last.Column {
			t.Errorf("%v comes after %v", f, last)
		}
		if f.Line > len(lines) || f.Column < 1 || f.Column > utf8.RuneCount(lines[f.Line-1])+1 {
			t.Errorf("%v lies outside of the text", f)
		}
		if _, ok := parser.Explain(f.Code); !ok || f.Message == "" {
			t.Errorf("%v is not explained", f)
		}
		last = f
	}
}

func wantUsable(t *testing.T, d *descriptors.Descriptor) {
	t.Helper()
	if _, _, err := d.Command(); err != nil {
		t.Error(err)
	}
	if d.Output != nil && slices.ContainsFunc(d.Output.Metrics, func(m descriptors.Metric) bool { return m.Regexp() == nil }) {
		t.Error("a pattern that does not compile")
	}
	if d.Hardware.Processes() < 1 {
		t.Error("no process")
	}
}
