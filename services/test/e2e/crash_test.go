package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// counter prints and emits the numbers from 1 to n, one every 10 ms.
func counter(n int) string { return gatedCounter("/", n) }

// gatedCounter is a counter that begins once a file exists.
func gatedCounter(gate string, n int) string {
	return script(fmt.Sprintf(`
until [ -e %s ]; do sleep 0.05; done
i=0
while [ $i -lt %d ]; do
  i=$((i + 1))
  echo "line $i"
  echo "{\"i\": $i}" >>"$BENCHMARK_AI_FILE"
  sleep 0.01
done
exit 7`, gate, n))
}

// wantCounted checks that a run counted to n, every number once, and in order.
func wantCounted(t *testing.T, p *platform, run string, n int) {
	t.Helper()
	var lines []string
	var samples []float64
	for i := range n {
		lines = append(lines, fmt.Sprintf("out line %d", i+1))
		samples = append(samples, float64(i+1))
	}
	if diff := cmp.Diff(lines, p.lines(run)); diff != "" {
		t.Errorf("lines of %s (-want +got):\n%s", run, diff)
	}
	if diff := cmp.Diff(samples, p.samples(run)["i"]); diff != "" {
		t.Errorf("samples of %s (-want +got):\n%s", run, diff)
	}
}

func TestARunSurvivesTheDeathOfItsPlatform(t *testing.T) {
	t.Parallel()
	p := start(t)
	run := p.submit(counter(300))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	p.kill()
	p.begin()
	r := p.awaitComplete(run)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetReason() != "NonZeroExit" || r.GetExitCode() != 7 {
		t.Errorf("ended as %v, want exit 7 of the benchmark's own", r)
	}
	wantCounted(t, p, run, 300)
}

func TestARunThatEndsWhileItsPlatformIsDeadEndsAsItWouldHave(t *testing.T) {
	t.Parallel()
	p, gate := start(t), filepath.Join(t.TempDir(), "gate")
	run := p.submit(gatedCounter(gate, 50))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	p.kill()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		ends, _ := filepath.Glob(filepath.Join(p.dir, "pods", "pods", "*", "volumes", "bai", "run", "exit.json"))
		if len(ends) == 0 {
			return fmt.Errorf("the benchmark has not ended")
		}
		return nil
	})
	p.begin()
	if r := p.awaitComplete(run); r.GetReason() != "NonZeroExit" || r.GetExitCode() != 7 {
		t.Errorf("ended as %v, want exit 7 of the benchmark's own", r)
	}
	wantCounted(t, p, run, 50)
}

func TestARunWhoseSupervisorIsKilledTooHasDisappeared(t *testing.T) {
	t.Parallel()
	p := start(t)
	run := p.submit(script("exec sleep 600"))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	p.kill()
	for _, pid := range supervisors(p.dir) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	p.begin()
	r := p.awaitEnd(run)
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetFailureClass() != baiv1.FailureClass_FAILURE_CLASS_INFRA || r.GetReason() != "JobDisappeared" {
		t.Errorf("ended as %v, want an infra failure JobDisappeared", r)
	}
}

// lostPod is a way in which a run with a step that always runs loses its pod.
type lostPod struct {
	away   bool // while the platform is away
	again  bool // and the platform is killed while the step runs in another pod
	cancel bool // while the run is canceled
}

func TestAStepThatAlwaysRunsDoesSoInAnotherPodIfItsPodIsLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]lostPod{
		"while the platform runs":           {},
		"while the platform is away":        {away: true},
		"while the run is canceled":         {cancel: true},
		"and the platform is killed during": {again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run(t)
		})
	}
}

func (tt lostPod) run(t *testing.T) {
	t.Helper()
	p, gate := start(t), filepath.Join(t.TempDir(), "gate")
	run := p.submit(withSteps("echo ready; sleep 600", step("drop", "always", "echo dropping; until test -e "+gate+"; do sleep 0.05; done; echo dropped", "")))
	p.awaitReady(run)
	tt.lose(p, run)
	if tt.again {
		p.awaitLines(run, "out dropping", 1)
		p.kill()
		p.begin()
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := p.awaitEnd(run)
	if want := map[bool]string{false: "JobDisappeared", true: "CanceledByUser"}[tt.cancel]; r.GetReason() != want || strings.Contains(r.GetMessage(), "drop") {
		t.Errorf("ended as %v, want %s", r, want)
	}
	p.awaitLines(run, "out dropped", 1)
	wantNoPod(t, p, run)
}

// lose kills the pods of the platform.
func (tt lostPod) lose(p *platform, run string) {
	p.t.Helper()
	if tt.away {
		p.kill()
		defer p.begin()
	}
	if tt.cancel {
		p.cancel(run)
		p.awaitPhase(run, baiv1.Phase_PHASE_CANCELING)
	}
	for _, pid := range supervisors(p.dir) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			p.t.Fatal(err)
		}
	}
}

