package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestValidateListsEveryFaultWithItsPlace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bad.toml")
	write(t, file, `spec_version = "0.1.0"
[info]
descriptio = "misspelt"
[hardware]
instance_type = 3
strategy = "singel_node"
[env]
docker_image = "debian:12-slim"
privileged = "yes"
[[output.metrics]]
name = "loss"
units = "1"
pattern = "(?<=x)y"
`)
	_, stderr, code := baictl(t, "127.0.0.1:1", "validate", file)
	if code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	for _, place := range []string{":3:1: info.descriptio: ", ":5:17: hardware.instance_type: ", ":6:12: hardware.strategy: ", ":9:14: env.privileged: ", ":13:12: output.metrics[0].pattern: "} {
		if !strings.Contains(stderr, file+place) {
			t.Errorf("no fault at %s in\n%s", place, stderr)
		}
	}
	if lines := strings.Count(stderr, file+":"); lines != 5 {
		t.Errorf("%d faults, want 5:\n%s", lines, stderr)
	}
}

func TestWhatIsNoDescriptorGetsOneClearMessage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tt := range map[string]struct{ content, want string }{
		"empty":     {"", "empty"},
		"10 MB":     {strings.Repeat("# comment\n", 1<<20), "256 KiB"},
		"binary":    {"\x7fELF\x00\x00\x00", "binary"},
		"not UTF-8": {"spec_version = \"\xff\xfe\"\n", "UTF-8"},
		"bad TOML":  {"spec_version = \n", ":1:"},
	} {
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".toml")
		write(t, file, tt.content)
		_, stderr, code := baictl(t, "127.0.0.1:1", "validate", file)
		if code != 2 || !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, file) {
			t.Errorf("%s: exit code %d, said %q; want 2 and %q", name, code, tail(stderr, 500), tt.want)
		}
		if lines := strings.Count(strings.TrimSpace(stderr), "\n"); lines > 1 {
			t.Errorf("%s: said %d lines:\n%s", name, lines+1, tail(stderr, 1000))
		}
	}
}

func TestAnEngineThatIsNotHereIsRefused(t *testing.T) {
	t.Parallel()
	p := start(t)
	for engine, refused := range map[string]bool{"default": false, "local": false, "kubernetes": true, "aws.sagemaker": true} {
		file := writeTemp(t, strings.Replace(script("true"), "[hardware]", fmt.Sprintf("execution_engine = %q\n[hardware]", engine), 1))
		_, stderr, code := p.baictl("submit", file)
		if (code == 2) != refused || refused && !strings.Contains(stderr, fmt.Sprintf("this platform has no engine %q (use one of default, local, or leave it out)", engine)) {
			t.Errorf("submit with %s: exit code %d, said %q", engine, code, stderr)
		}
		stdout, stderr, code := p.baictl("preflight", file)
		if (code == 2) != refused || refused && !strings.Contains(oneLine(stdout), "which this platform does not have: it has default, local") {
			t.Errorf("preflight with %s: exit code %d, said %q", engine, code, stdout+stderr)
		}
	}
}

