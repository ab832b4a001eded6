package e2e_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// wanting is a descriptor that runs sent code.
const wanting = `spec_version = "0.1.0"
[info]
description = "code that is sent along"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "debian:12-slim"
vars = { FACTOR = "2" }
[ml]
benchmark_code = "${BAI_SCRIPTS_PATH}/run.sh 3 $(BAI_SCRIPTS_PATH)/data.txt"
[ml.script]
script = "code.tar"
[[output.metrics]]
name = "loss"
units = "1"
pattern = 'loss=([\d.]+)'
`

// codeFolder makes a folder with code: a script that is run, one that it reads, a link, a
// file of data, and an ignored file.
func codeFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "run.sh"), `#!/bin/sh -e
. "$BAI_SCRIPTS_PATH/lib/current.sh"
echo "read $(cat "$2")"
i=1
while [ $i -le "$1" ]; do step $i; i=$((i+1)); done
echo changed >"$2"
touch "$BAI_SCRIPTS_PATH/lib/new"
ls -A "$BAI_SCRIPTS_PATH"
`)
	if err := errors.Join(os.Chmod(filepath.Join(dir, "run.sh"), 0o755), os.MkdirAll(filepath.Join(dir, "lib"), 0o755), os.MkdirAll(filepath.Join(dir, ".git"), 0o755)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "lib", "steps.sh"), `step() { echo "loss=$(($1 * FACTOR))"; }`+"\n")
	write(t, filepath.Join(dir, "data.txt"), "data\n")
	write(t, filepath.Join(dir, "cache.pyc"), "left out")
	write(t, filepath.Join(dir, ".baiignore"), "*.pyc\n")
	write(t, filepath.Join(dir, ".git", "config"), "left out")
	if err := os.Symlink("steps.sh", filepath.Join(dir, "lib", "current.sh")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestABenchmarkRunsWhatIsInTheFolderThatIsSentAlong(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"in namespaces": nil, "without namespaces": {"--no-namespaces"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, args...)
			file, dir := writeTemp(t, wanting), codeFolder(t)
			if _, errs, code := p.baictl("submit", file); code != 2 || !strings.Contains(errs, "--script DIR") {
				t.Errorf("without its code: exit %d, %s", code, errs)
			}
			first := p.submittedID("run", file, "--script", dir, "-o", "name")
			again := p.submittedID("rerun", first)
			wantShipped(t, p, first)
			wantShipped(t, p, again)
			if a, b := p.get(first).GetScript().GetSha256(), p.get(again).GetScript().GetSha256(); a == "" || a != b {
				t.Errorf("run with %q, and again with %q", a, b)
			}
			if n := objectsOf(t, p); n != 1 {
				t.Errorf("%d objects, want 1", n)
			}
		})
	}
}

// submittedID returns the ID of the run that baictl makes.
func (p *platform) submittedID(args ...string) string {
	p.t.Helper()
	out, errs, code := p.baictl(args...)
	if code != 0 {
		p.t.Fatalf("baictl %q: exit %d, %s", args, code, errs)
	}
	return strings.TrimSpace(out)
}

// wantShipped checks the output of a run of the shipped folder.
func wantShipped(t *testing.T, p *platform, run string) {
	t.Helper()
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("%v\n%q", r, p.lines(run))
	}
	want := []string{"out read data", "out loss=2", "out loss=4", "out loss=6", "out data.txt", "out lib", "out run.sh"}
	if diff := cmp.Diff(want, p.lines(run)); diff != "" {
		t.Errorf("its log (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{2, 4, 6}, p.samples(run)["loss"]); diff != "" {
		t.Errorf("its metrics (-want +got):\n%s", diff)
	}
}

