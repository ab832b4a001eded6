package parser_test

import (
	"bytes"
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// FuzzParseWith checks the promises for every text and every override: no panic, the
// effective text is read as the same descriptor, and faults have their positions in the
// text or in the override.
func FuzzParseWith(f *testing.F) {
	seeds := overrides("hardware.gpus=2", "output.metrics.0.units=s", "output.metrics[1]={ name = 'x' }", `env.vars."A.B"=it's`, "info.labels={}", "info.description=", "output.metrics=", "data.sources=[]",
		"a.b.c=1", "a=[1, 2]", "hardware.distributed.num_instances=4", "info.labels.x=\n", "x.y.z[0][0]=\"", "a..b=1")
	for _, text := range files(f, "../examples/*.toml") {
		for _, o := range seeds {
			f.Add(text, o.Path, o.Value)
		}
	}
	for _, text := range []string{"a = { b.c = 1, b.d = 2 }", "[[a]]\n[a.b.c]\n[[a]]\n", "[x]\na.b = 1\n[x.a.c]\nd = 1\n", "a = [ 1, [2, # c\n3], ]", "[a] # c", "\ufeffa = 1\r\n[b]\r\n"} {
		for _, o := range seeds {
			f.Add([]byte(text), o.Path, o.Value)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, path, value string) {
		before := bytes.Clone(text)
		set := []parser.Override{{Path: path, Value: value}, {Path: "info.labels.x", Value: "y"}}
		d, effective, faults := parser.ParseWith("f.toml", text, set)
		if !bytes.Equal(before, text) {
			t.Error("the text has changed")
		}
		sameAsEffective(t, d, effective, faults)
		for _, fault := range faults {
			wantPlace(t, fault, text, set)
		}
	})
}

// wantPlace checks that a fault lies inside its file.
func wantPlace(t *testing.T, fault parser.Fault, text []byte, set []parser.Override) {
	t.Helper()
	one := parser.Faults{fault}
	switch fault.File {
	case "f.toml":
		wantOrdered(t, text, one)
	case "--set " + set[1].Path:
		wantOrdered(t, []byte(set[1].Value), one)
	case "--set " + set[0].Path:
		wantOrdered(t, []byte(set[0].Value), one)
	default:
		t.Errorf("%v has an unknown file", fault)
	}
}
