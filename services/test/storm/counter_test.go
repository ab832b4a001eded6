package storm_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// tick is how often a benchmark that counts writes.
const tick = 20 * time.Millisecond

// count is the benchmark: it prints and emits the numbers from 1 to n, so many a
// second, none given means at once. With pipe it emits them through the FIFO of
// the original client library, as metric f, else as n.
func count(n int, rate, pipe string) error {
	emit, err := emitter(pipe)
	if err != nil {
		return err
	}
	perSecond, _ := strconv.Atoi(rate) // zero is no limit
	begun := time.Now()
	for done := 0; done < n; {
		due := n
		if perSecond > 0 {
			due = min(n, int(time.Since(begun).Seconds()*float64(perSecond)))
		}
		if due > done {
			if err := errors.Join(printNumbers(done+1, due), emit(done+1, due)); err != nil {
				return err
			}
			done = due
		}
		time.Sleep(tick)
	}
	return nil
}

// printNumbers prints the lines of numbers.
func printNumbers(from, to int) error {
	var text []byte
	for i := from; i <= to; i++ {
		text = fmt.Appendf(text, "n=%d\n", i)
	}
	_, err := os.Stdout.Write(text)
	return err
}

// emitter returns a function that emits the samples of numbers.
func emitter(pipe string) (func(from, to int) error, error) {
	if pipe != "" {
		return piper()
	}
	f, err := os.OpenFile(os.Getenv(pod.EnvFile), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	return func(from, to int) error {
		var text []byte
		for i := from; i <= to; i++ {
			text = fmt.Appendf(text, "{\"n\": %d}\n", i)
		}
		_, err := f.Write(text)
		return err
	}, err
}

// piper returns a function that writes samples to the FIFO, in order. Without a reader it
// blocks.
func piper() (func(from, to int) error, error) {
	f, err := os.OpenFile(os.Getenv(pod.EnvFIFO), os.O_WRONLY, 0)
	return func(from, to int) error {
		for i := from; i <= to; {
			_, err := fmt.Fprintf(f, "{\"f\": %d}\n", i)
			switch {
			case errors.Is(err, syscall.EPIPE):
				time.Sleep(tick)
			case err != nil:
				return err
			default:
				i++
			}
		}
		return nil
	}, err
}
