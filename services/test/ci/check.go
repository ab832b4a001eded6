//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/test/ci/scratch"
	"github.com/benchmark-ai/bai/services/test/ci/stage"
	"github.com/benchmark-ai/bai/services/test/ci/suite"
)

// check is one run of stages.
type check struct {
	folder  *scratch.Folder
	root    string   // of the checkout
	logs    string   // folder of all logs
	turn    string   // folder of the logs of the current round
	env     []string // further variables of all that runs
	servers servers
}

func newCheck(folder *scratch.Folder) (*check, error) {
	root, err := filepath.Abs("..")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		return nil, fmt.Errorf("run it in the folder services of a checkout: %w", err)
	}
	logs := filepath.Join(root, "bin", "ci")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(filepath.Join(logs, "tests"), 0o750)); err != nil {
		return nil, err
	}
	return &check{folder: folder, root: root, logs: logs, turn: logs, servers: servers{folder: folder}}, nil
}

// Lanes run side by side: one computes, the others mostly wait.
const (
	lanePlain   = "plain"
	laneServers = "servers"
	laneCluster = "cluster"
)

// everyStage lists the stages that a change must pass. The cheap stages come first;
// servers begin while they run.
func (c *check) everyStage(o options) []stage.Stage {
	plain := []stage.Stage{
		{Name: "format", Budget: time.Minute, Run: c.command("format", "make", "--silent", "format")},
		{Name: "generated files", Budget: 2 * time.Minute, Run: c.command("generated", "make", "--silent", "generated")},
		{Name: "build", Budget: 2 * time.Minute, Run: c.command("build", "make", "--silent", "build")},
		{Name: "lint", Budget: 5 * time.Minute, Run: c.command("lint", "make", "--silent", "lint")},
		{Name: "make demo", Budget: time.Minute, After: []string{"build"}, Run: c.command("demo", "make", "--silent", "demo")},
		{Name: "make test", Budget: 10 * time.Minute, After: []string{"build"}, Run: c.unitTests},
	}
	for i := range plain {
		plain[i].Lane = lanePlain
	}
	return append(plain, c.realStages(o)...)
}

// realStages are the suites on real servers, and their set-up.
func (c *check) realStages(o options) []stage.Stage {
	stages := []stage.Stage{
		{
			Name: "packages", Lane: laneServers, Setup: true, Budget: 2 * time.Minute,
			Run: c.command("packages", filepath.Join(c.root, ".ci", "packages"), "training"),
		},
		{Name: "test bed", Lane: laneServers, Setup: true, Budget: 3 * time.Minute, Run: c.buildTestBed},
	}
	all, err := suite.All()
	if err != nil {
		return []stage.Stage{{Name: "suites", Run: func(context.Context) stage.Result { return stage.Result{Err: err} }}}
	}
	began := map[string]bool{"": true}
	// At the same time on two cores, other tests and those of the cluster would delay each other beyond their time limits.
	behind := []string{"make test"}
	for _, s := range suite.Of(all, o.long) {
		if !began[s.Needs] {
			began[s.Needs] = true
			begin := c.beginning(s.Needs)
			if s.Needs == suite.Cluster {
				begin.Behind = behind
			}
			stages = append(stages, begin)
		}
		next := stage.Stage{Name: s.Name, Lane: laneOf(s.Cluster), After: []string{"test bed"}, Budget: time.Duration(s.Budget)}
		next.Run = func(ctx context.Context) stage.Result { return c.suite(ctx, s, o) }
		if s.Needs != "" {
			next.After = []string{"begin " + s.Needs}
		}
		if s.Needs == suite.Cluster {
			next.Behind = behind
		}
		if !s.Cluster {
			behind = append(behind, s.Name)
		}
		stages = append(stages, next)
	}
	return append(stages, stage.Stage{Name: "nothing is left", Always: true, Budget: time.Minute, Run: c.leftovers})
}

// laneOf is the lane of suites that boot clusters, one at a time, or of the other suites.
func laneOf(cluster bool) string {
	if cluster {
		return laneCluster
	}
	return laneServers
}

// log makes the file that keeps the whole output of a stage.
func (c *check) log(name string) (*os.File, error) {
	return os.Create(filepath.Join(c.turn, strings.NewReplacer("/", "_", " ", "_").Replace(name)+".log"))
}

// cmd is a command of the check, in the checkout.
func (c *check) cmd(ctx context.Context, env []string, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the check's own
	cmd.Dir, cmd.Env = c.root, slices.Concat(c.folder.Environ(), c.env, env)
	cmd.WaitDelay = time.Minute // a process that it left may hold its output
	return cmd
}

// command is a stage that is one command.
func (c *check) command(log string, argv ...string) func(context.Context) stage.Result {
	return func(ctx context.Context) stage.Result {
		cpu, err := c.runCommand(ctx, log, argv...)
		return stage.Result{CPU: cpu, Err: err}
	}
}

// runCommand runs a command whose last lines are the reason where it fails.
func (c *check) runCommand(ctx context.Context, name string, argv ...string) (cpu time.Duration, err error) {
	log, err := c.log(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	cmd := c.cmd(ctx, nil, argv...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return cpuTime(cmd), fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, lastLines(log.Name(), 25))
	}
	return cpuTime(cmd), nil
}

// cpuTime is the time of processors that a command took that has ended, and the
// processes that it waited for.
func cpuTime(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// lastLines are the last lines of a file.
func lastLines(path string, n int) string {
	b, err := os.ReadFile(path) //nolint:gosec // a log of the check
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// unitTests runs the tests of make test, whose programs are built.
func (c *check) unitTests(ctx context.Context) stage.Result { return c.plainTests(ctx) }

func (c *check) plainTests(ctx context.Context, flags ...string) stage.Result {
	log, err := c.log("make test")
	if err != nil {
		return stage.Result{Err: err}
	}
	defer log.Close() //nolint:errcheck // its writes are checked
	cmd := c.cmd(ctx, []string{"CI=1"}, append([]string{filepath.Join(c.root, ".ci", "test"), "-json"}, flags...)...)
	return c.watched(ctx, cmd, log, defaultLimit)
}

// defaultLimit is how long a test of make test may run.
const defaultLimit = 10 * time.Minute

// watched runs a command that prints the events of tests, and ends the test binary
// of a test that runs for longer than limit.
func (c *check) watched(ctx context.Context, cmd *exec.Cmd, log *os.File, limit time.Duration) stage.Result {
	w := &watch{check: c, log: log, limit: limit, quitSent: map[string]bool{}}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return stage.Result{Err: err}
	}
	stop := w.start(ctx)
	err := cmd.Wait()
	stop()
	report := w.report()
	if err != nil && len(report.Failures) > 0 {
		err = nil // they say why
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, lastLines(log.Name(), 15))
	}
	return stage.Result{Tests: report, Err: err, CPU: cpuTime(cmd)}
}

// leftovers is the stage that finds processes and files that should be gone.
func (c *check) leftovers(ctx context.Context) stage.Result {
	err := c.servers.end(ctx)
	found := c.folder.Leftovers()
	for late := time.Now().Add(time.Minute); len(found) > 0 && time.Now().Before(late); time.Sleep(100 * time.Millisecond) {
		found = c.folder.Leftovers() // some processes end shortly after their parents
	}
	if len(found) > 0 {
		err = errors.Join(err, fmt.Errorf("left behind:\n%s", strings.Join(found, "\n")))
	}
	return stage.Result{Err: err}
}
