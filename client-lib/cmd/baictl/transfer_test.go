package main_test

import (
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// newExportFixture is a platform with a run that can be exported.
func newExportFixture(t *testing.T, about *baiv1.Export) (p *baitest.Platform, id string) {
	t.Helper()
	p = baitest.Start(t)
	id = p.Add(&baiv1.Run{Name: "r", Owner: "ann", Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
	p.SetCompleteness(id, &baiv1.Completeness{Complete: true})
	p.SetSummaries(id, &baiv1.GetSummariesResponse{Complete: true})
	about.Format, about.PlatformVersion = max(about.GetFormat(), 1), "v1.2.0"
	source := `{"attempt":1,"role":"benchmark","index":0,"pod":"p","container":"c","stream":"output",`
	p.SetExport(id, about,
		baitest.Transferred{Name: "run.json", Content: `{"id": "` + id + "\"}\n"},
		baitest.Transferred{Name: "descriptor/submitted.toml", Content: "# sent\n"},
		baitest.Transferred{Name: "descriptor/resolved.toml", Content: "# run\n"},
		baitest.Transferred{Name: "events.jsonl", Content: strings.Repeat("{}\n", 1000)},
		baitest.Transferred{Name: "metrics/samples.jsonl", Content: strings.Repeat(source+`"seq":1,"name":"x","value":1,"time":"1"}`+"\n", 500)},
		baitest.Transferred{Name: "logs/lines.jsonl", Content: strings.Repeat(source+`"seq":1,"time":"1","text":"hello"}`+"\n", 500)},
		baitest.Transferred{Name: "artifacts/1/benchmark-0/x", Content: strings.Repeat("x", 50_000)},
	)
	return p, id
}

func TestAnExportIsWrittenAndImported(t *testing.T) {
	p, id := newExportFixture(t, &baiv1.Export{Complete: true})
	other := baitest.Start(t)
	dir := t.TempDir()
	network := baitest.Break(t, p.Addr(), 10, 20_000)
	expect(t, runPiped(t, network.Addr(), "export", "r", filepath.Join(dir, "run")), 0, "")
	got := runPiped(t, p.Addr(), "export", id, filepath.Join(dir, "run.tar.zst"), "-o", "json")
	if want := `{
  "run": "` + id + `",
  "target": "` + dir + `/run.tar.zst",
  "complete": true,
  "missing": 0,
  "files": 9,
`; got.code != 0 || !strings.HasPrefix(got.out, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "run", "logs/1/benchmark-0/p/c.stdout.txt")); err != nil || string(text) != strings.Repeat("hello\n", 500) {
		t.Errorf("the log: %.100q, %v", text, err)
	}
	expect(t, runPiped(t, "127.0.0.1:1", "import", filepath.Join(dir, "run"), "--check"), 0, "")
	first := runPiped(t, other.Addr(), "import", filepath.Join(dir, "run.tar.zst"))
	expect(t, first, 0, "baictl: its name is taken")
	again := runPiped(t, other.Addr(), "import", filepath.Join(dir, "run"), "-o", "json")
	if want := "{\n  \"run\": \"" + id + "\",\n  \"already\": true,\n"; first.out != "run "+id+" was imported\n" || !strings.HasPrefix(again.out, want) {
		t.Errorf("said %s and then %s", first, again)
	}
	if other.ImportedIntoHistory(id) {
		t.Error("the run is a point of the history, which nobody has asked for")
	}
	expect(t, runPiped(t, other.Addr(), "import", filepath.Join(dir, "run"), "--history"), 0, "")
	if !other.ImportedIntoHistory(id) {
		t.Error("the run is no point of the history")
	}
	var names []string
	for _, f := range other.Imported(id) {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	want := []string{"artifacts/1/benchmark-0/x", "descriptor/submitted.toml", "events.jsonl", "logs/lines.jsonl", "metrics/samples.jsonl", "run.json"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("imported (-want +got):\n%s", diff)
	}
}

func TestAnExportThatLacksSomethingSaysSo(t *testing.T) {
	p, id := newExportFixture(t, &baiv1.Export{Missing: 3, Awaited: []string{"3 lines of output of pod p"}})
	dir := t.TempDir()
	p.SetCompleteness(id, &baiv1.Completeness{Missing: 3})
	expect(t, runPiped(t, p.Addr(), "export", id, filepath.Join(dir, "x"), "--wait", "50ms"), 3, "the export of run "+id+" lacks data")
	text, err := os.ReadFile(filepath.Join(dir, "x", "bai-export.json"))
	if err != nil || !strings.Contains(string(text), `"missing": 3`) || !strings.Contains(string(text), `"complete": false`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestWhoInterruptsAnExportFindsNothing(t *testing.T) {
	p, id := newExportFixture(t, &baiv1.Export{})
	p.SetSummaries(id, &baiv1.GetSummariesResponse{Pending: true})
	dir := t.TempDir()
	cmd := command(t, p.Addr(), "export", id, filepath.Join(dir, "x.tar.zst"), "--wait", "1h")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return p.Calls("GetSummaries") > 0 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was interrupted
	if code := cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited a minute in vain")
		}
	}
}

func TestAnExportFromANewerPlatformIsRefusedWithTheRemedy(t *testing.T) {
	p, id := newExportFixture(t, &baiv1.Export{Format: 2})
	dir := t.TempDir()
	expect(t, runPiped(t, p.Addr(), "export", id, filepath.Join(dir, "x")), 3, "use a newer baictl")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	p.SetRevision(3)
	expect(t, runPiped(t, p.Addr(), "export", id, filepath.Join(dir, "x")), 3, "it does not understand exports of runs")
}

func TestWhatThePlatformRefusesOfAnImportIsTold(t *testing.T) {
	p, id := newExportFixture(t, &baiv1.Export{Complete: true})
	file := filepath.Join(t.TempDir(), "x.tar.zst")
	expect(t, runPiped(t, p.Addr(), "export", id, file), 0, "")
	for name, tt := range map[string]struct {
		err  error
		code int
		want string
	}{
		"another run":  {status.Error(codes.AlreadyExists, "run x is here already"), 2, "is here already"},
		"a bad file":   {status.Error(codes.InvalidArgument, "events.jsonl:2: is wrong"), 2, "events.jsonl:2: is wrong"},
		"too much":     {status.Error(codes.ResourceExhausted, "gateway.artifacts.max_size"), 2, "gateway.artifacts.max_size"},
		"a new format": {status.Error(codes.FailedPrecondition, "format 2"), 2, "format 2"},
		"no disk":      {status.Error(codes.Internal, "no disk"), 3, "no disk"},
	} {
		p.Fail("ImportRun", tt.err)
		got := runPiped(t, p.Addr(), "import", file)
		if got.code != tt.code || !strings.Contains(got.err, tt.want) {
			t.Errorf("%s: %s, want %d and %q", name, got, tt.code, tt.want)
		}
	}
	p.Fail("ImportRun", baitest.Status(codes.ResourceExhausted, "too many", &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)}))
	expect(t, runPiped(t, p.Addr(), "import", file), 0, "")
	p.Fail("ImportRun", status.Error(codes.Unavailable, "a moment"))
	expect(t, runPiped(t, p.Addr(), "import", file), 0, "")
}

func TestAnExportInABucketHasItsManifestLast(t *testing.T) {
	p, id := newExportFixture(t, &baiv1.Export{Complete: true})
	cloud := &fakeS3{objects: map[string]string{}}
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	baictl := func(args ...string) result {
		cmd := command(t, p.Addr(), args...)
		cmd.Env = append(cmd.Env, "AWS_ENDPOINT_URL="+server.URL, "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=eu-north-1", "AWS_MAX_ATTEMPTS=1")
		return finish(t, cmd)
	}
	expect(t, baictl("export", id, "s3://results/a/b"), 0, "")
	cloud.withLock(func() {
		if last := cloud.puts[len(cloud.puts)-1]; last != "/results/a/b/bai-export.json" {
			t.Errorf("the last object that was written is %s", last)
		}
		cloud.objects["/results/a/b/mine"] = "mine"
	})
	expect(t, baictl("export", id, "s3://results/a/b"), 2, "--force")
	expect(t, baictl("export", id, "s3://results/a/b", "--force"), 0, "")
	cloud.withLock(func() {
		if cloud.objects["/results/a/b/mine"] != "mine" || cloud.deleted[0] != "/results/a/b/bai-export.json" {
			t.Errorf("deleted: %q", cloud.deleted)
		}
	})
	expect(t, baictl("import", "s3://results/a/b"), 0, "")
	expect(t, baictl("import", "s3://results/none"), 2, "it is no export of a run")
	cloud.withLock(func() { cloud.objects["/results/a/b/events.jsonl"] += "{}\n" })
	expect(t, baictl("import", "s3://results/a/b"), 2, "events.jsonl: has more than the 3000 bytes")
	cloud.withLock(func() { cloud.fail = "/results/c/logs/lines.jsonl" })
	expect(t, baictl("export", id, "s3://results/c"), 3, "AccessDenied")
	cloud.withLock(func() {
		for key := range cloud.objects {
			if strings.HasPrefix(key, "/results/c/") {
				t.Errorf("%s is left of an export that failed", key)
			}
		}
	})
}

func TestOnlyAnExportInABucketIsOverwritten(t *testing.T) {
	p, id := newExportFixture(t, &baiv1.Export{Complete: true})
	mine := map[string]string{"/results/a/events.jsonl": "mine", "/results/a/mine": "mine"}
	cloud := &fakeS3{objects: maps.Clone(mine)}
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	export := func(to string) result {
		cmd := command(t, p.Addr(), "export", id, to, "--force")
		cmd.Env = append(cmd.Env, "AWS_ENDPOINT_URL="+server.URL, "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=eu-north-1", "AWS_MAX_ATTEMPTS=1")
		return finish(t, cmd)
	}
	expect(t, export("s3://results/a"), 2, "no bai-export.json of an export")
	cloud.withLock(func() {
		if diff := cmp.Diff(mine, cloud.objects); diff != "" {
			t.Errorf("objects (-before +after):\n%s", diff)
		}
	})
	expect(t, export("s3://results/b"), 0, "")
	cloud.withLock(func() { cloud.objects["/results/b/mine"], cloud.fail = "mine", "/results/b/logs/lines.jsonl" })
	expect(t, export("s3://results/b"), 3, "AccessDenied")
	cloud.withLock(func() {
		mine["/results/b/mine"] = "mine"
		if diff := cmp.Diff(mine, cloud.objects); diff != "" {
			t.Errorf("of an export that failed (-want +got):\n%s", diff)
		}
	})
}

// fakeS3 answers as much of S3's protocol as is asked for here.
type fakeS3 struct {
	mu      sync.Mutex
	objects map[string]string
	puts    []string
	deleted []string
	fail    string // no object of this key is taken
}

// withLock calls do while no request is answered.
func (c *fakeS3) withLock(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// ServeHTTP implements http.Handler.
func (c *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := r.URL.Path
	content, exists := c.objects[key]
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
		c.list(w, key, r.URL.Query().Get("prefix"))
	case r.Method == http.MethodPut && key == c.fail:
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`<Error><Code>AccessDenied</Code><Message>no</Message></Error>`)) // or the client is gone
	case r.Method == http.MethodPut:
		text := new(strings.Builder)
		if _, err := copyBody(text, r); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.objects[key], c.puts = text.String(), append(c.puts, key)
	case r.Method == http.MethodDelete:
		delete(c.objects, key)
		c.deleted = append(c.deleted, key)
		w.WriteHeader(http.StatusNoContent)
	case !exists:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`<Error><Code>NoSuchKey</Code></Error>`)) // or the client is gone
	default:
		_, _ = w.Write([]byte(content)) // or the client is gone
	}
}

