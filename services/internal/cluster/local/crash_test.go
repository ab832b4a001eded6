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
	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
)

// untilFileExists returns a command that waits for a file and then exits with a code.
func untilFileExists(file string, code int) []string {
	return []string{"sh", "-c", fmt.Sprintf("until test -e %s; do sleep 0.01; done; exit %d", file, code)}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAPodThatRunsIsAdopted(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c, file := open(t, s), filepath.Join(t.TempDir(), "go")
		j := entrypointJob("adopted", untilFileExists(file, 3)...)
		create(t, c, j)
		before := await(t, c, j, "it runs", running)
		closeCluster(t, c, true)

		c = open(t, s)
		after := await(t, c, j, "it still runs", running)
		if after.Pods[0].UID != before.Pods[0].UID || after.Pods[0].Name != before.Pods[0].Name {
			t.Errorf("the pod is another: %s, was %s", after.Pods[0].Name, before.Pods[0].Name)
		}
		touch(t, file)
		if end := benchmarkOf(await(t, c, j, "it ends", hasEnded)).Terminated; end == nil || end.ExitCode != 3 {
			t.Errorf("it ended as %+v, want exit code 3", end)
		}
		remove(t, c, j)
		wantNothingLeft(t, s.Dir)
	})
}

func TestAnEndThatNobodySawIsTakenOver(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c, file := open(t, s), filepath.Join(t.TempDir(), "go")
		j := entrypointJob("unseen", untilFileExists(file, 4)...)
		create(t, c, j)
		await(t, c, j, "it runs", running)
		closeCluster(t, c, true)
		touch(t, file)
		eventually(t, "it ends", func() bool { return !shimOf(t, s.Dir, j).EndedAt.IsZero() })

		c = open(t, s)
		if end := benchmarkOf(await(t, c, j, "its end is known", hasEnded)).Terminated; end == nil || end.ExitCode != 4 {
			t.Errorf("it ended as %+v, want exit code 4", end)
		}
		remove(t, c, j)
		wantNothingLeft(t, s.Dir)
	})
}

// daemon returns a command that leaves a process in a session of its own behind and continues.
func daemon(needle string) []string {
	return []string{"sh", "-c", "setsid sh -c 'trap \"\" TERM HUP; sleep 100" + needle + "' >/dev/null 2>&1 & exec sleep 200" + needle}
}

// jobWithDaemons returns a running pod that has left daemons in sessions of their own.
func jobWithDaemons(t *testing.T, c *local.Cluster) (j *batchv1.Job, needle string) {
	t.Helper()
	needle = fmt.Sprintf(".%d", 1e6+rand.IntN(1e6))
	j = entrypointJob("lost", daemon(needle)...)
	create(t, c, j)
	eventually(t, "both its processes run", func() bool {
		return len(processes(t, "100"+needle)) > 0 && len(processes(t, "200"+needle)) > 0
	})
	await(t, c, j, "it runs", running)
	return j, needle
}

func killShim(t *testing.T, dir string, j *batchv1.Job) {
	t.Helper()
	if err := syscall.Kill(shimOf(t, dir, j).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestAPodWhoseSupervisorIsKilledIsGone(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		j, needle := jobWithDaemons(t, c)
		gone := make(chan cluster.Snapshot, 1)
		go c.Watch(t.Context(), func(s cluster.Snapshot) { //nolint:errcheck // until the end
			if s.Job == nil {
				gone <- s
			}
		})
		await(t, c, j, "it runs", running)
		killShim(t, s.Dir, j)
		eventually(t, "it is gone", isGone(t, c, j))
		if seen := <-gone; seen.Ref.UID != string(j.UID) || len(seen.Pods) > 0 {
			t.Errorf("what has gone is %+v", seen)
		}
		wantNothingLeft(t, s.Dir, needle)
	})
}

