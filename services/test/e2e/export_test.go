package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed/s3"
)

const ownSecret = "a-secret-of-the-user-4711"

// exportDescriptor returns a descriptor of a run with results of every kind, which uses a
// user's secret. The run continues until the file gate exists.
func exportDescriptor(t *testing.T, gate string) string {
	t.Helper()
	out := t.TempDir()
	text := script(`
[ -n "$API_KEY" ] || exit 1
for i in 1 2 3 4 5 6 7; do echo "line $i: speed=$((i * 10))"; echo "warning $i" >&2; echo "{\"loss\": 0.$i}" >>"$BENCHMARK_AI_FILE"; done
printf 'no line feed at the end'
mkdir -p `+out+`/deep
echo '{"a": 1}' > `+out+`/out.json
head -c 3000000 /dev/urandom > `+out+`/deep/big.bin
: > `+out+`/deep/empty
until [ -e `+gate+` ]; do sleep 0.05; done`,
		"[[output.metrics]]", `name = "speed"`, `units = "1/s"`, `pattern = 'speed=(\d+)'`,
		"[[output.artifacts]]", `path = "`+out+`/*.json"`, "[[output.artifacts]]", `path = "`+out+`/deep/*"`)
	return strings.Replace(text, "[ml]", "vars = { REPOSITORY = 'https://me:"+ownSecret+"@example.org/x.git?sig="+ownSecret+"' }\nsecrets = { API_KEY = 'mine/key' }\n[ml]", 1)
}

// allowMine are settings that let descriptors name the secret of exportRun's.
func allowMine(t *testing.T) string {
	t.Helper()
	return writeTemp(t, "[executor.pods.allow.default]\nsecrets = [\"mine\"]\n")
}

// exportRun runs an exportable run, and returns its ID and all secret values that existed
// while it ran.
func exportRun(t *testing.T, p *platform) (run string, secrets []string) {
	t.Helper()
	keep := filepath.Join(p.dir, "secrets", "mine")
	if err := os.MkdirAll(keep, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(keep, "key"), ownSecret+"\n")
	gate := filepath.Join(t.TempDir(), "go-on")
	r, err := p.api.SubmitRun(t.Context(), &baiv1.SubmitRunRequest{
		DescriptorToml: []byte(exportDescriptor(t, gate)), Owner: "tester", Name: "exported", Labels: map[string]string{"color": "red"},
		Overrides: []*baiv1.Override{{Path: "info.description", Value: "not as it was sent"}},
	}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	run = r.GetRunId()
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	secrets = append(secretsBelow(t, filepath.Join(p.dir, "pods")), ownSecret, string(contentOf(t, filepath.Join(p.dir, "token.key"))))
	if len(secrets) < 3 {
		t.Errorf("no secret of the pod's is found: %d", len(secrets))
	}
	write(t, gate, "")
	if got := p.awaitComplete(run); got.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v", got)
	}
	return run, secrets
}

