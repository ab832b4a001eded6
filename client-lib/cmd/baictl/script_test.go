package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
)

// newCodeHome makes a home with a context of p's, a folder with code, a descriptor that
// wants code and one that does not.
func newCodeHome(t *testing.T, p *baitest.Platform) home {
	t.Helper()
	h := home{t, t.TempDir()}
	if p != nil {
		h.must("config", "set-context", "here", "--server", p.Addr(), "--owner", "ann")
	}
	const plain = "spec_version = \"1.0\"\n[info]\ndescription = \"hello\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"a:1\"\n[ml]\nbenchmark_code = \"$(BAI_SCRIPTS_PATH)/run.sh\"\n"
	for name, text := range map[string]string{
		"plain.toml": plain, "wants.toml": plain + "[ml.script]\nscript = \"code.tar\"\n", "code/run.sh": "#!/bin/sh\necho hello\n", "code/lib/a.py": "print(1)\n",
	} {
		path := filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func TestCodeIsSentOnceAndItsRunsHaveItsDigest(t *testing.T) {
	p := baitest.Start(t)
	h := newCodeHome(t, p)
	first := strings.TrimSpace(h.must("submit", "wants.toml", "plain.toml", "--script", "code"))
	second := strings.TrimSpace(h.must("submit", "wants.toml", "--script", "code"))
	again := strings.TrimSpace(h.must("rerun", second))
	if n := p.Calls("UploadScript"); n != 1 || len(p.Scripts()) != 1 {
		t.Errorf("%d uploads, %d kept", n, len(p.Scripts()))
	}
	var digest string
	for digest = range p.Scripts() {
	}
	for _, s := range p.Submits() {
		if s.GetScriptSha256() != digest {
			t.Errorf("submitted with %q, want %q", s.GetScriptSha256(), digest)
		}
	}
	for _, id := range append(strings.Fields(first), second, again) {
		if got := h.must("get", id); !strings.Contains(got, "sha256 "+digest) {
			t.Errorf("get says\n%s", got)
		}
	}
	repro := h.must("repro", second)
	for _, want := range []string{digest, "baictl submit " + second + ".toml --script DIR", "the same files have the same digest"} {
		if !strings.Contains(repro, want) {
			t.Errorf("repro says nothing of %s:\n%s", want, repro)
		}
	}
	if err := os.WriteFile(filepath.Join(h.dir, "code", "run.sh"), []byte("#!/bin/sh\necho changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must("rerun", second, "--script", "code")
	if all := p.Submits(); len(p.Scripts()) != 2 || all[len(all)-1].GetScriptSha256() == digest {
		t.Errorf("code that has changed is not sent")
	}
}

func TestWhatIsWrongWithCodeIsSaidBeforeAnythingIsSent(t *testing.T) {
	p := baitest.Start(t)
	h := newCodeHome(t, p)
	if err := os.Symlink("/etc/passwd", filepath.Join(h.dir, "code", "secret")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"submit wants.toml":                   "ml.script: the descriptor wants code to be sent along (code.tar) (say where it is: --script DIR)",
		"run wants.toml":                      "--script DIR",
		"submit wants.toml --script nowhere":  `--script: pack "nowhere": no such file or directory`,
		"submit wants.toml --script code":     `--script: pack "code": "secret" is a link that leads out of the folder, to "/etc/passwd"`,
		"submit plain.toml --script code":     `"secret" is a link`,
		"rerun " + helloID + " --script none": "there is no run",
		"validate wants.toml --script code":   `"secret" is a link`,
		"render wants.toml --script code":     `"secret" is a link`,
	} {
		expect(t, h.run(nil, strings.Fields(line)...), 2, want)
	}
	if p.Calls("SubmitRun")+p.Calls("UploadScript") != 0 {
		t.Error("something was sent")
	}
}

func TestWhatCodeMakesOfARunIsRenderedWithoutAPlatform(t *testing.T) {
	h := newCodeHome(t, nil)
	for line, want := range map[string]bool{"render plain.toml": false, "render plain.toml --script code": true, "render wants.toml": true} {
		if got := h.must(strings.Fields(line)...); strings.Contains(got, "value: /bai/scripts") != want {
			t.Errorf("%s: %t, want %t", line, !want, want)
		}
	}
	if got := h.must("validate", "wants.toml", "--script", "code"); !strings.Contains(got, "wants.toml: valid") {
		t.Error(got)
	}
}

func TestCodeThatMayHoldSecretsIsNotSentAndSaid(t *testing.T) {
	p := baitest.Start(t)
	h := newCodeHome(t, p)
	for _, name := range []string{"code/.env", "code/lib/a.pem"} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte("KEY=1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := runPiped(t, p.Addr(), "submit", filepath.Join(h.dir, "wants.toml"), "--script", filepath.Join(h.dir, "code"))
	expect(t, got, 0, "baictl: not sent, because it may hold secrets: .env, lib/a.pem (to send one: the line !NAME in .baiignore)\n")
	for _, content := range p.Scripts() {
		if strings.Contains(content, "KEY=1") {
			t.Error("a secret was sent along")
		}
	}
}
