// Package storm checks the platform's promise that accepted data are stored once,
// whatever is killed or unavailable meanwhile. The faults are real: kill -9 of the
// services' own processes, of real Kafka and real Elasticsearch.
//
// A storm takes about a minute and kills each victim in turn, once; if EnvSpan is set
// (10m), it repeats for that time. EnvAway (60s) is the length of the servers' outages, a
// third of a minute by default. With testbed.EnvShort the load is smaller.
package storm_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// Environment variables.
const (
	EnvSpan = "BAI_STORM_SPAN" // how long a storm goes on at least
	EnvAway = "BAI_STORM_AWAY" // how long servers are away

	envCount, envRate, envPipe = "STORM_COUNT", "STORM_RATE", "STORM_PIPE" // of a benchmark that counts
)

// bin is the folder of the programs under test.
var bin string

// TestMain is also the benchmark that is run: it counts.
func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv(envCount)); err == nil {
		if err := count(n, os.Getenv(envRate), os.Getenv(envPipe)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(func() int {
		if os.Getenv("BAI_TEST_REAL") == "" {
			return m.Run() // all are skipped
		}
		dir, err := os.MkdirTemp("", "bai-storm-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		bin = dir
		if err := process.Build(bin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// needsReal skips a test unless real servers are requested.
func needsReal(t *testing.T) {
	t.Helper()
	if os.Getenv("BAI_TEST_REAL") == "" {
		t.Skip("takes minutes: `make test-real` runs it")
	}
}

// duration returns the time that a variable says, or another.
func duration(t *testing.T, name string, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}