// awaitLines waits until a line is in the log of a run, so many times.
func (p *platform) awaitLines(run, line string, want int) {
	p.t.Helper()
	eventually(p.t, func() error {
		lines, n := p.lines(run), 0
		for _, l := range lines {
			if l == line {
				n++
			}
		}
		if n != want {
			return fmt.Errorf("the line %q was written %d times, want %d: %q", line, n, want, lines)
		}
		return nil
	})
}

// supervisors returns the process IDs of the pods' supervisors.
func supervisors(dir string) []int {
	var pids []int
	for _, line := range processesOf(dir) {
		if strings.Contains(line, "supervise") {
			pid, _ := strconv.Atoi(strings.Fields(line)[0])
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestNoRunIsLostWhenThePlatformIsKilledAtRandom(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "4")
	var runs []string
	for kill := range 20 {
		timer := time.After(time.Duration(50+rand.IntN(1200)) * time.Millisecond)
		killed := make(chan struct{})
		go func() {
			<-timer
			_ = p.cmd.Process.Kill()
			close(killed)
		}()
		for i := range 5 {
			id, err := p.trySubmit(fmt.Sprintf("%d-%d", kill, i))
			if err != nil {
				break
			}
			runs = append(runs, id)
		}
		<-killed
		_ = p.cmd.Wait() // says that it was killed
		p.begin()
	}
	if len(runs) < 20 {
		t.Errorf("only %d runs were accepted", len(runs))
	}
	for _, run := range runs {
		if r := p.awaitEnd(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
			t.Errorf("run %s ended as %v", run, r)
		}
	}
	t.Logf("%d runs in 20 kills, all ended", len(runs))
}

// trySubmit submits a short run, and returns an error once the platform is away.
func (p *platform) trySubmit(key string) (string, error) {
	r, err := p.api.SubmitRun(p.t.Context(), &baiv1.SubmitRunRequest{
		DescriptorToml: []byte(script("echo done")), Owner: "tester", IdempotencyKey: key,
	})
	if err != nil && status.Code(err) != codes.Unavailable {
		p.t.Errorf("submit: %v, want UNAVAILABLE or a run", err)
	}
	return r.GetRunId(), err
}

func TestRunningPodsEndWithThePlatformUnlessTheyAreKept(t *testing.T) {
	t.Parallel()
	p := start(t, "--keep-pods")
	run := p.submit(counter(300))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	p.stop()
	if len(supervisors(p.dir)) == 0 {
		t.Error("the pod was ended although it was to be kept")
	}
	p.args = nil
	p.begin()
	if r := p.awaitComplete(run); r.GetReason() != "NonZeroExit" {
		t.Errorf("ended as %v, want exit 7 of the benchmark's own", r)
	}
	wantCounted(t, p, run, 300)

	run = p.submit(script("exec sleep 600"))
	p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
	p.stop()
	if left := supervisors(p.dir); len(left) > 0 {
		t.Errorf("supervisors left: %v", left)
	}
	p.begin()
	wantStopped(t, p.awaitEnd(run))
}

// wantStopped checks that a run ended because its platform was stopped.
func wantStopped(t *testing.T, r *baiv1.Run) {
	t.Helper()
	if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetFailureClass() != baiv1.FailureClass_FAILURE_CLASS_PLATFORM || r.GetReason() != "PlatformStopped" {
		t.Errorf("ended as %v, want a failure PlatformStopped of class platform", r)
	}
}

func TestEverySignalEndsTheBenchmarksAndSaysSo(t *testing.T) {
	t.Parallel()
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"))
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		run := p.submit(script("trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done"))
		p.awaitReady(run)
		p.signal(s)
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("after %s the platform ended with %v", s, err)
		}
		if left := supervisors(p.dir); len(left) > 0 {
			t.Errorf("after %s supervisors are left: %v", s, left)
		}
		if log := p.log.String(); !strings.Contains(log, "ending 1 benchmark, at most 20s") {
			t.Errorf("after %s the platform does not say what it ends:\n%s", s, tail(log, 2000))
		}
		p.begin()
		wantStopped(t, p.awaitEnd(run))
	}
}

func TestASecondSignalKillsTheBenchmarks(t *testing.T) {
	t.Parallel()
	p := startEmbedded(t, filepath.Join(t.TempDir(), "data"))
	run := p.submit(script("trap '' TERM; echo ready; while :; do sleep 0.1; done"))
	p.awaitReady(run)
	p.signal(syscall.SIGTERM)
	eventually(t, func() error {
		if !strings.Contains(p.log.String(), "ending 1 benchmark") {
			return fmt.Errorf("the platform does not say that it is stopping")
		}
		return nil
	})
	p.signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the platform ended with %v", err)
	}
	if left := supervisors(p.dir); len(left) > 0 {
		t.Errorf("supervisors are left: %v", left)
	}
	if log := p.log.String(); !strings.Contains(log, "killing 1 benchmark now") {
		t.Errorf("the platform does not say what it kills:\n%s", tail(log, 2000))
	}
	p.begin()
	wantStopped(t, p.awaitEnd(run))
}

