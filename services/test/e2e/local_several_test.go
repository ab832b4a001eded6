package e2e_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// requirePrograms skips a test where the machine lacks programs that it is about; where
// everything is to be tested, they must be there.
func requirePrograms(t *testing.T, programs map[string]string) {
	t.Helper()
	for program, from := range programs {
		tooltest.Program(t, program, from)
	}
}

// ranks builds the program that the runs of strategy mpi consist of.
func ranks(t *testing.T) string {
	t.Helper()
	requirePrograms(t, map[string]string{"mpirun": "openmpi-bin", "/usr/sbin/sshd": "openssh-server", "gcc": "gcc libc6-dev"})
	program := filepath.Join(t.TempDir(), "ranks")
	if out, err := exec.CommandContext(t.Context(), "gcc", "-o", program, "testdata/ranks.c", "-l:libmpi.so.40").CombinedOutput(); err != nil {
		t.Fatalf("build the ranks: %v\n%s", err, out)
	}
	return program
}

// mpi returns a descriptor of four ranks on two instances.
func mpi(line string) string {
	return strings.Replace(command(line), "[env]", `strategy = "mpi"
[hardware.distributed]
num_instances = 2
processes_per_instance = 2
[env]`, 1) + `
[[output.metrics]]
name = "ranks"
units = "count"
pattern = 'ranks=(\d+)'
[[output.metrics]]
name = "hosts"
units = "count"
pattern = 'hosts=(\d+)'
[[output.metrics]]
name = "total"
units = "count"
pattern = 'total=(\d+)'
`
}

func TestFourRanksOnTwoInstancesOfThisMachineFindEachOther(t *testing.T) {
	t.Parallel()
	program := ranks(t)
	p := start(t)
	run := p.submit(mpi(program))
	r := p.awaitComplete(run)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Fatalf("ended as %v\n%s", r, strings.Join(p.lines(run), "\n"))
	}
	if diff := cmp.Diff(map[string][]float64{"ranks": {4}, "hosts": {2}, "total": {6}}, p.metricValues(run)); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	for rank := range 4 {
		want := fmt.Sprintf("rank=%d host=bai-%s-1-worker-%d", rank, run, rank/2)
		if log := strings.Join(p.lines(run), "\n"); !strings.Contains(log, want) {
			t.Errorf("no line says %q:\n%s", want, log)
		}
	}
	wantNoPod(t, p, run)
	wantNoNetwork(t, p)
}

// metricValues returns the values of the metrics that the descriptor of a run names.
func (p *platform) metricValues(run string) map[string][]float64 {
	p.t.Helper()
	all := p.samples(run)
	maps.DeleteFunc(all, func(name string, _ []float64) bool { return strings.HasPrefix(name, "system.") })
	return all
}

// wantNoNetwork checks that no network of pods is left.
func wantNoNetwork(t *testing.T, p *platform) {
	t.Helper()
	eventually(t, func() error {
		left, err := os.ReadDir(filepath.Join(p.dir, "pods", "networks"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %v", left)
		}
		return err
	})
}

// rankOf returns the process of a rank of a program, zero where there is none.
func rankOf(program, rank string) int {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		cmdline, _ := os.ReadFile(proc + "/cmdline")
		environ, _ := os.ReadFile(proc + "/environ")
		var pid int
		if bytes.HasPrefix(cmdline, []byte(program)) && bytes.Contains(environ, []byte("OMPI_COMM_WORLD_RANK="+rank+"\x00")) {
			_, _ = fmt.Sscanf(filepath.Base(proc), "%d", &pid)
			return pid
		}
	}
	return 0
}

