package collect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
)

// gateway is a fake gateway that takes artifacts.
type gateway struct {
	*httptest.Server

	mu       sync.Mutex
	received map[string]string // by path
	tries    int
	answer   func(tries int, path string) int // 0 means 201
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{received: map[string]string{}}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tries++
	status := http.StatusCreated
	if g.answer != nil {
		if s := g.answer(g.tries, r.URL.Path); s != 0 {
			w.WriteHeader(s)
			_, _ = io.WriteString(w, `{"code": 3, "details": "`+strings.Repeat("x", 400)+`", "message": "so it is"}`)
			return
		}
	}
	if r.Method != http.MethodPut || r.Header.Get("Authorization") != "Bearer t" {
		status = http.StatusUnauthorized
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || int64(len(body)) != r.ContentLength {
		status = http.StatusBadRequest
	}
	g.received[r.URL.EscapedPath()] = string(body)
	w.WriteHeader(status)
}

// layArtifacts writes copied artifacts, as the entrypoint does.
func (v volume) layArtifacts(t *testing.T, k pod.ArtifactList, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(v.dir, pod.ArtifactsDir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		v.append(t, filepath.Join(pod.ArtifactsDir, name), text)
	}
	b, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	v.append(t, pod.ArtifactsFile, string(b))
}

func artifactSettings(v volume, url string) collect.Settings {
	s := settings(v)
	s.Gateway, s.Token, s.Artifacts, s.Index = url, "t", []pod.Artifact{{Path: "x"}}, 2
	return s
}

// statusMessages returns the messages of the statuses about artifacts.
func (s *fakeStore) statusMessages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, ev := range s.events {
		if st, ok := ev.(event.Status); ok {
			all = append(all, st.Message)
		}
	}
	return all
}

func TestFilesGoToTheGatewayBeforeTheEnds(t *testing.T) {
	t.Parallel()
	v, bus, g := newVolume(t), newStore(t), newGateway(t)
	g.answer = func(tries int, _ string) int {
		bus.mu.Lock()
		defer bus.mu.Unlock()
		if len(bus.ended) > 0 {
			t.Error("an end was said before the files were kept")
		}
		if tries < 3 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	v.record(t, stdoutRecord("a line\n"))
	v.layArtifacts(t, pod.ArtifactList{Files: []string{"out/a b?.txt", "empty", "07:47 C:\\x\n"}, Notices: []string{"artifact \"y\" is not kept: too large"}},
		map[string]string{"out/a b?.txt": "text", "empty": "", "07:47 C:\\x\n": "odd"})
	v.exit(t, pod.Exit{})
	collectAll(t, artifactSettings(v, g.URL+"/"), bus)
	bus.complete(t)
	want(t, g.received, map[string]string{
		"/v1/runs/r1/artifacts/1/benchmark-2/out/a%20b%3F.txt":  "text",
		"/v1/runs/r1/artifacts/1/benchmark-2/empty":             "",
		"/v1/runs/r1/artifacts/1/benchmark-2/07:47%20C:%5Cx%0A": "odd",
	})
	want(t, bus.statusMessages(), []string{`artifact "y" is not kept: too large`})
}

func TestWhatTheGatewayDoesNotTakeIsSaidAndFailsNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer   int
		tries    int
		messages []string
	}{
		"it is too large": {http.StatusRequestEntityTooLarge, 2, []string{
			`artifact "a" is not kept: it is larger than the gateway takes: so it is`, `artifact "b" is not kept: it is larger than the gateway takes: so it is`,
		}},
		"it does not know the run": {http.StatusNotFound, 1, []string{
			`artifact "a" is not kept: the gateway takes none of them: the gateway answered 404: so it is`, "1 more file is not kept",
		}},
		"it cannot be": {http.StatusBadRequest, 2, []string{
			`artifact "a" is not kept: the gateway answered 400: so it is`, `artifact "b" is not kept: the gateway answered 400: so it is`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, bus, g := newVolume(t), newStore(t), newGateway(t)
			g.answer = func(int, string) int { return tt.answer }
			v.layArtifacts(t, pod.ArtifactList{Files: []string{"a", "b"}}, map[string]string{"a": "1", "b": "2"})
			v.exit(t, pod.Exit{})
			collectAll(t, artifactSettings(v, g.URL), bus)
			bus.complete(t)
			want(t, bus.statusMessages(), tt.messages)
			want(t, g.tries, tt.tries)
		})
	}
}

func TestAGatewayThatIsAwayIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	v, bus, g := newVolume(t), newStore(t), newGateway(t)
	g.answer = func(int, string) int { return http.StatusServiceUnavailable }
	v.layArtifacts(t, pod.ArtifactList{Files: []string{"a", "b"}}, map[string]string{"a": "1", "b": "2"})
	v.exit(t, pod.Exit{})
	s := artifactSettings(v, g.URL)
	s.Drain = 300 * time.Millisecond
	collectAll(t, s, bus)
	bus.complete(t)
	if got := strings.Join(bus.statusMessages(), "; "); !strings.HasPrefix(got, `artifact "a" is not kept: `) || !strings.HasSuffix(got, "; 1 more file is not kept") {
		t.Errorf("the user is told %q", got)
	}
}

// TestNothingElseOfTheVolumeIsSent: the benchmark can write every file that the entrypoint can, and must not make the collector send a file
// that only the collector may read.
func TestNothingElseOfTheVolumeIsSent(t *testing.T) {
	t.Parallel()
	v, bus, g := newVolume(t), newStore(t), newGateway(t)
	secret := filepath.Join(t.TempDir(), "secret")
	v.layArtifacts(t, pod.ArtifactList{Files: []string{"link", "../../secret", "/etc/passwd", "folder", "dir/x"}}, map[string]string{"folder/f": "1"})
	v.append(t, "secret", "s")
	for at, to := range map[string]string{"link": secret, "dir": "/etc"} {
		if err := os.Symlink(to, filepath.Join(v.dir, pod.ArtifactsDir, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	v.exit(t, pod.Exit{})
	collectAll(t, artifactSettings(v, g.URL), bus)
	want(t, g.received, map[string]string{})
	want(t, len(bus.statusMessages()), 5)
}

// TestOfABenchmarkThatWasKilledWithItsContainerVolumesAreKept: the entrypoint had no time to copy the artifacts or to write the exit file.
func TestOfABenchmarkThatWasKilledWithItsContainerVolumesAreKept(t *testing.T) {
	t.Parallel()
	v, bus, g := newVolume(t), newStore(t), newGateway(t)
	seen, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("s"), 0o600), os.MkdirAll(filepath.Join(seen, "out/deep"), 0o700),
		os.WriteFile(filepath.Join(seen, "out/a.txt"), []byte("1"), 0o600), os.WriteFile(filepath.Join(seen, "out/deep/b.txt"), []byte("22"), 0o600),
		os.Symlink(secret, filepath.Join(seen, "out/link")), os.Symlink(filepath.Dir(secret), filepath.Join(seen, "out/away")),
		os.Symlink("a.txt", filepath.Join(seen, "out/inside")),
	); err != nil {
		t.Fatal(err)
	}
	s := artifactSettings(v, g.URL)
	s.VolumesDir, s.Volumes = seen, []string{"/out", "/other"}
	s.Artifacts = []pod.Artifact{
		{Path: "/out/deep"},
		{Path: "/out/*.txt"},
		{Path: "/out/inside"},
		{Path: "/out/none"},
		{Path: "/out/away/*"},
		{Path: "/out/away/secret"},
		{Path: "/out/link"},
		{Path: "/out/../out/a.txt", MaxSize: 1},
		{Path: "/out/deep/b.txt", MaxSize: 1},
		{Path: "/elsewhere/x"},
		{Path: "relative"},
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := collector(t, s, bus).Run(ctx); err != nil {
		t.Fatal(err)
	}
	bus.complete(t)
	const at = "/v1/runs/r1/artifacts/1/benchmark-2/out/"
	want(t, g.received, map[string]string{at + "a.txt": "1", at + "deep/b.txt": "22", at + "inside": "1"})
	const ended = "is not kept: the benchmark's container was ended before it could be copied, as when its memory ran out, " +
		"or runs the image's own entrypoint; what lies on a volume ([[volumes]]) is kept then, too"
	want(t, bus.statusMessages(), []string{
		`artifact "/out/none" is not kept: the benchmark left no such file`,
		`artifact "/out/away/*" is not kept: the benchmark left no such file`,
		`artifact "/out/away/secret" is not kept: the benchmark left no such file`,
		`artifact "/out/link" is not kept: statat link: path escapes from parent`,
		`artifact "/out/deep/b.txt" is not kept: it has 2 bytes, more than its max_size, 1`,
		`artifact "/elsewhere/x" ` + ended, `artifact "relative" ` + ended,
	})
}

func TestABenchmarkThatWasKilledWithItsContainerLeavesNoOtherFiles(t *testing.T) {
	t.Parallel()
	v, bus, g := newVolume(t), newStore(t), newGateway(t)
	v.exit(t, pod.Exit{Code: 137})
	collectAll(t, artifactSettings(v, g.URL), bus)
	bus.complete(t)
	want(t, len(bus.statusMessages()), 1)
	want(t, g.tries, 0)
}

// TestNoLinkLeadsOutOfTheVolume: the collector has its credentials in a folder
// beside the volume, which the benchmark can write to.
func TestNoLinkLeadsOutOfTheVolume(t *testing.T) {
	t.Parallel()
	const secret = "the token of the run"
	names := []string{pod.ArtifactsDir, pod.Output, pod.Metrics, pod.System, pod.EnvironmentFile, pod.Cursor, pod.Series, pod.ExitFile, pod.Spool, pod.FIFO, pod.OTLPURL, pod.Scraped, pod.OTLP}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collectThroughLink(t, name, secret)
		})
	}
}