// signal sends the platform's process a signal.
func (p *platform) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func TestReplayOfEveryTopicChangesNothing(t *testing.T) {
	t.Parallel()
	p := start(t, "--slots", "4")
	var runs []string
	for i := range 20 {
		switch i % 5 {
		case 0:
			runs = append(runs, p.submit(script("exit 3")))
		case 1:
			runs = append(runs, p.submit(command("/no/such/command")))
		case 2:
			run := p.submit(script("exec sleep 600"))
			runs = append(runs, run)
			p.awaitPhase(run, baiv1.Phase_PHASE_RUNNING)
			p.cancel(run)
		default:
			runs = append(runs, p.submit(script(`echo hi; echo '{"x": 1}' >>"$BENCHMARK_AI_FILE"`)))
		}
	}
	before := make(map[string]string)
	for _, run := range runs {
		p.awaitEnd(run)
	}
	for _, run := range runs {
		if p.get(run).GetOutcome() == baiv1.Outcome_OUTCOME_SUCCEEDED {
			p.awaitComplete(run)
		}
	}
	for _, run := range runs {
		before[run] = p.snapshot(run)
	}
	p.kill()
	p.args = append(p.args, "--replay")
	p.begin()
	p.waitReplayed()
	for _, run := range runs {
		if diff := cmp.Diff(before[run], p.snapshot(run)); diff != "" {
			t.Errorf("run %s changed (-before +after):\n%s", run, diff)
		}
	}
	for _, run := range runs {
		if n := strings.Count(p.log.String(), `a pod begins	{"run": "`+run+`"`); n > 1 {
			t.Errorf("run %s was launched %d times", run, n)
		}
	}
}

// snapshot returns all that is known of a run: itself, its history, its log and
// its samples.
func (p *platform) snapshot(run string) string {
	p.t.Helper()
	stream, err := p.api.WatchRun(p.t.Context(), &baiv1.WatchRunRequest{Run: run})
	if err != nil {
		p.t.Fatal(err)
	}
	r := p.get(run)
	r.Revision = 0 // statuses that come after the end count, and change nothing else
	text := r.String()
	for {
		r, err := stream.Recv()
		if err != nil {
			break
		}
		text += "\n" + r.String()
	}
	return text + fmt.Sprint(p.lines(run), p.samples(run))
}

// waitReplayed waits until a run that is submitted now has ended, and with it
// everything that lies before it in the topics.
func (p *platform) waitReplayed() {
	p.t.Helper()
	for range 8 { // one for each partition, more or less
		p.awaitComplete(p.submit(script("echo after")))
	}
}

func TestServicesOfTheirOwnTakeOverTheirPart(t *testing.T) {
	t.Parallel()
	p := start(t, "--without", "fetcher,metrics-pusher")
	run := p.submit(script(`echo hi; echo '{"x": 1}' >>"$BENCHMARK_AI_FILE"`))
	if r := p.get(run); r.GetPhase() > baiv1.Phase_PHASE_FETCHING {
		t.Fatalf("went on without a fetcher: %v", r)
	}
	p.join("", "fetcher")
	p.join("", "metrics-pusher", "index")
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("ended as %v", r)
	}
	if got := p.samples(run)["x"]; !cmp.Equal(got, []float64{1}) {
		t.Errorf("samples %v, want one", got)
	}
}

// join starts a service as a process of its own, with further settings. It ends
// with the test.
func (p *platform) join(further string, argv ...string) *process.Process {
	p.t.Helper()
	settings := p.t.TempDir() // whose files are read as one
	write(p.t, filepath.Join(settings, "services.toml"), read(p.t, filepath.Join(p.dir, "services.toml")))
	write(p.t, filepath.Join(settings, "further.toml"), further)
	service := process.New(argv[0], "", slices.Concat([]string{filepath.Join(bin, argv[0])}, argv[1:], []string{"-config", settings})...)
	service.Begin(p.t)
	service.EndWith(p.t)
	return service
}

func TestTwoPlatformsCannotShareADirectoryOrAPort(t *testing.T) {
	t.Parallel()
	p := start(t)
	second := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "bai"), append([]string{"standalone"}, args...)...).CombinedOutput()
		if err == nil {
			t.Errorf("a second platform with %q started", args)
		}
		return string(out)
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"one directory": {[]string{"--data", p.dir, "--listen", "127.0.0.1:0"}, "is used by another platform"},
		"one port":      {[]string{"--data", t.TempDir(), "--listen", p.addr}, "--listen"},
	} {
		got := second(tt.args...)
		if !strings.Contains(got, tt.want) || strings.Count(strings.TrimSpace(got), "\n") > 0 {
			t.Errorf("%s: said %q, want one line with %q", name, got, tt.want)
		}
	}
}