// secretsBelow returns the values of Secrets that lie in a folder.
func secretsBelow(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(path, "secret") {
			return nil //nolint:nilerr // it has gone meanwhile
		}
		if b, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(b)) >= 8 && len(b) < 4096 {
			found = append(found, string(bytes.TrimSpace(b)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func contentOf(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tree returns all files below a folder, by name.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[name] = string(contentOf(t, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// wantCode runs baictl and checks its exit code.
func (p *platform) wantCode(code int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	stdout, stderr, got := p.baictl(args...)
	if got != code {
		p.t.Fatalf("baictl %q exits with %d, want %d:\n%s%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

func TestAnExportIsImportedAsTheSameRun(t *testing.T) {
	t.Parallel()
	p, dir := start(t, "--config", allowMine(t)), t.TempDir()
	run, secrets := exportRun(t, p)
	folder, packed := filepath.Join(dir, "folder"), filepath.Join(dir, "packed.tar.zst")
	p.wantCode(0, "export", "exported", folder)
	p.wantCode(0, "export", run, packed)
	files := tree(t, folder)
	wantExport(t, files, run)
	wantNoSecret(t, files, contentOf(t, packed), secrets)
	p.wantSameAgain(run, packed)
	for _, target := range []string{folder, packed} {
		if _, stderr := p.wantCode(2, "export", run, target); !strings.Contains(stderr, "--force") {
			t.Errorf("over %s: said %q", target, stderr)
		}
		p.wantCode(0, "export", run, target, "--force")
	}
	if diff := cmp.Diff(files, tree(t, folder)); diff != "" {
		t.Errorf("with --force (-before +after):\n%.2000s", diff)
	}
	p.wantImport(packed, "run "+run+" was there already\n")

	other := start(t)
	other.wantImport(packed, "run "+run+" was imported\n")
	other.wantImport(folder, "run "+run+" was there already\n")
	wantAlike(t, p, other, run)
	back := filepath.Join(dir, "back")
	other.wantCode(0, "export", run, back)
	if diff := cmp.Diff(files, tree(t, back)); diff != "" {
		t.Errorf("exported again (-want +got):\n%.4000s", diff)
	}
	if pods, _ := filepath.Glob(filepath.Join(other.dir, "pods", "pods", "*")); len(pods) > 0 || strings.Contains(other.log.String(), run) {
		t.Errorf("something was done because of it: pods %q", pods)
	}
}

func (p *platform) wantImport(place, says string) {
	p.t.Helper()
	if stdout, stderr := p.wantCode(0, "import", place); stdout != says || stderr != "" {
		p.t.Errorf("import %s: said %q, %q, want %q", place, stdout, stderr, says)
	}
}

// wantSameAgain checks that the export of a run is the same once its cluster is
// gone.
func (p *platform) wantSameAgain(run, packed string) {
	p.t.Helper()
	p.stop()
	if err := os.RemoveAll(filepath.Join(p.dir, "pods", "pods")); err != nil {
		p.t.Fatal(err)
	}
	p.begin()
	again := filepath.Join(p.t.TempDir(), "again.tar.zst")
	eventually(p.t, func() error {
		if _, stderr, code := p.baictl("export", run, again, "--force"); code != 0 {
			return fmt.Errorf("exit code %d: %s", code, stderr)
		}
		return nil
	})
	if !bytes.Equal(contentOf(p.t, packed), contentOf(p.t, again)) {
		p.t.Error("once its cluster is gone the bytes are others")
	}
}

// wantExport checks the content of an export.
func wantExport(t *testing.T, files map[string]string, run string) {
	t.Helper()
	for name, wants := range map[string][]string{
		"run.json":                                  {run, `"owner": "tester"`, `"name": "exported"`, `"color": "red"`},
		"descriptor/submitted.toml":                 {`description = "a test"`, "https://redacted@example.org/x.git?sig=redacted"},
		"descriptor/resolved.toml":                  {`not as it was sent`},
		"manifests/1.yaml":                          {"kind: Job\n", "kind: Secret\n", "name: API_KEY", "name: mine"},
		"environment.json":                          {`"cpus"`},
		"events.jsonl":                              {`"bai.submitted"`, `"bai.launched"`, `"bai.finished"`},
		"metrics/samples.jsonl":                     {`"name":"loss","value":0.7`, `"name":"speed","value":70,"unit":"1/s"`},
		"metrics/samples.csv":                       {"time,metric,value,unit,step,labels", ",loss,0.7,", ",speed,70,1/s,"},
		"logs/lines.jsonl":                          {`"text":"line 3: speed=30"`, `"text":"warning 3"`},
		"summaries.json":                            {`"metric": "loss"`, `"metric": "speed"`},
		"sources.jsonl":                             {`"topic":"bai.logs"`, `"topic":"bai.metrics"`},
		"bai-export.json":                           {`"format": 1`, `"complete": true`, `"missing": 0`, `"sha256"`, `"platform": "`},
		textOf(files, "logs/1/benchmark-0/", "out"): {"line 1: speed=10\nline 2: speed=20\n", "line 7: speed=70\nno line feed at the end"},
		textOf(files, "logs/1/benchmark-0/", "err"): {"warning 1\nwarning 2\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s: no %q in\n%.3000s", name, want, files[name])
			}
		}
	}
	sizes := make(map[string]int)
	for name, content := range files {
		if strings.HasPrefix(name, "artifacts/") {
			sizes[filepath.Base(name)] = len(content)
		}
	}
	if diff := cmp.Diff(map[string]int{"out.json": 9, "big.bin": 3000000, "empty": 0}, sizes); diff != "" {
		t.Errorf("artifacts (-want +got):\n%s", diff)
	}
	if strings.Contains(files["descriptor/submitted.toml"], "not as it was sent") {
		t.Error("the descriptor as it was sent is the one that was run")
	}
}

// textOf returns the name of the file with the text of one output.
func textOf(files map[string]string, prefix, output string) string {
	for name := range files {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, ".std"+output+".txt") {
			return name
		}
	}
	return prefix + output
}

// wantNoSecret looks for secrets in every byte of an export.
func wantNoSecret(t *testing.T, files map[string]string, packed []byte, secrets []string) {
	t.Helper()
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	unpacked, err := r.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	files["the archive"] = string(unpacked)
	defer delete(files, "the archive")
	for name, content := range files {
		for i, secret := range secrets {
			if strings.Contains(content, secret) {
				t.Errorf("%s holds secret %d", name, i)
			}
		}
	}
}

// wantAlike checks that two platforms say the same of a run.
func wantAlike(t *testing.T, p, other *platform, run string) {
	t.Helper()
	for _, verb := range []string{
		"get exported -o json", "get " + run, "list -o json", "metrics exported -o json", "metrics exported --summary -o json", "metrics exported -o csv",
		"logs exported", "logs exported -o json", "why exported", "environment exported -o json", "artifacts list exported -o json",
	} {
		want, _ := p.wantCode(0, strings.Fields(verb)...)
		got, _ := other.wantCode(0, strings.Fields(verb)...)
		want = strings.ReplaceAll(want, "me:"+ownSecret, "redacted")
		want = strings.ReplaceAll(want, ownSecret, "redacted")
		digest := regexp.MustCompile(`"descriptorSha256": "\w+"`) // of the descriptor, which lost a secret
		want, got = digest.ReplaceAllString(want, ""), digest.ReplaceAllString(got, "")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("baictl %s (-origin +here):\n%.3000s", verb, diff)
		}
	}
}

func TestAnImportThatIsKilledIsGoneOnWith(t *testing.T) {
	t.Parallel()
	p, dir := start(t, "--config", allowMine(t)), t.TempDir()
	run, _ := exportRun(t, p)
	packed := filepath.Join(dir, "packed.tar.zst")
	p.wantCode(0, "export", run, packed)
	other := start(t)
	for range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "baictl"), "import", packed, "--server", other.addr)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond) // a random time during the export
		other.kill()
		cancel()
		_ = cmd.Wait() // it may have come to its end
		other.begin()
		if r, err := other.api.GetRun(t.Context(), &baiv1.GetRunRequest{Run: run}, grpc.WaitForReady(true)); err == nil && r.GetRun().GetPhase() != baiv1.Phase_PHASE_FINISHED {
			t.Errorf("half a run is seen: %v", r.GetRun())
		}
	}
	// The lease of a killed importer lasts for a while.
	eventually(t, func() error {
		if _, stderr, code := other.baictl("import", packed); code != 0 {
			return fmt.Errorf("exit code %d: %s", code, stderr)
		}
		return nil
	})
	back := filepath.Join(dir, "back.tar.zst")
	other.wantCode(0, "export", run, back)
	if !bytes.Equal(contentOf(t, packed), contentOf(t, back)) {
		t.Error("the run is not the same")
	}
}

func TestAnExportThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	p := start(t, "--config", allowMine(t))
	run, _ := exportRun(t, p)
	for i := range 8 {
		for _, target := range []string{"folder", "packed.tar.zst"} {
			p.wantInterruptedExport(run, filepath.Join(t.TempDir(), target), time.Duration(i*10)*time.Millisecond)
		}
	}
}

