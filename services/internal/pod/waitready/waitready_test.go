package waitready_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod/waitready"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	got, err := waitready.Parse([]string{"--within=1m0s", "--every=2s", "--timeout=3s", "--successes=4", "tcp://a:1", "http://b:2/c"})
	want := waitready.Settings{Within: time.Minute, Every: 2 * time.Second, Timeout: 3 * time.Second, Successes: 4, Targets: []string{"tcp://a:1", "http://b:2/c"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, args := range map[string][]string{
		"no target": nil, "no address": {"a:1"}, "another way to ask": {"udp://a:1"}, "no time": {"--every=0s", "tcp://a:1"}, "no option": {"--x", "tcp://a:1"},
	} {
		if _, err := waitready.Parse(args); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func quick(targets ...string) waitready.Settings {
	return waitready.Settings{Targets: targets, Within: 10 * time.Second, Every: time.Millisecond, Timeout: time.Second, Successes: 1}
}

func TestItWaitsUntilAProbeIsContentAsOftenAsAskedFor(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := asked.Add(1); n < 3 || n == 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	s := quick(server.URL + "/ping")
	s.Successes = 2
	if err := waitready.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 6 {
		t.Errorf("asked %d times, want 6: bad, bad, good, bad, good, good", n)
	}
}

func TestItWaitsForAllTargets(t *testing.T) {
	t.Parallel()
	closed := port.Addr(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	s := quick("tcp://"+server.Listener.Addr().String(), "tcp://"+closed, server.URL)
	s.Within = 50 * time.Millisecond
	err := waitready.Run(t.Context(), s)
	if err == nil || !strings.HasPrefix(err.Error(), "2 of 3 did not answer within 50ms; the first of them is tcp://"+closed) {
		t.Errorf("got %v", err)
	}
}

func TestItStopsWhenItIsTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := waitready.Run(ctx, quick("tcp://127.0.0.1:1")); err == nil {
		t.Error("it says that all is ready")
	}
}
