package emit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/benchmark-ai/bai/client-lib/emit"
)

// Outside of a pod the lines are printed.
func Example() {
	for step, loss := range []float64{0.9, 0.25} {
		emit.Value("loss", loss, emit.Unit("1"), emit.Step(step))
	}
	emit.Duration("epoch_time", 1500*time.Millisecond, emit.Label("gpu", "0"))
	if err := emit.Emit(map[string]any{"images": 1024, "accuracy": 0.91}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"loss": 0.9, "@step": 0, "@unit": "1"}
	// {"loss": 0.25, "@step": 1, "@unit": "1"}
	// {"epoch_time": 1.5, "@unit": "s", "@labels": {"gpu": "0"}}
	// {"accuracy": 0.91, "images": 1024}
}

// A separate emitter, with another environment and another clock.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "emit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "metrics")
	e, err := emit.Open(emit.Settings{
		Getenv: func(name string) string { return map[string]string{"BENCHMARK_AI_FILE": file}[name] },
		Now:    func() time.Time { return time.Unix(1767323045, 250000001) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	e.Count("images", 1024)
	if err := e.Close(); err != nil {
		fmt.Println(err)
	}
	b, err := os.ReadFile(file)
	fmt.Println(string(b[:len(b)-1]))
	fmt.Println(err)
	// Output:
	// {"images": 1024, "@time": 1767323045.250000001}
	// <nil>
}
