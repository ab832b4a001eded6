//go:build linux

package local_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
)

// until returns a command that waits for a file and then exits with a code.
func until(file string, code int) []string {
	return []string{"sh", "-c", fmt.Sprintf("until test -e %s; do sleep 0.01; done; exit %d", file, code)}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAPodThatRunsIsAdopted(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c, file := open(t, s), filepath.Join(t.TempDir(), "go")
		j := wrapped("adopted", until(file, 3)...)
		create(t, c, j)
		before := await(t, c, j, "it runs", running)
		shut(t, c, true)

		c = open(t, s)
		after := await(t, c, j, "it still runs", running)
		if after.Pods[0].UID != before.Pods[0].UID || after.Pods[0].Name != before.Pods[0].Name {
			t.Errorf("the pod is another: %s, was %s", after.Pods[0].Name, before.Pods[0].Name)
		}
		touch(t, file)
		if end := benchmarkOf(await(t, c, j, "it ends", over)).Terminated; end == nil || end.ExitCode != 3 {
			t.Errorf("it ended as %+v, want exit code 3", end)
		}
		remove(t, c, j)
		nothingLeft(t, s.Dir)
	})
}

func TestAnEndThatNobodySawIsTakenOver(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c, file := open(t, s), filepath.Join(t.TempDir(), "go")
		j := wrapped("unseen", until(file, 4)...)
		create(t, c, j)
		await(t, c, j, "it runs", running)
		shut(t, c, true)
		touch(t, file)
		eventually(t, "it ends", func() bool { return !supervisorOf(t, s.Dir, j).Over.IsZero() })

		c = open(t, s)
		if end := benchmarkOf(await(t, c, j, "its end is known", over)).Terminated; end == nil || end.ExitCode != 4 {
			t.Errorf("it ended as %+v, want exit code 4", end)
		}
		remove(t, c, j)
		nothingLeft(t, s.Dir)
	})
}

// daemon returns a command that leaves a process of its own session behind and
// goes on.
func daemon(needle string) []string {
	return []string{"sh", "-c", "setsid sh -c 'trap \"\" TERM HUP; sleep 100" + needle + "' >/dev/null 2>&1 & exec sleep 200" + needle}
}

// lost is a pod that left daemons in sessions of their own.
func lost(t *testing.T, c *local.Cluster) (j *batchv1.Job, needle string) {
	t.Helper()
	needle = fmt.Sprintf(".%d", 1e6+rand.IntN(1e6))
	j = wrapped("lost", daemon(needle)...)
	create(t, c, j)
	eventually(t, "both its processes run", func() bool {
		return len(processes(t, "100"+needle)) > 0 && len(processes(t, "200"+needle)) > 0
	})
	await(t, c, j, "it runs", running)
	return j, needle
}

func killSupervisor(t *testing.T, dir string, j *batchv1.Job) {
	t.Helper()
	if err := syscall.Kill(supervisorOf(t, dir, j).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestAPodWhoseSupervisorIsKilledIsGone(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		j, needle := lost(t, c)
		gone := make(chan cluster.Seen, 1)
		go c.Watch(t.Context(), func(s cluster.Seen) { //nolint:errcheck // until the end
			if s.Job == nil {
				gone <- s
			}
		})
		await(t, c, j, "it runs", running)
		killSupervisor(t, s.Dir, j)
		eventually(t, "it is gone", goneFrom(t, c, j))
		if seen := <-gone; seen.Ref.UID != string(j.UID) || len(seen.Pods) > 0 {
			t.Errorf("what has gone is %+v", seen)
		}
		nothingLeft(t, s.Dir, needle)
	})
}

func TestAPodWhoseSupervisorIsKilledWhileThePlatformIsAwayIsGone(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		j, needle := lost(t, c)
		shut(t, c, true)
		killSupervisor(t, s.Dir, j)
		c = open(t, s)
		eventually(t, "it is gone", goneFrom(t, c, j))
		nothingLeft(t, s.Dir, needle)
	})
}

func TestADeletionGoesOnAfterARestart(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		j := wrapped("deleted", "sh", "-c", "trap '' TERM; while true; do sleep 0.05; done")
		create(t, c, configMap("deleted"), j)
		await(t, c, j, "it runs", running)
		if err := c.Delete(t.Context(), refOf(j)); err != nil {
			t.Fatal(err)
		}
		shut(t, c, true)
		c = open(t, s)
		eventually(t, "it is gone", goneFrom(t, c, j))
		create(t, c, configMap("deleted"))
		if err := c.Delete(t.Context(), refOf(j)); err != nil {
			t.Fatal(err)
		}
		nothingLeft(t, s.Dir)
	})
}

func TestClosingWithoutKeepingPodsEndsThemAndTheNextKnowsWhy(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c, needle := open(t, s), fmt.Sprintf(".%d", 1e6+rand.IntN(1e6))
		ended, runs := wrapped("ended", "true"), wrapped("runs", daemon(needle)...)
		create(t, c, ended, runs)
		await(t, c, ended, "it ended", over)
		await(t, c, runs, "it runs", running)
		shut(t, c, false)
		if pids := processes(t, needle); len(pids) > 0 {
			t.Errorf("left processes %v", pids)
		}
		c = open(t, s)
		seen := await(t, c, runs, "its end is known", over)
		if seen.Job.Status.Failed != 1 || seen.Pods[0].Status.Reason != cluster.ReasonStopped {
			t.Errorf("the job that ran is %+v, its pod %+v", seen.Job.Status, seen.Pods[0].Status)
		}
		remove(t, c, runs)
		await(t, c, ended, "its end is still known", over)
		remove(t, c, ended)
		nothingLeft(t, s.Dir, needle)
	})
}

