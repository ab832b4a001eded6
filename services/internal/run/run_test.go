package run_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/service"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

func wait(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func TestTheFirstPartToEndEndsTheOthers(t *testing.T) {
	bad := errors.New("no more")
	err := run.UntilSignal(t.Context(), map[string]service.Runnable{
		"a": wait, "b": func(context.Context) error { return bad }, "c": wait,
	})
	if !errors.Is(err, bad) || !strings.HasPrefix(err.Error(), "b: ") {
		t.Errorf("UntilSignal: %v, want %v of b", err, bad)
	}
}

func TestASignalIsNoError(t *testing.T) {
	err := run.UntilSignal(t.Context(), map[string]service.Runnable{
		"a": wait,
		"b": func(ctx context.Context) error {
			if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
				return err
			}
			return wait(ctx)
		},
	})
	if err != nil {
		t.Errorf("UntilSignal: %v, want nil", err)
	}
}

// profilesAreForLoopback asks for profiles by names that lead to this machine, and by
// some that only a resolver of names would have lead here.
func profilesAreForLoopback(t *testing.T, addr string) {
	t.Helper()
	for host, want := range map[string]int{
		"localhost": 200, "localhost:80": 200, "127.0.0.2:80": 200, "[::1]:80": 200,
		"attacker.example.org": 403, "attacker.example.org:80": 403, "10.0.0.1": 403, "127.0.0.1.example.org": 403,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/debug/pprof/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // the content does not matter here
		if resp.StatusCode != want {
			t.Errorf("pprof asked as %s: %s, want %d", host, resp.Status, want)
		}
	}
}

func TestHealthSaysWhatIsNotReady(t *testing.T) {
	addr := port.Addr(t)
	var fault atomic.Pointer[error]
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run.Health(addr, map[string]run.Check{
			"kafka": func(context.Context) error {
				if err := fault.Load(); err != nil {
					return *err
				}
				return nil
			},
			"store": func(context.Context) error { return nil },
		}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("bai_events 1\n")) }))(ctx)
	}()
	if code, body := get(t, addr, "/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("healthz: %d %q", code, body)
	}
	if code, body := get(t, addr, "/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("readyz: %d %q", code, body)
	}
	if code, body := get(t, addr, "/metrics"); code != 200 || body != "bai_events 1\n" {
		t.Errorf("metrics: %d %q", code, body)
	}
	if code, body := get(t, addr, "/debug/pprof/"); code != 200 || !strings.Contains(body, "goroutine") {
		t.Errorf("pprof: %d %q", code, body)
	}
	profilesAreForLoopback(t, addr)
	fault.Store(new(errors.New("no broker answers")))
	if code, body := get(t, addr, "/readyz"); code != 503 || body != "kafka: no broker answers\n" {
		t.Errorf("readyz: %d %q", code, body)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped with %v, want nil", err)
	}
}

func TestHealthNotesWhatIsToBeKnownOfWhatIsReady(t *testing.T) {
	addr := port.Addr(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run.Health(addr, map[string]run.Check{
			"seals": func(context.Context) error { return run.NoteError("anybody is believed") },
			"store": func(context.Context) error { return nil },
		}, nil)(ctx)
	}()
	if code, body := get(t, addr, "/readyz"); code != 200 || body != "ready\nseals: anybody is believed\n" {
		t.Errorf("readyz: %d %q", code, body)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped with %v, want nil", err)
	}
}

func TestHealthWhosePortIsTakenEndsWithTheAddress(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	err = run.Health(l.Addr().String(), nil, nil)(t.Context())
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("Health: %v, want the address", err)
	}
}

func TestALogHasTheLevelThatWasAskedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		settings run.Log
		want     []string
		not      string
	}{
		"JSON from info by default": {run.Log{}, []string{`"msg":"told"`, `"level":"info"`}, "whispered"},
		"text for people":           {run.Log{Format: "console", Level: "debug"}, []string{"debug\twhispered", "info\ttold"}, "{"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log, err := tt.settings.New(&out)
			if err != nil {
				t.Fatal(err)
			}
			log.Debug("whispered")
			log.Info("told")
			for _, part := range tt.want {
				if !strings.Contains(out.String(), part) {
					t.Errorf("logged %q, want %q in it", out.String(), part)
				}
			}
			if strings.Contains(out.String(), tt.not) {
				t.Errorf("logged %q, want no %q in it", out.String(), tt.not)
			}
		})
	}
}

func TestALogThatCannotBeIsRefused(t *testing.T) {
	err := run.Log{Level: "loud", Format: "xml"}.Validate()
	for _, part := range []string{`log.level: "loud"`, `log.format: "xml"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Validate: %v, want %q in it", err, part)
		}
	}
	if _, err := (run.Log{Level: "loud"}).New(io.Discard); err == nil {
		t.Error("made a log of level loud")
	}
}

// get retries until the server answers.
func get(t *testing.T, addr, path string) (code int, body string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil && time.Now().Before(end) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // read to the end below
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
}
