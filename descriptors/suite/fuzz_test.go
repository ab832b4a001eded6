package suite_test

import (
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	"github.com/benchmark-ai/bai/descriptors/sweep"
)

// FuzzParse checks the promises for every text: no panic, a plan or a reason, and cells with
// their own IDs and names whose texts Parse takes.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		head + entry("one", "plain.toml") + entry("two", "swept.toml", "[suite.entries.values]", "size = 3"),
		head + "order = 'random'\nseed = 1\n" + entry("one", "plain.toml", "repetitions = 2") + entry("two", "swept.toml", "warmup = 1"),
		"suite = { name = 'a', entries = [{ name = 'b', descriptor = 'plain.toml', values = { hardware.cpus = 1 } }] }\n",
		head + entry("one", "plain.toml", "[suite.entries.values]", "'a.b' = []", "[[suite.entries.values.output.metrics]]", "name = 'x'"),
		head + "scheduling = '* * * * *'\n[suite.schedule]\nend = '2001-01-01'\n" + entry("one", "swept.toml"),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		full, _ := suite.Embed("suite.toml", text, []suite.Source{
			{Name: "plain.toml", File: "plain.toml", Text: []byte(plain)}, {Name: "swept.toml", File: "swept.toml", Text: []byte(swept)},
		})
		_, _ = suite.References("suite.toml", text)
		d, p, faults := suite.Parse(parser.Parser{MaxRuns: 500}, "suite.toml", full)
		if bad := len(faults.Errors()) > 0; bad != (p == nil) || bad != (d == nil) {
			t.Fatalf("plan %v, descriptor %v, faults %v", p, d, faults)
		}
		if p != nil {
			wantUsablePlan(t, p)
		}
	})
}

func wantUsablePlan(t *testing.T, p *sweep.Plan) {
	t.Helper()
	for i := range p.Runs() {
		if p.Ordinal(p.Run(i)) != i {
			t.Errorf("run %d has ordinal %d", i, p.Ordinal(p.Run(i)))
		}
	}
	ids, names := make(map[string]bool), make(map[string]bool)
	for i := range p.Cells() {
		c := p.Cell(i)
		if ids[c.ID] || names[c.Name] || len(c.ID) != 12 {
			t.Errorf("cell %d is %q with ID %q", i, c.Name, c.ID)
		}
		ids[c.ID], names[c.Name] = true, true
		if one, faults := parser.Parse("cell.toml", p.Descriptor(i)); one == nil || one.Sweep != nil {
			t.Errorf("cell %d: %v\n%s", i, faults, p.Descriptor(i))
		}
	}
}

// BenchmarkParse reads a suite of as many entries as are taken, each of which is checked.
func BenchmarkParse(b *testing.B) {
	text, _ := suite.Embed("suite.toml", []byte(head+manyEntries(suite.MaxEntries)), []suite.Source{{Name: "plain.toml", File: "plain.toml", Text: []byte(plain)}})
	b.ReportAllocs()
	for b.Loop() {
		if _, p, faults := suite.Parse(parser.Parser{}, "suite.toml", text); p == nil {
			b.Fatal(faults)
		}
	}
}
