package emit

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Environment variables.
const (
	envBackend = "BENCHMARK_AI"
	envFile    = "BENCHMARK_AI_FILE"
	envFIFO    = "BENCHMARK_AI_FIFO_FILEPATH"
	envWait    = "BENCHMARK_AI_FIFO_MAX_WAIT_TIME"
)

const (
	defaultFIFO = "/tmp/benchmark-ai/fifo"
	defaultWait = 10 * time.Second
	pipeBuf     = 4096 // bytes that a pipe takes whole, among those of other writers
)

// destination lines go.
type destination struct {
	path   string        // empty: standard output
	fifo   bool          // it must be there, and takes no more than pipeBuf bytes at once
	wait   time.Duration // how long it may be missing before a message
	stamp  bool          // lines say when they were made
	create bool
}

// choose decides by the environment where lines go.
func choose(getenv func(string) string) (destination, error) {
	given, file := getenv(envBackend), getenv(envFile)
	backend := strings.ToLower(given)
	switch {
	case backend != "" && backend != "stdout" && backend != "fifo":
		return destination{}, fmt.Errorf("%s: %q is none of stdout and fifo", envBackend, given)
	case file != "" && backend != "stdout":
		return destination{path: file, stamp: true, create: true}, nil
	case backend != "fifo":
		return destination{}, nil
	}
	w := destination{path: getenv(envFIFO), fifo: true, wait: defaultWait}
	if w.path == "" {
		w.path = defaultFIFO
	}
	if v := getenv(envWait); v != "" {
		s, err := strconv.ParseFloat(v, 64)
		if err != nil || !(s >= 0 && s < 1e9) {
			return destination{}, fmt.Errorf("%s: %q is no number of seconds", envWait, v)
		}
		w.wait = time.Duration(s * float64(time.Second))
	}
	return w, nil
}

// chunk returns the beginning of b that is to be written at once: whole lines, and
// no more of them than limit bytes hold.
func chunk(b []byte, limit int) []byte {
	if len(b) <= limit {
		return b
	}
	if i := bytes.LastIndexByte(b[:limit], '\n'); i >= 0 {
		return b[:i+1]
	}
	return b[:bytes.IndexByte(b, '\n')+1]
}

// remainder returns the unwritten part of b after its first n bytes were written and
// writing stopped. A cut line is written again as a whole: readers ignore its first part,
// which has no closing brace. If cut is true, the caller ends that part with a line feed
// first.
func remainder(b []byte, n int) (rest []byte, cut bool) {
	switch {
	case n == 0 || b[n-1] == '\n':
		return b[n:], false
	case b[n] == '\n':
		return b[n+1:], true
	default:
		return b[bytes.LastIndexByte(b[:n], '\n')+1:], true
	}
}

// pause returns how long to wait before the next attempt, after one has failed and
// the wait before it was this long.
func pause(before time.Duration) time.Duration {
	return min(max(2*before, 5*time.Millisecond), 500*time.Millisecond)
}
