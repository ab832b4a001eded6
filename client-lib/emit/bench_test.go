package emit_test

import (
	"path/filepath"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/emit"
)

// BenchmarkValue measures the cost of a call for the benchmark, with the writer's time
// beside it. It reports the dropped share: a dropped line costs less.
func BenchmarkValue(b *testing.B) {
	variants := map[string]func(e *emit.Emitter, i int){
		"a value":         func(e *emit.Emitter, i int) { e.Value("loss", 0.2534+float64(i)) },
		"unit and step":   func(e *emit.Emitter, i int) { e.Value("loss", 0.2534, emit.Unit("1"), emit.Step(i)) },
		"a label as well": func(e *emit.Emitter, i int) { e.Value("loss", 0.2534, emit.Step(i), emit.Label("gpu", "0")) },
		"a count":         func(e *emit.Emitter, i int) { e.Count("images", int64(i)) },
		"a map of two":    func(e *emit.Emitter, i int) { _ = e.Emit(map[string]any{"loss": 0.2534, "step": i}) },
	}
	for name, call := range variants {
		b.Run(name, func(b *testing.B) {
			e := open(b, emit.Settings{}, "BENCHMARK_AI_FILE", filepath.Join(b.TempDir(), "metrics"))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				call(e, i)
			}
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkValueFromManyGoroutines is the same where all processors emit.
func BenchmarkValueFromManyGoroutines(b *testing.B) {
	e := open(b, emit.Settings{}, "BENCHMARK_AI_FILE", filepath.Join(b.TempDir(), "metrics"))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			e.Value("loss", 0.2534)
		}
	})
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
}
