package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPodsOfKubernetesReadObjectsByWayOfTheGatewayAlone(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the gateway was asked for "+r.URL.Path+" with "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(gateway.Close)
	to, err := url.Parse(gateway.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		gateway          *httputil.ReverseProxy
		below            string
		secret, ofTheRun string
	}{
		"where the gateway is here":      {httputil.NewSingleHostReverseProxy(to), "/v1/runs/{run}", "404", "200 the gateway was asked for /v1/runs/r1/objects/a with Bearer t"},
		"where the gateway is elsewhere": {nil, "/secret", "200 of another team", "404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDoor(t, tt.gateway)
			if got := strings.TrimPrefix(d.objectsURL(), d.url()); got != tt.below {
				t.Errorf("pods are told %q, want %q", got, tt.below)
			}
			for path, want := range map[string]string{"/secret/objects/a": tt.secret, "/v1/runs/r1/objects/a": tt.ofTheRun} {
				if got := get(t, d.url()+path); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %s, want %s", path, got, want)
				}
			}
		})
	}
}

// newDoor returns a door with an object of another team, and serves it until the test
// ends.
func newDoor(t *testing.T, gateway *httputil.ReverseProxy) *door {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "objects"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "objects", "a"), []byte("of another team"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{listener: l, secret: "secret", objects: root, gateway: gateway}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = root.Close()
	})
	return d
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer t")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(resp.Status, " OK", "", 1) + " " + string(text)
}
