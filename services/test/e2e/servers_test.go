package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
	"github.com/benchmark-ai/bai/services/test/testbed/kafka"
)

// servers are those that the platforms of this run of the package work with.
var servers = &serverPool{}

// isLongForm says whether all suites run, in their long form.
func isLongForm() bool {
	return os.Getenv(testbed.EnvReal) != "" && os.Getenv(testbed.EnvShort) == ""
}

// serverPool are real servers where testbed.EnvReal is set, begun when the first test
// needs them and there until the last has ended; else there are none, and
// platforms use those that are embedded.
//
// All platforms share the Elasticsearch, each with indices of its own. Topics
// have the same names in all platforms, so that a broker serves one at a time: it
// is emptied, and lent to the next. There are as many as platforms at once.
type serverPool struct {
	packageCleanup

	poolMu      sync.Mutex
	store       *elasticsearch.Server
	freeBrokers []*kafka.Server
}

// needsReal skips a test that compares real servers with those that are embedded.
func needsReal(t *testing.T) {
	t.Helper()
	if os.Getenv(testbed.EnvReal) == "" {
		t.Skip("needs Kafka and Elasticsearch: set BAI_TEST_REAL=1 to have them started (Docker, or Java 17 and Maven)")
	}
}

// flags are those with which a platform works with the servers, and with the
// settings that its other arguments name.
func (l *serverPool) flags(t *testing.T, args []string) []string {
	t.Helper()
	if os.Getenv(testbed.EnvReal) == "" {
		return nil
	}
	store, broker := l.elasticsearch(t), l.broker(t)
	folder := t.TempDir() // whose files are read as one
	write(t, filepath.Join(folder, "servers.toml"), fmt.Sprintf(`[kafka]
session = "1500ms"
topics = { partitions = 2, replication = 1 }
[elasticsearch]
prefix = %q
refresh = "100ms"
`, store.Prefix(t)))
	if i := slices.Index(args, "--config"); i >= 0 {
		write(t, filepath.Join(folder, "test.toml"), read(t, args[i+1]))
	}
	return []string{"--kafka", broker.Addr, "--elasticsearch", store.URL, "--config", folder}
}

// elasticsearch returns the one that all tests share.
func (l *serverPool) elasticsearch(t *testing.T) *elasticsearch.Server {
	t.Helper()
	l.poolMu.Lock()
	defer l.poolMu.Unlock()
	if l.store == nil {
		l.store = elasticsearch.Start(l.tb(t))
	}
	return l.store
}

// broker returns an empty one, which is the test's until it ends.
func (l *serverPool) broker(t *testing.T) *kafka.Server {
	t.Helper()
	b := l.takeBroker()
	if b == nil {
		b = kafka.OwnUnkilled(l.tb(t))
	} else {
		kafkatest.Empty(t, b.Addr)
	}
	t.Cleanup(func() { // after the platform, which begins later
		l.poolMu.Lock()
		defer l.poolMu.Unlock()
		l.freeBrokers = append(l.freeBrokers, b)
	})
	return b
}

// takeBroker returns an unused broker, or nil.
func (l *serverPool) takeBroker() *kafka.Server {
	l.poolMu.Lock()
	defer l.poolMu.Unlock()
	if len(l.freeBrokers) == 0 {
		return nil
	}
	b := l.freeBrokers[0]
	l.freeBrokers = l.freeBrokers[1:]
	return b
}

// packageCleanup ends resources that all tests of the package share.
type packageCleanup struct {
	mu       sync.Mutex
	cleanups []func()
	errs     []error
}

// tb returns a TB with which a test starts a resource that ends with the package.
func (l *packageCleanup) tb(t *testing.T) testing.TB {
	t.Helper()
	return packageTB{t, l}
}

// end ends all resources, the last begun first, and returns the errors.
func (l *packageCleanup) end() error {
	for _, end := range slices.Backward(l.cleanups) {
		end()
	}
	return errors.Join(l.errs...)
}

// packageTB is a test as long as something begins, and the package once the test
// is over.
type packageTB struct {
	testing.TB

	cleanup *packageCleanup
}

// Cleanup implements testing.TB.
func (b packageTB) Cleanup(end func()) {
	b.cleanup.mu.Lock()
	defer b.cleanup.mu.Unlock()
	b.cleanup.cleanups = append(b.cleanup.cleanups, end)
}

// Context implements testing.TB.
func (b packageTB) Context() context.Context { return context.WithoutCancel(b.TB.Context()) }

// Errorf implements testing.TB.
func (b packageTB) Errorf(format string, args ...any) {
	b.cleanup.mu.Lock()
	defer b.cleanup.mu.Unlock()
	b.cleanup.errs = append(b.cleanup.errs, fmt.Errorf(format, args...))
}