func TestAKilledRankIsNamedWithItsHost(t *testing.T) {
	t.Parallel()
	program := ranks(t)
	p := start(t)
	run := p.submit(mpi(program + " forever"))
	eventually(t, func() error {
		if log := strings.Join(p.lines(run), "\n"); !strings.Contains(log, "ranks=4") {
			return fmt.Errorf("it does not run yet: %v %s", p.get(run), log)
		}
		return nil
	})
	if err := syscall.Kill(rankOf(program, "3"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := p.awaitEnd(run)
	want := regexp.MustCompile(`rank 3 on bai-` + run + `-1-worker-1\S* failed first`)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetReason() != "Signaled" || !want.MatchString(r.GetMessage()) {
		t.Errorf("ended as %v, want it to say %s", r, want)
	}
	wantNoPod(t, p, run)
	wantNoNetwork(t, p)
}

func TestAProgramThatMpirunCannotStartIsNamedBeforeTheRunAndAfter(t *testing.T) {
	t.Parallel()
	requirePrograms(t, map[string]string{"mpirun": "openmpi-bin", "/usr/sbin/sshd": "openssh-server"})
	p := start(t)
	file := writeTemp(t, mpi("nosuchprogram --fast"))
	if stdout, stderr, code := p.baictl("preflight", file); code != 2 || !strings.Contains(stdout+stderr, "nosuchprogram") {
		t.Errorf("preflight: exit code %d, said %q, %q", code, stdout, stderr)
	}
	r := p.awaitEnd(p.submit(mpi("nosuchprogram --fast")))
	if r.GetReason() != "CommandNotFound" || r.GetFailureClass() != baiv1.FailureClass_FAILURE_CLASS_USER || !strings.Contains(r.GetMessage(), `could not start "nosuchprogram" on `) {
		t.Errorf("%v", r)
	}
}

func TestAGangSurvivesTheDeathOfItsPlatformAndNothingOfItSurvivesItsCancel(t *testing.T) {
	t.Parallel()
	program := ranks(t)
	p := start(t)
	run := p.submit(mpi(program + " forever"))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	p.kill()
	p.begin()
	eventually(t, func() error {
		if rankOf(program, "0") == 0 || rankOf(program, "3") == 0 {
			return fmt.Errorf("not all ranks run: %v", p.get(run))
		}
		return nil
	})
	if r := p.get(run); r.GetPhase() != baiv1.Phase_PHASE_RUNNING {
		t.Errorf("after the platform came back it is %v", r)
	}
	p.cancel(run)
	if r := p.awaitEnd(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_CANCELED {
		t.Errorf("canceled: %v", r)
	}
	if pid := rankOf(program, "0") + rankOf(program, "3"); pid != 0 {
		t.Errorf("process %d of it is left", pid)
	}
	wantNoPod(t, p, run)
	wantNoNetwork(t, p)
	if temporary, _ := filepath.Glob("/tmp/ompi.bai-" + run + "*"); len(temporary) > 0 {
		t.Errorf("left on the machine: %v", temporary)
	}
}

// TestARunThatNeedsMPISaysWhatToInstall is not parallel: it changes the
// environment.
func TestARunThatNeedsMPISaysWhatToInstall(t *testing.T) {
	requirePrograms(t, map[string]string{"/usr/sbin/sshd": "openssh-server"})
	path := t.TempDir()
	for _, program := range []string{"sh", "mkdir", "cp", "ssh"} {
		at, err := exec.LookPath(program)
		if err == nil {
			err = os.Symlink(at, filepath.Join(path, program))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	on := servers.flags(t, nil) // which need more than is to be found
	t.Setenv("PATH", path)
	p := startOn(t, on, filepath.Join(t.TempDir(), "data"))
	r := p.awaitEnd(p.submit(mpi("true")))
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetReason() != "CommandNotFound" || !strings.Contains(r.GetMessage(), "needs mpirun") || !strings.Contains(r.GetMessage(), "install openmpi-bin") {
		t.Errorf("ended as %v", r)
	}
}

func TestPodsWithoutNamespacesAreNotJoined(t *testing.T) {
	t.Parallel()
	p := start(t, "--no-namespaces")
	eventually(t, func() error {
		if warning := "so benchmarks can read and remove the platform's data in " + p.dir; strings.Count(p.log.String(), warning) != 1 {
			return fmt.Errorf("the platform does not say once %q", warning)
		}
		return nil
	})
	r := p.awaitEnd(p.submit(mpi("true")))
	if r.GetReason() != "NeedsNamespaces" || !strings.Contains(r.GetMessage(), "no_namespaces") {
		t.Errorf("ended as %v", r)
	}
}

// servedDescriptor returns a descriptor of a client that asks a server.
func servedDescriptor(client, server string) string {
	return strings.Replace(command(client), `[env]`, `strategy = "inference"
[env]`, 1) + fmt.Sprintf(`
[[output.metrics]]
name = "answer"
units = "count"
pattern = 'answer=(\d+)'
[server.hardware]
instance_type = "t3.small"
[server.env]
docker_image = "debian:12-slim"
ports = [8080]
start_command = %q
[server.env.readiness_probe]
path = "/ping"
port = 8080
period_seconds = 1
[[server.output.metrics]]
name = "asked"
units = "count"
pattern = 'asked=(\d+)'
`, server)
}

func TestBothEndsOfAnInferenceAreMeasuredAndRunsDoNotMeet(t *testing.T) {
	t.Parallel()
	program := answerer(t)
	p := start(t, "--slots", "2")
	client := program + " http://${INFERENCE_SERVER_HOST}:${INFERENCE_SERVER_PORT}"
	runs := []string{p.submit(servedDescriptor(client, program)), p.submit(servedDescriptor(client, program))} // on one port
	for _, run := range runs {
		r := p.awaitComplete(run)
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Fatalf("ended as %v\n%s", r, strings.Join(p.lines(run), "\n"))
		}
		if diff := cmp.Diff(map[string][]float64{"answer": {40, 41, 42}, "asked": {0, 1, 2}}, p.metricValues(run)); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
	}
	r := p.awaitEnd(p.submit(servedDescriptor(client, "sleep 600") + "[limits]\npending_deadline = \"3s\"\n"))
	if r.GetReason() != "NotReady" || !strings.Contains(r.GetMessage(), "8080/ping did not answer within limits.pending_deadline, 3s") {
		t.Errorf("with a server that never answers it ended as %v", r)
	}
	r = p.awaitEnd(p.submit(servedDescriptor(client, "sh -c 'sleep 1; exit 3'")))
	if r.GetReason() != "NonZeroExit" || !strings.Contains(r.GetMessage(), "the server") {
		t.Errorf("with a server that fails it ended as %v", r)
	}
	wantNoNetwork(t, p)
}

// TestARunOfSeveralPodsIsKeptAndRunsNothing: its server, which would go on, is ended,
// and the run after it finds the slot free.
func TestARunOfSeveralPodsIsKeptAndRunsNothing(t *testing.T) {
	t.Parallel()
	requirePrograms(t, map[string]string{"python3": "python3"})
	p := start(t, "--slots", "1")
	inference := strings.ReplaceAll(servedDescriptor("true", "python3 -m http.server 8080"), "/ping", "/")
	roles := withRoles(role("server", "", "exec python3 -m http.server 8080", "ready = { port = 8080 }"), role("client", "", "true", "starts_after = [\"server\"]"))
	for _, text := range []string{inference, roles} {
		if r := p.awaitEnd(p.submit(text + "[limits]\nkeep = \"1h\"\n")); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Fatalf("ended as %v", r)
		}
	}
	eventually(t, func() error {
		ended, err := filepath.Glob(filepath.Join(p.dir, "pods", "pods", "*", "volumes", "bai", "run", "exit.json"))
		if left := supervisors(p.dir); err == nil && (len(left) > 0 || len(ended) != 4) {
			err = fmt.Errorf("of 4 pods %d are there and have ended; supervisors: %v", len(ended), left)
		}
		return err
	})
}