func TestAReceiverThatIsNotHereIsRefused(t *testing.T) {
	t.Parallel()
	p := start(t)
	file := writeTemp(t, script("true")+"[[alarms]]\nwhen = \"failed\"\nnotify = [\"perf-team\"]\n")
	_, stderr, code := p.baictl("submit", file)
	if code != 2 || !strings.Contains(oneLine(stderr), `this platform has no receiver "perf-team" for the namespace "default" (use one of submitter)`) {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
}

func TestEachWayToFailHasItsReason(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "4")
	for name, tt := range map[string]struct {
		descriptor string
		reason     string
		class      baiv1.FailureClass
		says       string
		exit       int32
	}{
		"a command that does not exist":  {command("/no/such/command now"), "CommandNotFound", baiv1.FailureClass_FAILURE_CLASS_USER, "/no/such/command", 127},
		"a file that is no program":      {command("/etc/hostname"), "CommandNotFound", baiv1.FailureClass_FAILURE_CLASS_USER, "/etc/hostname", 126},
		"exit 3":                         {script("exit 3"), "NonZeroExit", baiv1.FailureClass_FAILURE_CLASS_USER, "3", 3},
		"killed by a signal":             {script("kill -9 $$"), "Signaled", baiv1.FailureClass_FAILURE_CLASS_USER, "SIGKILL", 137},
		"an image's entrypoint":          {strings.Split(command("x"), "[ml]")[0], "NeedsImage", baiv1.FailureClass_FAILURE_CLASS_USER, "image", 0},
		"more GPUs than the machine has": {strings.Replace(script("true"), "[hardware]", "[hardware]\ngpus = 99", 1), "NeedsGPU", baiv1.FailureClass_FAILURE_CLASS_USER, "GPU", 0},
	} {
		r := p.awaitEnd(p.submit(tt.descriptor))
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetReason() != tt.reason || r.GetFailureClass() != tt.class || !strings.Contains(r.GetMessage(), tt.says) || r.GetExitCode() != tt.exit {
			t.Errorf("%s: %v; want %s, %s, exit code %d and a message with %q", name, r, tt.reason, tt.class, tt.exit, tt.says)
		}
	}
	if _, _, code := p.baictl("run", writeTemp(t, script("exit 3"))); code != 1 {
		t.Errorf("baictl run of a run that fails exits with %d, want 1", code)
	}
}

func TestASourceThatMisbehavesFailsTheRunOrIsTriedAgain(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/fine", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fine\n") })
	mux.HandleFunc("/flaky", func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) == 1 {
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "fine\n")
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for b := make([]byte, 1<<20); ; {
			if _, err := w.Write(b); err != nil || r.Context().Err() != nil {
				return
			}
		}
	})
	mux.HandleFunc("/stalls", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "a little")
		flush(w)
		<-r.Context().Done()
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	config := filepath.Join(t.TempDir(), "bai.toml")
	write(t, config, "[fetcher.sources]\nmax_size = 50000000\nstall = \"2s\"\nattempts = 3\nretry = \"50ms\"\n")
	p := start(t, "--slots", "4", "--config", config)
	source := func(path, more string) string {
		return script("cat /data/x", fmt.Sprintf("[[data.sources]]\nsrc = \"%s%s\"\npath = \"/data/x\"\n%s", s.URL, path, more))
	}
	for name, tt := range map[string]struct{ descriptor, reason, says string }{
		"404":              {source("/none", ""), "FetchFailed", "404"},
		"500, then 200":    {source("/flaky", ""), "", ""},
		"a wrong checksum": {source("/fine", "sha256 = \""+strings.Repeat("0", 64)+"\""), "ChecksumMismatch", "sha256"},
		"an endless body":  {source("/endless", ""), "DataTooLarge", "50"},
		"a stalled body":   {source("/stalls", ""), "FetchFailed", "stall"},
		"a redirect loop":  {source("/loop", ""), "FetchFailed", "redirect"},
	} {
		run := p.submit(tt.descriptor)
		r := p.awaitEnd(run)
		if r.GetReason() != tt.reason || !strings.Contains(r.GetMessage(), tt.says) {
			t.Errorf("%s: %v; want %s and a message with %q", name, r, tt.reason, tt.says)
		}
		if tt.reason == "" && r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("%s: %v; want success", name, r)
		}
	}
}

func TestABenchmarkThatMisbehavesDoesNoHarm(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "bai.toml")
	write(t, config, "[executor.pods]\ngrace = \"5s\"\n")
	p := start(t, "--slots", "4", "--config", config)
	t.Run("what removes all that it finds removes nothing of the platform's", func(t *testing.T) {
		run := p.submit(script(fmt.Sprintf(`cat %[1]s/token.key && echo stolen; rm -rf %[1]s/* %[1]s; ls -A %[1]s | wc -l; exit 0`, p.dir)))
		if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("ended as %v", r)
		}
		if lines := p.lines(run); slices.Contains(lines, "out stolen") || !slices.Contains(lines, "out 0") {
			t.Errorf("it printed %q, want an empty folder", lines)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "token.key")); err != nil {
			t.Errorf("the platform's key: %v", err)
		}
	})
	t.Run("what forks a daemon leaves nothing", func(t *testing.T) {
		run := p.submit(script("setsid sleep 600 & echo parent"))
		if r := p.awaitEnd(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("ended as %v", r)
		}
		wantNoPod(t, p, run)
	})
	t.Run("what ignores SIGTERM is killed", func(t *testing.T) {
		run := p.submit(script(`trap "" TERM; echo ready; while :; do sleep 1; done`))
		p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
		begin := time.Now()
		p.cancel(run)
		if r := p.awaitEnd(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_CANCELED {
			t.Errorf("ended as %v", r)
		}
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("took %s to end", took)
		}
	})
}

