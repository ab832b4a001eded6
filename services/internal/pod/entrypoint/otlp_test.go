//go:build linux

package entrypoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/entrypoint"
)

func TestAProgramFindsTheCollectorWhereItListens(t *testing.T) {
	const elsewhere = "http://127.0.0.1:12345/v1/metrics"
	for name, tt := range map[string]struct{ configured, listens, want string }{
		"where the plan says, where nothing else is known": {pod.DefaultOTLP, "", pod.DefaultOTLP},
		"where the collector says that it is":              {pod.DefaultOTLP, elsewhere, elsewhere},
		"not where the user says another":                  {"http://10.0.0.1:4318", elsewhere, "http://10.0.0.1:4318"},
		"nowhere, where nobody asked for it":               {"", elsewhere, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, entrypoint.Settings{Dir: listening(t, tt.listens), Args: []string{"/bin/sh", "-c", `printf %s "$` + pod.EnvOTLPEndpoint + `"`}})
			if tt.configured != "" {
				r.Env = append(r.Env, pod.EnvOTLPEndpoint+"="+tt.configured)
			}
			if e := r.waitForExit(t); e.Code != 0 || r.stdout.String() != tt.want {
				t.Errorf("exit code %d, and it finds %q, want %q", e.Code, r.stdout.String(), tt.want)
			}
		})
	}
}

// listening is the volume of a pod whose collector listens at url; empty for
// nowhere.
func listening(t *testing.T, url string) string {
	t.Helper()
	dir := t.TempDir()
	if url == "" {
		return dir
	}
	file := pod.PathIn(dir, pod.OTLPURL)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(url), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