func TestWhatASignalHasStoppedIsEndedLongBeforeItsGrace(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		for name, frozen := range map[string]func(needle string) string{
			"supervisor": func(string) string { return "supervise " + s.Dir },
			"sidecar":    func(needle string) string { return "sleep 300" + needle },
			"benchmark":  func(needle string) string { return "sleep 100" + needle },
		} {
			needle := fmt.Sprintf(".%d", 1e6+rand.IntN(1e6))
			j, grace, always := wrapped("frozen-"+name, "sleep", "100"+needle), int64(3600), corev1.ContainerRestartPolicyAlways
			p := &j.Spec.Template.Spec
			p.TerminationGracePeriodSeconds = &grace
			p.InitContainers = append(p.InitContainers, corev1.Container{Name: "sidecar", Command: []string{"sleep", "300" + needle}, RestartPolicy: &always})
			create(t, c, j)
			await(t, c, j, "it runs", running)
			pids := processes(t, strings.ReplaceAll(frozen(needle), " ", "\x00"))
			if len(pids) == 0 {
				t.Fatalf("no %s runs", name)
			}
			thaw := freeze(t, pids)
			remove(t, c, j) // within a minute
			thaw()
			nothingLeft(t, s.Dir, needle)
		}
	})
}

// freeze stops processes by a signal, again whenever somebody lets them go on, until
// what it returns is called.
func freeze(t *testing.T, pids []int) (thaw func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	stop := func() {
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
	}
	stop()
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				stop()
			}
		}
	}()
	return func() { cancel(); <-done }
}

func configMap(run string) *corev1.ConfigMap {
	j := wrapped(run)
	c := &corev1.ConfigMap{ObjectMeta: j.ObjectMeta, Data: map[string]string{"a": "b"}}
	c.APIVersion, c.Kind = "v1", "ConfigMap"
	return c
}

// storm are the jobs of the platform that is killed: each writes its name.
func storm(dir string) []*batchv1.Job {
	var js []*batchv1.Job
	for i := range 6 {
		name := fmt.Sprintf("storm%d", i)
		js = append(js, wrapped(name, "sh", "-c", fmt.Sprintf("echo %s >> %s/out; sleep 0.05", name, dir)))
	}
	return js
}

// platform creates jobs and deletes some, until it is killed.
func platform(dir string) int {
	c, err := local.New(local.Settings{Dir: filepath.Join(dir, "cluster"), PodBinary: podBinary})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	if os.Getenv(envGangs) != "" {
		return platformOfGangs(ctx, c)
	}
	for i, j := range storm(dir) {
		for _, o := range []cluster.Object{configMap(j.Name), j} {
			if err := c.Create(ctx, o); err != nil && !errors.Is(err, cluster.ErrExists) {
				_, _ = fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		if i%2 == 1 {
			if err := c.Delete(ctx, refOf(j)); err != nil {
				_, _ = fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	_, _ = fmt.Println("done") //nolint:forbidigo // to the test that started it
	select {}
}

func TestAPlatformThatIsKilledAtAnyMomentLosesNothingAndRunsNothingTwice(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		dir := t.TempDir()
		killed := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this test
		killed.Env = append(os.Environ(), envBinary+"="+podBinary, envPlatform+"="+dir)
		killed.Stderr = os.Stderr
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
		moment := time.Duration(rand.IntN(120)) * time.Millisecond
		<-time.After(moment)
		_ = killed.Process.Kill()
		_ = killed.Wait()
		t.Run(fmt.Sprintf("%d after %s", i, moment), func(t *testing.T) { survives(t, dir) })
	}
}

// survives goes on where a platform was killed, as its successor would: it
// creates and deletes the same once more.
func survives(t *testing.T, dir string) {
	t.Helper()
	c := open(t, local.Settings{Dir: filepath.Join(dir, "cluster")})
	for i, j := range storm(dir) {
		if i%2 == 0 {
			endsWell(t, c, j)
		}
		remove(t, c, j)
	}
	nothingLeft(t, filepath.Join(dir, "cluster"))
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for name := range strings.FieldsSeq(string(b)) {
		ran[name]++
	}
	for i, j := range storm(dir) {
		if n := ran[j.Name]; i%2 == 0 && n != 1 || n > 1 {
			t.Errorf("%s ran %d times", j.Name, n)
		}
	}
}

// platformOfGangs creates Jobs of several pods, until it is killed.
func platformOfGangs(ctx context.Context, c *local.Cluster) int {
	for _, objects := range gangs() {
		for _, o := range []cluster.Object{objects.service, objects.job} {
			if err := c.Create(ctx, o); err != nil {
				_, _ = fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	select {}
}

// endsWell creates a job, which may be there already, and waits for its end.
func endsWell(t *testing.T, c *local.Cluster, j *batchv1.Job) {
	t.Helper()
	createAgain(t, c, configMap(j.Name), j)
	if seen := await(t, c, j, "it ends", over); seen.Job.Status.Succeeded != 1 {
		t.Errorf("%s failed: %+v", j.Name, benchmarkOf(seen))
	}
}

// createAgain creates objects, which may be there already.
func createAgain(t *testing.T, c *local.Cluster, objects ...cluster.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil && !errors.Is(err, cluster.ErrExists) {
			t.Fatal(err)
		}
	}
}