func (c *fakeS3) list(w http.ResponseWriter, bucket, prefix string) {
	text := `<ListBucketResult>`
	for key := range c.objects {
		if name := strings.TrimPrefix(key, strings.TrimSuffix(bucket, "/")+"/"); strings.HasPrefix(name, prefix) {
			text += `<Contents><Key>` + name + `</Key></Contents>`
			break
		}
	}
	_, _ = w.Write([]byte(text + `</ListBucketResult>`)) // or the client is gone
}

func copyBody(to *strings.Builder, r *http.Request) (int64, error) {
	b := make([]byte, r.ContentLength)
	n := 0
	for n < len(b) {
		some, err := r.Body.Read(b[n:])
		n += some
		if err != nil && n < len(b) {
			return int64(n), err
		}
	}
	to.Write(b)
	return int64(n), nil
}

func TestAnExportNeedsAPlaceThatCanBeWritten(t *testing.T) {
	p, id := newExportFixture(t, &baiv1.Export{Complete: true})
	if os.Geteuid() == 0 {
		expect(t, runPiped(t, p.Addr(), "export", id, "/proc/none/x"), 3, "/proc/none")
		return
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil && !errors.Is(err, fs.ErrPermission) { //nolint:gosec // it is the test
		t.Fatal(err)
	}
	expect(t, runPiped(t, p.Addr(), "export", id, filepath.Join(dir, "x")), 2, "permission denied")
}
