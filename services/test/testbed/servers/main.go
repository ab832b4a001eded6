// Command servers starts one Kafka and one Elasticsearch for the suites of a
// check, prints how they are reached, as JSON on one line, and ends them when its
// standard input ends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
	"github.com/benchmark-ai/bai/services/test/testbed/kafka"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

// serve keeps the servers until the standard input ends.
func serve() error {
	o := &fakeTB{}
	var (
		all    sync.WaitGroup
		broker *kafka.Server
		store  *elasticsearch.Server
	)
	all.Go(func() { broker = kafka.Start(o) })
	all.Go(func() { store = elasticsearch.Start(o) })
	all.Wait()
	err := o.failed()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(map[string]string{"kafka": broker.Addr, "elasticsearch": store.URL})
	}
	if err == nil {
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	o.end()
	return errors.Join(err, o.failed())
}

// fakeTB stands for a test: it lasts as long as the program.
type fakeTB struct {
	testing.TB

	mu       sync.Mutex
	cleanups []func()
	errs     []error
}

// Helper implements testing.TB.
func (*fakeTB) Helper() {}

// Context implements testing.TB.
func (*fakeTB) Context() context.Context { return context.Background() }

// Cleanup implements testing.TB.
func (o *fakeTB) Cleanup(end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cleanups = append(o.cleanups, end)
}

// Errorf implements testing.TB.
func (o *fakeTB) Errorf(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.errs = append(o.errs, fmt.Errorf(format, args...))
}

// Fatalf implements testing.TB: it ends the goroutine, as that of a test.
func (o *fakeTB) Fatalf(format string, args ...any) {
	o.Errorf(format, args...)
	runtime.Goexit()
}

// Fatal implements testing.TB.
func (o *fakeTB) Fatal(args ...any) { o.Fatalf("%s", fmt.Sprint(args...)) }

// Logf implements testing.TB.
func (*fakeTB) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (o *fakeTB) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.errs...)
}

// end ends all servers, the last first.
func (o *fakeTB) end() {
	for _, end := range slices.Backward(o.cleanups) {
		end()
	}
}