func TestWhatAnswersTheTERMOfACancelIsCanceledAndItsExitCodeIsKept(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "2")
	for _, code := range []int32{0, 7} {
		run := p.submit(script(fmt.Sprintf(`trap "exit %d" TERM; echo ready; while :; do sleep 0.1; done`, code)))
		p.awaitReady(run)
		p.cancel(run)
		r := p.awaitEnd(run)
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_CANCELED || r.ExitCode == nil || r.GetExitCode() != code {
			t.Errorf("ended as %v; want it canceled, with exit code %d", r, code)
		}
	}
}

func TestBadOutputLosesNoOther(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "4")
	t.Run("invalid UTF-8 and lines of 10 MB are kept as far as they can be", func(t *testing.T) {
		run := p.submit(script(`printf 'a\377b\n'; head -c 10000000 /dev/zero | tr '\0' x; echo; echo end`))
		if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("ended as %v", r)
		}
		lines := p.lines(run)
		if len(lines) != 3 || lines[0] != "out a\uFFFDb" || lines[2] != "out end" || len(lines[1]) > 1<<20 {
			t.Errorf("%d lines, the first %q, want a line with a replacement, one cut, and the end", len(lines), lines[0])
		}
	})
	t.Run("bad metric lines are told and lose no other", func(t *testing.T) {
		run := p.submit(script(`
echo 'not json' >>"$BENCHMARK_AI_FILE"
echo '{"x": NaN, "y": Infinity}' >>"$BENCHMARK_AI_FILE"
echo '{"z": 1}' >>"$BENCHMARK_AI_FILE"`))
		if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("ended as %v", r)
		}
		samples := p.samples(run)
		if len(samples["z"]) != 1 || len(samples["x"]) != 1 || samples["x"][0] == samples["x"][0] {
			t.Errorf("samples %v, want z, and a NaN for x", samples)
		}
	})
}

func TestMoreOutputThanIsStoredFillsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 80 MB: run without -short")
	}
	t.Parallel()
	p := start(t, "--config", writeTemp(t, "[executor.pods]\nmax_log = 33554432\n"))
	run := p.submit(script(`yes $(printf %0999d 0 | tr 0 x) | head -n 80000; echo end >&2`))
	r := p.awaitComplete(run)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v", r)
	}
	const lines = 80_001
	if c := r.GetCompleteness(); c.GetDropped() < 40_000 || c.GetLines() < 20_000 || c.GetLines()+c.GetDropped() != lines {
		t.Errorf("%d lines were written: %v", lines, c)
	}
}

// flush sends the bytes written so far.
func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeTemp(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "descriptor.toml")
	write(t, file, content)
	return file
}

// TestWhatARunSaysOfItsEndIsWhatItWroteLast has a command write half a line to one
// stream, and its complaint to the other.
func TestWhatARunSaysOfItsEndIsWhatItWroteLast(t *testing.T) {
	t.Parallel()
	p := start(t)
	r := p.awaitEnd(p.submit(script("printf 'hello data'; sleep 0.2; echo 'ls: cannot access x' >&2; exit 2")))
	if want := "exit code 2: ls: cannot access x"; !strings.HasSuffix(r.GetMessage(), want) {
		t.Errorf("it says %q, want %q at its end", r.GetMessage(), want)
	}
	long := writeTemp(t, script("echo $LONG", "[env.vars]", `LONG = "`+strings.Repeat("x", 200_000)+`"`))
	if _, stderr, code := p.baictl("submit", long); code != 2 || !strings.Contains(stderr, "env.vars.LONG") {
		t.Errorf("a variable of 200 KB: exit %d, %.300s", code, stderr)
	}
}
