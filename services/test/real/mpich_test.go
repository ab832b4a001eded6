package real_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// mpichRun returns the descriptor of a run of four ranks on two instances, in the image with MPICH.
func mpichRun(command string) string {
	return `spec_version = "0.1.0"
[info]
description = "ranks of MPICH"
[hardware]
cpus = "20m"
strategy = "mpi"
[hardware.distributed]
num_instances = 2
processes_per_instance = 2
[env]
docker_image = "local/mpich:1"
[ml]
benchmark_code = "` + command + `"
`
}

// mpichCases are runs of MPICH by their commands. The notice is a line of the log.
func mpichCases() map[string]failureCase {
	return map[string]failureCase{
		"mpiranks":                    {want: runStatus{Outcome: "succeeded"}, messagePattern: `finished \(exit code 0\)`, notice: "ranks=4 hosts=2"},
		"mpiexec.mpich -n 3 mpiranks": {want: runStatus{Outcome: "succeeded"}, messagePattern: `finished \(exit code 0\)`, notice: "ranks=3 hosts=2"},
		"mpiranks abort": { // mpiexec ends its proxies at once, and with them at times the rank's last words
			want:           runStatus{Outcome: "failed", FailureClass: "user", Reason: "NonZeroExit"},
			messagePattern: `ended with exit code 7: (.*MPI_Abort\(MPI_COMM_WORLD, 7\).*; rank 3 failed first|.*ranks=4 hosts=2|rank=\d host=\S+)`,
		},
		"mpiranks segv": { // between hosts, mpiexec describes the ranks that it killed alone
			want:           runStatus{Outcome: "failed", FailureClass: "user", Reason: "Signaled"},
			messagePattern: `was ended by signal (9 SIGKILL|11 SIGSEGV)`,
		},
		"mpiranks wait": {
			act:            killBenchmark("worker-1"),
			want:           runStatus{Outcome: "failed", FailureClass: "user", Reason: "Signaled"},
			messagePattern: `was ended by signal 9 SIGKILL .*; one rank was killed, or ended without MPI_Finalize`,
		},
		"nosuchprogram": {
			want:           runStatus{Outcome: "failed", FailureClass: "user", Reason: "CommandNotFound"},
			messagePattern: `could not start "nosuchprogram" on \S+worker-\d\S*: no such file or directory`,
		},
	}
}

// TestMPICHOfDebianRunsOnTwoNodes runs ranks of MPICH, which finds its hosts and the way to them in the environment alone.
func TestMPICHOfDebianRunsOnTwoNodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "[executor.pods]\ngrace = \"4s\"\n", "--slots", "24")
	importDebianImage(t, w, kit.MPICH())
	dir := t.TempDir()
	var all sync.WaitGroup
	for command, h := range mpichCases() {
		all.Go(func() {
			h.descriptorText = mpichRun(command)
			end, _, err := w.provoke(t.Context(), filepath.Join(dir, command+".toml"), h)
			if err != nil {
				t.Errorf("%s: %v", command, err)
				return
			}
			out, _, _ := w.try(t.Context(), "logs", end.ID) // none, then
			if err := h.check(end); err != nil || !strings.Contains(out, h.notice) {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
			t.Logf("%s: %s %s: %s", command, end.Outcome, end.Reason, end.Message)
		})
	}
	all.Wait()
	awaitCleared(t, w.cluster, w.scope)
}