// wantInterruptedExport exports a run, and interrupts that after some time: then there is
// a whole export, or nothing.
func (p *platform) wantInterruptedExport(run, target string, after time.Duration) {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "baictl"), "export", run, target, "--server", p.addr)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(after)                      // a random time during the import
	_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended
	err := cmd.Wait()
	if err == nil {
		p.wantCode(0, "import", target, "--check")
		return
	}
	left, err := os.ReadDir(filepath.Dir(target))
	if killed := cmd.ProcessState.ExitCode() < 0; err != nil || len(left) > 0 && !killed { // before it listens for signals
		p.t.Errorf("after %s: %s, left %v, %v", after, cmd.ProcessState, left, err)
	}
}

// TestExportsOnRealServers takes a run from SQLite to Elasticsearch by way of a
// bucket of S3, and back.
func TestExportsOnRealServers(t *testing.T) {
	needsReal(t)
	cloud := s3.Start(t)
	cloud.Bucket(t, "results")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": cloud.AccessKey, "AWS_SECRET_ACCESS_KEY": cloud.SecretKey, "AWS_REGION": cloud.Region, "AWS_ENDPOINT_URL": cloud.Endpoint} {
		t.Setenv(name, value)
	}
	p, other := startEmbedded(t, filepath.Join(t.TempDir(), "data"), "--config", allowMine(t)), start(t)
	run, secrets := exportRun(t, p)
	p.wantCode(0, "export", run, "s3://results/a/b")
	if _, stderr := p.wantCode(2, "export", run, "s3://results/a/b"); !strings.Contains(stderr, "--force") {
		t.Errorf("said %q", stderr)
	}
	p.wantCode(0, "export", run, "s3://results/a/b", "--force")
	files := tree(t, filepath.Join(cloud.Dir, "results", "a", "b"))
	wantExport(t, files, run)
	packed := filepath.Join(t.TempDir(), "x.tar.zst")
	p.wantCode(0, "export", run, packed)
	wantNoSecret(t, files, contentOf(t, packed), secrets)
	for _, wanted := range []string{"was imported", "was there already"} {
		eventually(t, func() error { // recent writes may not be searchable yet
			stdout, stderr, code := other.baictl("import", "s3://results/a/b")
			if code != 0 || !strings.Contains(stdout, wanted) {
				return fmt.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
			return nil
		})
	}
	back := filepath.Join(t.TempDir(), "back.tar.zst")
	other.wantCode(0, "export", run, back)
	if !bytes.Equal(contentOf(t, packed), contentOf(t, back)) {
		t.Error("the run is not the same in Elasticsearch")
	}
	wantAlike(t, p, other, run)
	if _, stderr := p.wantCode(2, "import", "s3://results/none/here"); !strings.Contains(stderr, "bai-export.json") {
		t.Errorf("of nothing: %q", stderr)
	}
}
