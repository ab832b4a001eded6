package emit_test

import (
	"encoding/json"
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/benchmark-ai/bai/client-lib/emit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns an emitter in an environment of nothing but the pairs env. It is
// closed at the end of the test.
func open(tb testing.TB, s emit.Settings, env ...string) *emit.Emitter {
	tb.Helper()
	s.Getenv = getenv(env...)
	if s.Stderr == nil {
		s.Stderr = io.Discard
	}
	e, err := emit.Open(s)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	return e
}

// getenv returns an environment of the pairs env.
func getenv(env ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(env); i += 2 {
		m[env[i]] = env[i+1]
	}
	return func(k string) string { return m[k] }
}

func jsonNumber(s string) json.Number { return json.Number(s) }
