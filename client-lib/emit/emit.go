// Package emit sends a benchmark's measurements to the platform.
//
//	defer emit.Close()
//	for step := range steps {
//		loss := train()
//		emit.Value("loss", loss, emit.Unit("1"), emit.Step(step))
//	}
//
// The environment names the target of the values. It is read at the first value:
//
//	BENCHMARK_AI                     stdout or fifo; stdout if empty
//	BENCHMARK_AI_FILE                the metrics file; where it is set, lines are appended to it unless BENCHMARK_AI says stdout
//	BENCHMARK_AI_FIFO_FILEPATH       the FIFO; /tmp/benchmark-ai/fifo if empty
//	BENCHMARK_AI_FIFO_MAX_WAIT_TIME  seconds to wait for the FIFO before a warning; 10 if empty
//
// In a run's pod all variables are set, and lines go to the metrics file. Elsewhere they
// are printed.
//
// Each call makes one line, a JSON object of metric → number. Lines are written whole, so
// that several processes may write to one file, and in the order of the calls. The file's
// lines say when the call was made ("@time"). A line is buffered for 10 ms at most, and
// printed at once where it goes to standard output; lines that are not written when the
// program ends without Close are lost, so a program that ends by os.Exit calls Close
// before.
//
// No call waits for longer than 100 ms, and none panics: if lines come faster than they
// can be written, or the file cannot be written, they are buffered, then dropped and
// counted, and Close reports the count. Printed lines are the exception: to keep their
// order with the program's own output, a call waits as long as standard output takes, as
// any print does.
package emit

import (
	"context"
	"sync"
	"time"
)

// std opens the emitter that the functions of the package use.
//
//nolint:gochecknoglobals // a benchmark calls emit.Value without making anything before
var std = sync.OnceValue(func() *Emitter {
	e, err := Open(Settings{})
	if err != nil {
		return newBrokenEmitter(err)
	}
	return e
})

// Emit emits values, in the order of their names, as one line. A value is a number of any
// of Go's types, a bool (1 or 0), a json.Number, or a string that holds a decimal number,
// NaN or an infinity. Names that begin with @ are the format's own.
//
// The error gives the reason for which the line will not arrive: no values, a value that
// is not a number, ErrDropped or ErrClosed. It may be ignored: dropped lines are counted,
// and Close reports them.
func Emit(values map[string]any, opts ...Option) error { return std().Emit(values, opts...) }

// Value emits one value.
func Value(name string, v float64, opts ...Option) { std().Value(name, v, opts...) }

// Count emits one whole number.
func Count(name string, n int64, opts ...Option) { std().Count(name, n, opts...) }

// Duration emits d in seconds, with s for its unit.
func Duration(name string, d time.Duration, opts ...Option) { std().Duration(name, d, opts...) }

// Flush returns when everything that was emitted before is written or dropped, or
// when ctx is done, which is its error.
func Flush(ctx context.Context) error { return std().Flush(ctx) }

// Close writes the buffered lines, in two seconds at most. It reports dropped lines on
// standard error and in its error. Lines that are emitted after Close are dropped.
func Close() error { return std().Close() }