func TestAPodWhoseSupervisorIsKilledWhileThePlatformIsAwayIsGone(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		j, needle := jobWithDaemons(t, c)
		closeCluster(t, c, true)
		killShim(t, s.Dir, j)
		c = open(t, s)
		eventually(t, "it is gone", isGone(t, c, j))
		wantNothingLeft(t, s.Dir, needle)
	})
}

// unreadable makes a file one that exists and cannot be read, until restore is called.
func unreadable(t *testing.T, path string) (restore func()) {
	t.Helper()
	if err := errors.Join(os.Rename(path, path+".aside"), os.Symlink(path, path)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(path+".aside", path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPodWhoseFilesCannotBeReadNowIsNeitherGoneNorStartedAgain(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir(), PodBinary: podBinary}
	c, file := open(t, s), filepath.Join(t.TempDir(), "go")
	j := entrypointJob("unreadable", untilFileExists(file, 5)...)
	create(t, c, j)
	await(t, c, j, "it runs", running)
	closeCluster(t, c, true)
	folder, id := disk.Folder{Dir: s.Dir}, string(j.UID)
	for _, path := range []string{folder.RecordFile(id), folder.StateFile(id), folder.LockFile(id)} {
		restore := unreadable(t, path)
		if c, err := local.New(s); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("with an unreadable %s: %v, want ELOOP", path, err)
			if err == nil {
				closeCluster(t, c, true)
			}
		}
		restore()
	}
	c = open(t, s)
	await(t, c, j, "it still runs", running)
	touch(t, file)
	if end := benchmarkOf(await(t, c, j, "it ends", hasEnded)).Terminated; end == nil || end.ExitCode != 5 {
		t.Errorf("it ended as %+v, want exit code 5", end)
	}
	remove(t, c, j)
	wantNothingLeft(t, s.Dir)
}

func TestADeletionGoesOnAfterARestart(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		j := entrypointJob("deleted", "sh", "-c", "trap '' TERM; while true; do sleep 0.05; done")
		create(t, c, configMap("deleted"), j)
		await(t, c, j, "it runs", running)
		if err := c.Delete(t.Context(), refOf(j)); err != nil {
			t.Fatal(err)
		}
		closeCluster(t, c, true)
		c = open(t, s)
		eventually(t, "it is gone", isGone(t, c, j))
		create(t, c, configMap("deleted"))
		if err := c.Delete(t.Context(), refOf(j)); err != nil {
			t.Fatal(err)
		}
		wantNothingLeft(t, s.Dir)
	})
}

func TestClosingWithoutKeepingPodsEndsThemAndTheNextKnowsWhy(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c, needle := open(t, s), fmt.Sprintf(".%d", 1e6+rand.IntN(1e6))
		ended, runs := entrypointJob("ended", "true"), entrypointJob("runs", daemon(needle)...)
		create(t, c, ended, runs)
		await(t, c, ended, "it ended", hasEnded)
		await(t, c, runs, "it runs", running)
		closeCluster(t, c, false)
		if pids := processes(t, needle); len(pids) > 0 {
			t.Errorf("left processes %v", pids)
		}
		c = open(t, s)
		seen := await(t, c, runs, "its end is known", hasEnded)
		if seen.Job.Status.Failed != 1 || seen.Pods[0].Status.Reason != cluster.ReasonStopped {
			t.Errorf("the job that ran is %+v, its pod %+v", seen.Job.Status, seen.Pods[0].Status)
		}
		remove(t, c, runs)
		await(t, c, ended, "its end is still known", hasEnded)
		remove(t, c, ended)
		wantNothingLeft(t, s.Dir, needle)
	})
}

func TestWhatASignalHasStoppedIsEndedLongBeforeItsGrace(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		for name, frozen := range map[string]func(needle string) string{
			"supervisor": func(string) string { return "supervise " + s.Dir },
			"sidecar":    func(needle string) string { return "sleep 300" + needle },
			"benchmark":  func(needle string) string { return "sleep 100" + needle },
		} {
			needle := fmt.Sprintf(".%d", 1e6+rand.IntN(1e6))
			j, grace, always := entrypointJob("frozen-"+name, "sleep", "100"+needle), int64(3600), corev1.ContainerRestartPolicyAlways
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
			wantNothingLeft(t, s.Dir, needle)
		}
	})
}

