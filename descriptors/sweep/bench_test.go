package sweep_test

import (
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
)

// expand asks a plan for all cells, their texts and the order of their runs.
func expand(p *sweep.Plan) (bytes int) {
	for i := range p.Cells() {
		bytes += len(p.Descriptor(i)) + len(p.Cell(i).Name)
	}
	for i := range p.Runs() {
		bytes += p.Run(i).Repetition
	}
	return bytes
}

// BenchmarkExpand expands 10,000 cells of a plan that was read. The bar is 100 ms.
func BenchmarkExpand(b *testing.B) {
	p, faults := sweep.Read(parser.Parser{}, "f.toml", bigSweep("order = 'random'\nrepetitions = 5"))
	if p == nil {
		b.Fatal(faults)
	}
	b.ReportAllocs()
	for b.Loop() {
		expand(p)
	}
}

// BenchmarkRead reads a sweep of 10,000 cells and checks all its values.
func BenchmarkRead(b *testing.B) {
	text := bigSweep("order = 'random'\nrepetitions = 5")
	b.ReportAllocs()
	for b.Loop() {
		if p, faults := sweep.Read(parser.Parser{}, "f.toml", text); p == nil || p.Cells() != 10_000 {
			b.Fatal(faults)
		}
	}
}

// BenchmarkReadAccepted reads a sweep of 10,000 cells that a platform has accepted.
func BenchmarkReadAccepted(b *testing.B) {
	text := bigSweep("order = 'random'\nrepetitions = 5")
	b.ReportAllocs()
	for b.Loop() {
		if p, faults := sweep.Read(parser.Parser{Accepted: true}, "f.toml", text); p == nil {
			b.Fatal(faults)
		}
	}
}
