package e2e_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// intelMPI returns the folder of Intel MPI, and the lines of a script with the environment that its programs need.
func intelMPI(t *testing.T) (root, environ string) {
	t.Helper()
	requirePrograms(t, map[string]string{"mpirun": "openmpi-bin", "/usr/sbin/sshd": "openssh-server", "python3": "python3-venv"})
	python, err := kit.Python(t.Context(), "impi-rt", "2021.12.1")
	if err != nil {
		tooltest.Missing(t, "impi-rt of PyPI: %v", err)
	}
	root = filepath.Dir(filepath.Dir(python))
	return root, "#!/bin/sh -e\nexport I_MPI_ROOT=" + root + " FI_PROVIDER=tcp FI_PROVIDER_PATH=" + root + "/lib/libfabric/prov PATH=" + root + "/bin:$PATH\n" +
		"export LD_LIBRARY_PATH=$I_MPI_ROOT/lib:$I_MPI_ROOT/lib/mpi/release:$I_MPI_ROOT/lib/libfabric\n"
}

// TestIntelMPIFindsItsHostsAndItsEndsAreTold runs ranks under the mpiexec of Intel MPI, which finds its hosts and the way to them in the
// environment alone.
func TestIntelMPIFindsItsHostsAndItsEndsAreTold(t *testing.T) {
	t.Parallel()
	requireLong(t)
	requirePrograms(t, map[string]string{"gcc": "gcc libc6-dev"})
	root, environ := intelMPI(t)
	program := filepath.Join(t.TempDir(), "mpiranks")
	if out, err := exec.CommandContext(t.Context(), "gcc", "-o", program, "testdata/mpiranks/ranks.c", //nolint:gosec // the test's
		"-L"+root+"/lib", "-L"+root+"/lib/mpi/release", "-l:libmpi.so.12", "-Wl,--allow-shlib-undefined").CombinedOutput(); err != nil {
		t.Fatalf("build the ranks: %v\n%s", err, out)
	}
	p := start(t)
	for what, want := range map[string]struct{ reason, message string }{
		"":      {"", `finished \(exit code 0\)`},
		"abort": {"NonZeroExit", `exit code 7: .*; rank 3 failed first`},
		"segv":  {"Signaled", `signal 11 SIGSEGV .*; rank 3 on bai-\S+-worker-1\S* failed first`},
	} {
		script := "'''\n" + environ + "exec mpiexec.hydra -n 4 " + program + " " + what + "\n'''"
		run := p.submit(strings.Replace(mpi("SCRIPT"), `"SCRIPT"`, script, 1))
		r := p.awaitComplete(run)
		if (r.GetOutcome() == baiv1.Outcome_OUTCOME_SUCCEEDED) != (want.reason == "") || r.GetReason() != want.reason || !regexp.MustCompile(want.message).MatchString(r.GetMessage()) {
			t.Errorf("%q: it ended as %v\n%s", what, r, strings.Join(p.lines(run), "\n"))
		}
		if log := strings.Join(p.lines(run), "\n"); !strings.Contains(log, "ranks=4 hosts=2") {
			t.Errorf("%q: not all ranks are there:\n%s", what, log)
		}
	}
}