// collectThroughLink collects from a volume in which a name is a link to a secret outside.
func collectThroughLink(t *testing.T, name, secret string) {
	t.Helper()
	v, bus, g := newVolume(t).withoutState(), newStore(t), newGateway(t) // with the benchmark as owner of all names
	outside := t.TempDir()
	files := []string{filepath.Join(outside, "collect.json"), filepath.Join(outside, filepath.Base(name))}
	to := files[1]
	if name == pod.ArtifactsDir {
		to = outside
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(to, filepath.Join(v.dir, name)); err != nil {
		t.Fatal(err)
	}
	v.layArtifacts(t, pod.ArtifactList{Files: []string{"collect.json"}}, nil)
	if name != pod.ExitFile {
		v.exit(t, pod.Exit{})
	}
	s := artifactSettings(v, g.URL)
	s.OTLP, s.Scrape = true, pod.Scrape{URLs: []string{"http://127.0.0.1:1"}}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second) // a link for the end is never the end
	defer stop()
	_ = collector(t, s, bus).Run(ctx) // a part that cannot be read may be an error
	if sent := fmt.Sprint(g.received, bus.lines(), bus.samples()); strings.Contains(sent, secret) {
		t.Errorf("sent is what lies outside: %q", sent)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || string(text) != secret {
			t.Errorf("outside %s is %q, %v", file, text, err)
		}
	}
}

func TestAListOfFilesHasABound(t *testing.T) {
	t.Parallel()
	v, bus, g := newVolume(t), newStore(t), newGateway(t)
	v.append(t, pod.ArtifactsFile, `{"files": ["x"]`)
	if err := os.Truncate(filepath.Join(v.dir, pod.ArtifactsFile), 1<<40); err != nil { // a sparse file: no bytes of it are on the disk
		tooltest.Missing(t, "this disk has no files with holes: %v", err)
	}
	v.exit(t, pod.Exit{})
	collectAll(t, artifactSettings(v, g.URL), bus)
	bus.complete(t)
	if len(g.received) != 0 {
		t.Errorf("sent %v", g.received)
	}
}