// objectsOf is how many objects the platform's store has.
func objectsOf(t *testing.T, p *platform) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, "objects", "objects", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestCodeIsSentAndRunOverHTTPAlone(t *testing.T) {
	t.Parallel()
	p := start(t)
	content := tarred(t, tar.Header{Name: "run.sh", Mode: 0o755}, "#!/bin/sh\necho loss=$1\n\n\n")
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	ask := func(method, path string, body []byte, kind string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.addr+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it is read to its end
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	body, err := json.Marshal(map[string]string{"descriptorToml": base64.StdEncoding.EncodeToString([]byte(wanting)), "scriptSha256": digest, "owner": "tester", "name": "n"})
	if err != nil {
		t.Fatal(err)
	}
	if status, text := ask(http.MethodPost, "/v1/runs", body, "application/json"); status != http.StatusBadRequest || !strings.Contains(text, "PUT /v1/scripts/"+digest) {
		t.Errorf("before it is sent: %d %s", status, text)
	}
	if status, text := ask(http.MethodPut, "/v1/scripts/"+digest, content, "application/octet-stream"); status != http.StatusCreated {
		t.Fatalf("sent: %d %s", status, text)
	}
	status, text := ask(http.MethodPost, "/v1/runs", body, "application/json")
	var got struct {
		RunID string `json:"runId"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != http.StatusOK {
		t.Fatalf("submitted: %d %s", status, text)
	}
	if r := p.awaitComplete(got.RunID); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED || !slices.Equal(p.samples(got.RunID)["loss"], []float64{3}) {
		t.Errorf("%v, %v", r, p.samples(got.RunID))
	}
}

// tarred is an archive with one entry.
func tarred(t *testing.T, h tar.Header, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	h.Size = int64(len(content))
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&h)
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: name, UncompressedSize64: uint64(len(content)), CompressedSize64: uint64(len(content))})
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb is an archive whose content is far larger than it: a file of zeros, of which one
// piece is compressed once and then repeated, as the members of a gzip may be joined.
func bomb(t *testing.T, size int64) []byte {
	t.Helper()
	const piece = 16 << 20
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: "zeros", Size: size, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(gzipped(t, header.Bytes()), bytes.Repeat(gzipped(t, make([]byte, piece)), int(size/piece)), gzipped(t, make([]byte, 1024)))
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAHostileArchiveEndsItsRunAndNothingElse(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "4")
	file := writeTemp(t, strings.Replace(wanting, "${BAI_SCRIPTS_PATH}/run.sh", "/bin/true", 1))
	escaped := filepath.Join(t.TempDir(), "escaped")
	for name, tt := range map[string]struct {
		content []byte
		says    string
	}{
		"a path that leads out":          {tarred(t, tar.Header{Name: "../../../../escaped", Mode: 0o644}, "x"), "leads out of the archive"},
		"an absolute path":               {tarred(t, tar.Header{Name: escaped, Mode: 0o644}, "x"), "absolute name"},
		"a link that leads out":          {tarred(t, tar.Header{Name: "l", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}, ""), "link that leads out"},
		"a hard link that leads out":     {tarred(t, tar.Header{Name: "l", Linkname: "../../secret", Typeflag: tar.TypeLink}, ""), "link that leads out"},
		"a device":                       {tarred(t, tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, ""), "neither a file nor a folder nor a link"},
		"a zip whose path leads out":     {zipped(t, "../escaped", "x"), "leads out of the archive"},
		"more than a disk should hold":   {bomb(t, 1312<<20), "bytes that are allowed in an archive of"},
		"what only begins as an archive": {append([]byte{0x1f, 0x8b}, strings.Repeat("x", 1000)...), "not an archive that can be unpacked"},
	} {
		archive := filepath.Join(t.TempDir(), "code.bin")
		if err := os.WriteFile(archive, tt.content, 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := p.baictl("submit", file, "--script", archive)
		if code != 0 {
			t.Errorf("%s: exit %d, %s", name, code, errs)
			continue
		}
		r := p.awaitEnd(strings.TrimSpace(out))
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetFailureClass() != baiv1.FailureClass_FAILURE_CLASS_USER || !strings.Contains(r.GetMessage(), tt.says) || !strings.Contains(r.GetMessage(), "the code that was sent along") {
			t.Errorf("%s: %v; want the user's failure with %q", name, r, tt.says)
		}
	}
	if _, err := os.Lstat(escaped); err == nil {
		t.Error("something was written elsewhere")
	}
}

func TestCodeSurvivesTheDeathOfThePlatformAtAnyMoment(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "1")
	file, dir := writeTemp(t, wanting), codeFolder(t)
	p.cutUpload()
	p.begin()
	gate := filepath.Join(t.TempDir(), "gate")
	before := p.submit(script("while [ ! -e " + gate + " ]; do sleep 0.01; done"))
	p.awaitPhase(before, baiv1.Phase_PHASE_RUNNING)
	out, errs, code := p.baictl("submit", file, "--script", dir, "--idempotency-key", "k")
	if code != 0 {
		t.Fatalf("exit %d, %s", code, errs)
	}
	run := strings.TrimSpace(out)
	p.kill()
	p.begin()
	if again, errs, code := p.baictl("submit", file, "--script", dir, "--idempotency-key", "k"); code != 0 || strings.TrimSpace(again) != run {
		t.Errorf("the same again is %q (exit %d, %s), want %s", again, code, errs, run)
	}
	write(t, filepath.Join(dir, "data.txt"), "other\n")
	if _, errs, code := p.baictl("submit", file, "--script", dir, "--idempotency-key", "k"); code == 0 || !strings.Contains(errs, "was used before") {
		t.Errorf("other code under the key: exit %d, %s", code, errs)
	}
	write(t, gate, "")
	wantShipped(t, p, run)
	known := p.snapshot(run)
	p.kill()
	p.args = append(p.args, "--replay")
	p.begin()
	p.waitReplayed()
	if diff := cmp.Diff(known, p.snapshot(run)); diff != "" {
		t.Errorf("every event heard again changed the run (-before +after):\n%s", diff)
	}
}

// cutUpload kills the platform during an upload of code, and checks that the partial code
// cannot be read.
func (p *platform) cutUpload() {
	p.t.Helper()
	content := bytes.Repeat([]byte("x"), 8<<20)
	sum := sha256.Sum256(content)
	scripts := baiv1.NewScriptServiceClient(p.conn)
	stream, err := scripts.UploadScript(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	req := &baiv1.UploadScriptRequest{Sha256: hex.EncodeToString(sum[:]), Size: int64(len(content)), Owner: "tester", Data: content[:1<<20]}
	if err := stream.Send(req); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, func() error {
		if objectsOf(p.t, p) == 0 {
			return errors.New("nothing is written")
		}
		return nil
	})
	p.kill()
	p.begin()
	if _, err := scripts.GetScript(p.t.Context(), &baiv1.GetScriptRequest{Sha256: req.GetSha256()}); err == nil {
		p.t.Error("half of it is kept")
	}
	eventually(p.t, func() error {
		if n := objectsOf(p.t, p); n > 0 {
			return fmt.Errorf("%d files are left of it", n)
		}
		return nil
	})
	p.kill()
}