func TestADeadlineHoldsForAPodWhoseSupervisorASignalHasStopped(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c, deadline := open(t, s), int64(4)
	once, always := entrypointJob("stopped-once", "sleep", "600"), entrypointJob("stopped-always", "sleep", "600")
	for _, j := range []*batchv1.Job{once, always} {
		j.Spec.ActiveDeadlineSeconds = &deadline
		create(t, c, j)
		await(t, c, j, "it runs", running)
	}
	if err := syscall.Kill(shimOf(t, s.Dir, once).PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw := freeze(t, []int{shimOf(t, s.Dir, always).PID})
	defer thaw()
	seen := await(t, c, once, "it ends", hasEnded)
	if last := seen.Job.Status.Conditions[len(seen.Job.Status.Conditions)-1]; last.Reason != batchv1.JobReasonDeadlineExceeded {
		t.Errorf("it ended as %+v, want %s", last, batchv1.JobReasonDeadlineExceeded)
	}
	eventually(t, "the other is killed", isGone(t, c, always))
}

// freeze stops processes by a signal, again whenever they are continued, until the returned function is called.
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
	j := entrypointJob(run)
	c := &corev1.ConfigMap{ObjectMeta: j.ObjectMeta, Data: map[string]string{"a": "b"}}
	c.APIVersion, c.Kind = "v1", "ConfigMap"
	return c
}

// crashJobs returns the jobs of the platform that is killed: each writes its name.
func crashJobs(dir string) []*batchv1.Job {
	var js []*batchv1.Job
	for i := range 6 {
		name := fmt.Sprintf("storm%d", i)
		js = append(js, entrypointJob(name, "sh", "-c", fmt.Sprintf("echo %s >> %s/out; sleep 0.05", name, dir)))
	}
	return js
}

// crashingPlatform creates jobs and deletes some, until it is killed.
func crashingPlatform(dir string) int {
	c, err := local.New(local.Settings{Dir: filepath.Join(dir, "cluster"), PodBinary: podBinary})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	if os.Getenv(envGangs) != "" {
		return crashingGangPlatform(ctx, c)
	}
	for i, j := range crashJobs(dir) {
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
		delay := time.Duration(rand.IntN(120)) * time.Millisecond
		<-time.After(delay)
		_ = killed.Process.Kill()
		_ = killed.Wait()
		t.Run(fmt.Sprintf("%d after %s", i, delay), func(t *testing.T) { wantRecovery(t, dir) })
	}
}

// wantRecovery starts a platform in the folder of the killed one, and creates and deletes the same jobs once more.
func wantRecovery(t *testing.T, dir string) {
	t.Helper()
	c := open(t, local.Settings{Dir: filepath.Join(dir, "cluster")})
	for i, j := range crashJobs(dir) {
		if i%2 == 0 {
			wantJobSuccess(t, c, j)
		}
		remove(t, c, j)
	}
	wantNothingLeft(t, filepath.Join(dir, "cluster"))
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for name := range strings.FieldsSeq(string(b)) {
		ran[name]++
	}
	for i, j := range crashJobs(dir) {
		if n := ran[j.Name]; i%2 == 0 && n != 1 || n > 1 {
			t.Errorf("%s ran %d times", j.Name, n)
		}
	}
}

// crashingGangPlatform creates Jobs of several pods, until it is killed.
func crashingGangPlatform(ctx context.Context, c *local.Cluster) int {
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

// wantJobSuccess creates a job, which may be there already, and waits for its end.
func wantJobSuccess(t *testing.T, c *local.Cluster, j *batchv1.Job) {
	t.Helper()
	createAgain(t, c, configMap(j.Name), j)
	if seen := await(t, c, j, "it ends", hasEnded); seen.Job.Status.Succeeded != 1 {
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
