package verdict_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/verdict"
)

// hydraVerdict returns the verdict on a launcher that ended with an exit code and these last lines.
func hydraVerdict(code int32, says string) string {
	p := podOfRole("launcher", exits(cluster.ContainerBenchmark, code, "Error", says))
	v := verdict.Decide(verdict.Observation{Seen: cluster.Snapshot{Job: job(role("launcher"), failed(11, "")), Pods: pods(p)}, Now: metav1.Now().Time})
	_, message, _ := strings.Cut(v.Message, "the launcher on ")
	return string(v.Class) + " " + string(v.Reason) + ": " + message
}

// The ends were recorded with MPICH 4.0.2 of Debian and Intel MPI 2021.12, four ranks each, of which rank 3 does as the name of the file
// says.
func TestTheEndOfRanksUnderHydraIsToldAsFarAsItIsKnown(t *testing.T) {
	t.Parallel()
	const one = "; one rank was killed, or ended without MPI_Finalize, and mpiexec killed the others"
	abort := "n1 ended with exit code 7: Abort(7) on node 3 (rank 3 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 7) - process 3; rank 3 failed first"
	for name, tt := range map[string]struct {
		code int32
		want string
	}{
		"mpich-abort": {7, "user NonZeroExit: " + abort},
		"intel-abort": {7, "user NonZeroExit: " + abort},
		"mpich-kill":  {9, "user Signaled: n1 was ended by signal 9 SIGKILL (exit code 9): rank=2 of 4 host=vm" + one},
		"intel-kill":  {255, "user Signaled: n1 was ended by signal 9 SIGKILL (exit code 255): rank=3 of 4 host=vm" + one},
		"mpich-segv":  {11, "user Signaled: n1 was ended by signal 11 SIGSEGV (exit code 11): 9  ./ranks-mpich(+0x1131) [0x562852294131]"},
		"intel-segv":  {255, "user Signaled: n1 was ended by signal 11 SIGSEGV (exit code 255): rank=3 of 4 host=vm; rank 3 on vm failed first"},
		"mpich-exit":  {5, "user NonZeroExit: n1 ended with exit code 5: rank=1 of 4 host=vm"},
		"intel-exit":  {255, "user Signaled: n1 was ended by signal 9 SIGKILL (exit code 255): rank=1 of 4 host=vm" + one},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, hydraVerdict(tt.code, recordedMPI(t, name))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinesThatHydraPrintedAreNotTheProgramsLastLine(t *testing.T) {
	t.Parallel()
	_, cut, _ := strings.Cut(recordedMPI(t, "intel-segv"), "RANK 0")
	if got := hydraVerdict(255, "PID"+cut); strings.Contains(got, "KILLED BY") || !strings.Contains(got, "SIGSEGV") {
		t.Errorf("of a part of its descriptions: %q", got)
	}
	ranks := "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 31 RUNNING AT w-0.w\n=   EXIT CODE: 3\n"
	if got := hydraVerdict(3, "step 5\n"+ranks); got != "user NonZeroExit: n1 ended with exit code 3: step 5; a process on w-0.w failed first" {
		t.Errorf("of a process that MPICH names: %q", got)
	}
	if got := hydraVerdict(3, ranks+"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Odd (signal 999)\n"); !strings.HasPrefix(got, "user NonZeroExit: ") {
		t.Errorf("of a signal that there is not: %q", got)
	}
}
