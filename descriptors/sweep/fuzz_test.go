package sweep_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
)

// FuzzRead checks the promises for every text: no panic, a plan or a reason, cells with
// their own IDs and names whose texts Parse takes, and each run once in the order.
func FuzzRead(f *testing.F) {
	addFiles(f, "../examples/*.toml", "../parser/testdata/bad/sweep*.toml")
	f.Add([]byte(withSize + "[sweep]\norder='random'\nwarmup=2\nrepetitions=3\n[sweep.product]\nsize=['a\"', '\\', '']\n'env.vars'=[{A='1'}, {}]\n'env.vars2.\"a b\"'=[1]\n[[sweep.explicit]]\nsize=1\n"))
	f.Add([]byte(withSize + "[[output.metrics]]\nname='{{size}}'\nunits=''\npattern='{{{{{{{size}}([0-9])'\n[sweep.zip]\nsize=[1.50, 2026-12-01]\n'output.metrics[0].units'=['s', \"\"\"\nm\"\"\"]\n"))
	f.Add([]byte("sweep.zip={size=[1]}\n" + withSize + "[[sweep.exclude]]\n[sweep.product]\n'hardware.distributed'=[{num_instances=3}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		parser := parser.Parser{MaxRuns: 1000}
		p, faults := sweep.Read(parser, "f.toml", text)
		if !bytes.Equal(before, text) {
			t.Error("the text has changed")
		}
		d, _ := parser.Parse("f.toml", text)
		if hasSweep := d != nil && d.Sweep != nil; (p != nil) != hasSweep {
			t.Fatalf("plan %v, descriptor %v, faults %v", p, d, faults)
		}
		if p == nil {
			return
		}
		wantEachRunOnce(t, p)
		wantUsableCells(t, p)
	})
}

// addFiles adds the files of some patterns to the corpus.
func addFiles(f *testing.F, patterns ...string) {
	f.Helper()
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
}

func wantUsableCells(t *testing.T, p *sweep.Plan) {
	t.Helper()
	const most = 50 // cells whose text is read
	ids, names := map[string]bool{}, map[string]bool{}
	for i := range p.Cells() {
		c := p.Cell(i)
		if ids[c.ID] || len(c.ID) != 12 {
			t.Errorf("cell %d has ID %q", i, c.ID)
		}
		if names[c.Name] || c.Name == "" || len(c.Name) > 120 {
			t.Errorf("cell %d has the name %q", i, c.Name)
		}
		ids[c.ID], names[c.Name] = true, true
		if i >= most {
			continue
		}
		if d, faults := parser.Parse("cell.toml", p.Descriptor(i)); d == nil || d.Sweep != nil {
			t.Errorf("cell %d: %v\n%s", i, faults, p.Descriptor(i))
		}
	}
}
