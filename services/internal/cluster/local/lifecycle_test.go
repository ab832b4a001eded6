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
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/lock"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

func TestTwoPlatformsCannotHaveOneDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, local.Settings{Dir: dir})
	_, err := local.New(local.Settings{Dir: dir, PodBinary: podBinary})
	if held := (*lock.HeldError)(nil); !errors.As(err, &held) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second platform: %v", err)
	}
}

func TestWhateverABenchmarkDoesNothingIsLeft(t *testing.T) {
	for name, command := range map[string]func(needle string) []string{
		"it forks daemons of their own sessions": daemon,
		"it ignores every signal that it can": func(needle string) []string {
			return []string{"sh", "-c", "trap '' TERM INT HUP QUIT USR1 USR2; while true; do sleep 0.1" + needle + "; done"}
		},
		"it forks and forks": func(needle string) []string {
			return []string{"sh", "-c", "for i in 1 2 3 4 5; do (setsid sh -c 'sleep 300" + needle + " & sleep 300" + needle + "' &) ; done; sleep 300" + needle}
		},
		"it makes its directories unreadable": func(needle string) []string {
			return []string{"sh", "-c", "D=${BAI_DIR:-/bai}; mkdir -p $D/a/b; touch $D/a/b/c; chmod 0 $D/a/b $D/a; sleep 300" + needle}
		},
	} {
		t.Run(name, func(t *testing.T) {
			forEachIsolation(t, func(t *testing.T, s local.Settings) {
				t.Helper()
				c, needle := open(t, s), fmt.Sprintf("%d", 1e6+rand.IntN(1e6))
				j := entrypointJob("hostile", command(needle)...)
				create(t, c, configMap("hostile"), j)
				eventually(t, "it does it", func() bool { return len(processes(t, needle)) > 2 })
				remove(t, c, j)
				wantNothingLeft(t, s.Dir, needle)
			})
		})
	}
}

func TestWhatADaemonLeavesAfterAGoodEndIsEndedToo(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c, needle := open(t, s), fmt.Sprintf("%d", 1e6+rand.IntN(1e6))
		j := entrypointJob("daemons", "sh", "-c", "setsid sh -c 'trap \"\" TERM; sleep 300"+needle+"' & exit 0")
		create(t, c, j)
		if seen := await(t, c, j, "it ends", hasEnded); seen.Job.Status.Succeeded != 1 {
			t.Errorf("it ended as %+v", benchmarkOf(seen))
		}
		if pids := processes(t, "sleep 300"+needle); len(pids) > 0 {
			t.Errorf("left processes %v", pids)
		}
		remove(t, c, j)
		wantNothingLeft(t, s.Dir, needle)
	})
}

func TestABenchmarkFindsThePlatformsFolderEmptyAndCannotWriteThere(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: filepath.Join(t.TempDir(), "data", "pods")}
	s.Private = filepath.Dir(s.Dir)
	c := open(t, s)
	key := filepath.Join(s.Private, "token.key")
	if err := os.WriteFile(key, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := entrypointJob("hidden", "sh", "-c", fmt.Sprintf(`cd %[1]q && ! cat token.key && ! touch token.key && rm -rf %[1]q/* && test -z "$(ls -A)" && test -x /bai/bin/bai-pod && echo kept >/bai/own`, s.Private))
	j.Spec.Template.Spec.InitContainers = append(j.Spec.Template.Spec.InitContainers, corev1.Container{
		Name: cluster.ContainerPull, Command: []string{"grep", "secret", key}, // the platform's own container sees the folder
	})
	create(t, c, j)
	if seen := await(t, c, j, "it ends", hasEnded); seen.Job.Status.Succeeded != 1 {
		t.Errorf("it ended as %+v", benchmarkOf(seen))
	}
	if b, err := os.ReadFile(key); err != nil || string(b) != "secret" {
		t.Errorf("the key is %q (%v)", b, err)
	}
	remove(t, c, j)
	wantNothingLeft(t, s.Dir)
}

func TestLimitsOfCPUAndMemoryHold(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		if why := c.Limits(); why != "" {
			t.Skipf("this machine enforces no limits: %s", why)
		}
		hungry := limitedJob("hungry", "1", "64Mi", "tail", "/dev/zero") // tail stores all that it reads
		create(t, c, hungry)
		if seen := await(t, c, hungry, "it ends", hasEnded); benchmarkOf(seen).Terminated == nil || benchmarkOf(seen).Terminated.Reason != "OOMKilled" {
			t.Errorf("what needs more memory ended as %+v", benchmarkOf(seen))
		}
		busy := limitedJob("busy", "100m", "64Mi", "sh", "-c", "while :; do :; done")
		create(t, c, busy)
		eventually(t, "what needs more CPU is held up", func() bool { return throttled(groupsOf(s, busy)) })
		groups := groupsOf(s, busy)
		wantProcessLimit(t, groups)
		makeGroupsBelow(t, groups)
		remove(t, c, hungry)
		remove(t, c, busy)
		for _, dir := range groups {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("the group %s is left", dir)
			}
		}
		wantNothingLeft(t, s.Dir)
	})
}

// limitedJob is wrapped with limits.
func limitedJob(run, cpu, memory string, command ...string) *batchv1.Job {
	j := entrypointJob(run, command...)
	j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}
	return j
}

// groupsOf returns the cgroups of a job's benchmark, none before it has started.
func groupsOf(s local.Settings, j *batchv1.Job) []string {
	var p shimapi.Pod
	if shimapi.Read(filepath.Join(s.Dir, "pods", string(j.UID), shimapi.PodFile), &p) != nil {
		return nil
	}
	return p.Containers[len(p.Containers)-1].Groups
}

func wantProcessLimit(t *testing.T, groups []string) {
	t.Helper()
	if !slices.ContainsFunc(groups, limitsProcesses) {
		t.Errorf("none of %q limits the number of processes", groups)
	}
}

// makeGroupsBelow makes cgroups below others, as a benchmark may do.
func makeGroupsBelow(t *testing.T, groups []string) {
	t.Helper()
	for _, dir := range groups {
		if err := os.MkdirAll(filepath.Join(dir, "below", "below"), 0o755); err != nil { //nolint:gosec // as the kernel's own
			t.Fatal(err)
		}
	}
}

// limitsProcesses reports whether a group has a limit of the number of its processes, or the machine has no such limits.
func limitsProcesses(dir string) bool {
	limit, err := os.ReadFile(filepath.Join(dir, "pids.max"))
	_, errMachine := os.Stat("/sys/fs/cgroup/pids")
	return err == nil && strings.TrimSpace(string(limit)) != "max" || errMachine != nil
}

// throttled reports whether the kernel has throttled a group.
func throttled(groups []string) bool {
	return slices.ContainsFunc(groups, func(dir string) bool {
		stat, _ := os.ReadFile(filepath.Join(dir, "cpu.stat"))
		return regexp.MustCompile(`nr_throttled [1-9]`).Match(stat)
	})
}

func TestAFloodOfOutputIsRecordedAndTheLogIsSmall(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c := open(t, s)
	j := entrypointJob("large", "sh", "-c", "head -c 200000000 /dev/zero")
	create(t, c, j)
	await(t, c, j, "it ends", hasEnded)
	dir := filepath.Join(s.Dir, "pods", string(j.UID))
	info, err := os.Stat(filepath.Join(dir, "volumes", "bai", pod.Output))
	if err != nil || info.Size() < 2e8 || info.Size() > 2e8+2e8/100 {
		t.Errorf("the output is %+v (%v)", info, err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range logs {
		if info, err := os.Stat(path); err != nil || info.Size() > 4<<20 {
			t.Errorf("%s is %d bytes (%v)", path, info.Size(), err)
		}
	}
	remove(t, c, j)
	wantNothingLeft(t, s.Dir)
}

func TestAPodWaitsForItsConfiguration(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		j := entrypointJob("waits", "sh", "-c", `test "$A" = b`)
		from := &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "waits"}, Key: "a"}}
		j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: from}}
		create(t, c, j)
		seen := await(t, c, j, "it waits", func(s cluster.Snapshot) bool { return benchmarkOf(s).Waiting != nil })
		want := &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `configmap "waits" not found`}
		if diff := cmp.Diff(want, benchmarkOf(seen).Waiting); diff != "" || seen.Pods[0].Status.Phase != corev1.PodPending {
			t.Errorf("phase %s, waiting (-want +got):\n%s", seen.Pods[0].Status.Phase, diff)
		}
		closeCluster(t, c, true) // it waits again after a restart
		c = open(t, s)
		create(t, c, configMap("waits"))
		if seen := await(t, c, j, "it ends", hasEnded); seen.Job.Status.Succeeded != 1 {
			t.Errorf("it ended as %+v", benchmarkOf(seen))
		}
		remove(t, c, j)
		wantNothingLeft(t, s.Dir)
	})
}

func TestAVolumeThatCannotBeFilledIsSaidInAnEvent(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c := open(t, s)
	j := entrypointJob("unfilled", "true")
	template := &j.Spec.Template.Spec
	template.Volumes = append(template.Volumes, corev1.Volume{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "nosuch"}}})
	second := int64(1)
	j.Spec.ActiveDeadlineSeconds = &second
	create(t, c, j)
	seen := await(t, c, j, "an event", func(s cluster.Snapshot) bool { return len(s.Events) > 0 })
	if e := seen.Events[0]; e.Reason != "FailedMount" || e.Message != `MountVolume.SetUp failed for volume "s" : secret "nosuch" not found` || e.InvolvedObject.UID != seen.Pods[0].UID {
		t.Errorf("the event is %+v", e)
	}
	seen = await(t, c, j, "its deadline passes", hasEnded)
	if got := seen.Job.Status.Conditions; len(got) != 2 || got[1].Type != batchv1.JobFailed || got[1].Reason != "DeadlineExceeded" {
		t.Errorf("its conditions are %+v", got)
	}
	closeCluster(t, c, true)
	c = open(t, s)
	await(t, c, j, "it has still failed", hasEnded)
	remove(t, c, j)
	wantNothingLeft(t, s.Dir)
}

func TestAJobThatHasEndedGoesWhenItWasKeptLongEnough(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c, now := open(t, s), int32(1)
	j := entrypointJob("kept", "true")
	j.Spec.TTLSecondsAfterFinished = &now
	create(t, c, configMap("kept"), j)
	await(t, c, j, "it ends", hasEnded)
	eventually(t, "it goes", isGone(t, c, j))
	wantNothingLeft(t, s.Dir)
}

func TestMountPointsAreNotMadeOnTheMachine(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c := open(t, s)
	name := fmt.Sprintf("bai-test-%d", rand.IntN(1e9))
	places := []string{"/" + name, "/usr/share/" + name + "/deep/er", "/opt/" + name, "/dev/" + name, "/var/run/" + name}
	j := entrypointJob("mounts", "sh", "-c", "for p in "+strings.Join(places, " ")+`; do
		echo x > $p/file || exit 1
	done
	test -d /usr/share/misc -o -d /usr/share/doc || exit 2
	test -c /dev/null -a -c /dev/zero || exit 3
	echo last words > /dev/termination-log`)
	for i, p := range places {
		v := fmt.Sprintf("v%d", i)
		spec := &j.Spec.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: v, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v, MountPath: p})
	}
	create(t, c, j)
	seen := await(t, c, j, "it ends", hasEnded)
	if end := benchmarkOf(seen).Terminated; end.ExitCode != 0 || end.Message != "last words\n" {
		log, _ := os.ReadFile(filepath.Join(s.Dir, "pods", string(j.UID), "logs", "benchmark.log"))
		t.Errorf("it ended as %+v\n%s", end, log)
	}
	for _, p := range append(places, "/dev/termination-log") {
		if _, err := os.Lstat(p); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is on the machine (%v)", p, err)
		}
	}
	remove(t, c, j)
	wantNothingLeft(t, s.Dir)
}

func TestContainersSeeOnlyTheirPodAndTheirMounts(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c := open(t, s)
	j := entrypointJob("alone", "sh", "-c", `
		test "$(ls /proc | grep -c '^[0-9]')" -lt 10 || exit 1
		test ! -e /bai-secret/key || exit 2
		test ! -e /bai-pod || exit 3
		test -r /proc/self/stat || exit 4
		echo x > /bai/ro/file && exit 5
		exit 0`)
	template := &j.Spec.Template.Spec
	template.Volumes = append(template.Volumes,
		corev1.Volume{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "alone"}}},
		corev1.Volume{Name: "ro", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	template.InitContainers = append(template.InitContainers, corev1.Container{
		Name: "reads", Command: []string{"sh", "-c", `test "$(cat /bai-secret/key)" = value`},
		VolumeMounts: []corev1.VolumeMount{{Name: "secret", MountPath: pod.SecretDir, ReadOnly: true}},
	})
	template.Containers[0].VolumeMounts = append(template.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "ro", MountPath: "/bai/ro", ReadOnly: true})
	secret := &corev1.Secret{ObjectMeta: configMap("alone").ObjectMeta, Data: map[string][]byte{"key": []byte("value")}}
	secret.APIVersion, secret.Kind = "v1", "Secret"
	create(t, c, secret, j)
	if end := benchmarkOf(await(t, c, j, "it ends", hasEnded)).Terminated; end == nil || end.ExitCode != 0 {
		t.Errorf("it ended as %+v", end)
	}
}

func TestMemoryVolumesAreAsLargeAsTheyMayBe(t *testing.T) {
	t.Parallel()
	c := open(t, local.Settings{Dir: t.TempDir()})
	j := entrypointJob("memory", "sh", "-c", "head -c 3000000 /dev/zero > /fast/a && exit 1; test \"$(stat -f -c %T /fast)\" = tmpfs")
	spec, limit := &j.Spec.Template.Spec, resource.MustParse("2Mi")
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "fast", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &limit}}})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "fast", MountPath: "/fast"})
	create(t, c, j)
	if end := benchmarkOf(await(t, c, j, "it ends", hasEnded)).Terminated; end == nil || end.ExitCode != 0 {
		t.Errorf("it ended as %+v", end)
	}
}

func TestASubPathThatLeadsOutOfItsVolumeIsNotMounted(t *testing.T) {
	t.Parallel()
	c := open(t, local.Settings{Dir: t.TempDir()})
	j := entrypointJob("escape", "true")
	spec := &j.Spec.Template.Spec
	spec.InitContainers = append(spec.InitContainers, corev1.Container{
		Name: "plants", Command: []string{"ln", "-s", "/etc", "/bai/out"}, VolumeMounts: spec.InitContainers[0].VolumeMounts,
	})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "bai", MountPath: "/x", SubPath: "out"})
	create(t, c, j)
	end := benchmarkOf(await(t, c, j, "it ends", hasEnded)).Terminated
	if end == nil || end.Reason != "StartError" || !strings.Contains(end.Message, "leads out of the volume") {
		t.Errorf("it ended as %+v", end)
	}
}

func TestWhatTheMachineDoesNotHaveIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t, local.Settings{Dir: t.TempDir(), NoNamespaces: true})
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		want   event.Reason
	}{
		"no command": {func(s *corev1.PodSpec) { s.Containers[0].Command = nil }, event.NeedsImage},
		"too many GPUs": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1000")}
		}, event.NeedsGPU},
		"a mount without namespaces": {func(s *corev1.PodSpec) { s.Containers[0].VolumeMounts[0].MountPath = "/data" }, event.NeedsNamespaces},
	} {
		j := entrypointJob("refused", "true")
		test.change(&j.Spec.Template.Spec)
		err := c.Create(t.Context(), j)
		if refused, ok := errors.AsType[*cluster.RefusedError](err); !ok || refused.Reason != string(test.want) {
			t.Errorf("%s: %v, want a refusal as %s", name, err, test.want)
		}
	}
}

func TestThePodsOfAnotherUserKeepTheContract(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("this user is another")
		return
	}
	const nobody = 65534
	dir := t.TempDir()
	program := filepath.Join(dir, "test")
	copyFile(t, os.Args[0], program)
	tmp := filepath.Join(dir, "tmp")
	for _, err := range []error{os.Mkdir(tmp, 0o700), os.Chown(tmp, nobody, nobody), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)} { //nolint:gosec // for the other user
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "TestAClusterKeepsTheContract|TestContainersSee|TestAPodThatRuns|TestMountPoints|TestWhateverABenchmark|TestMemory|TestEachPodOfARun|TestABenchmarkBegins|TestWithTheHub|TestABenchmarkFinds|TestClosing|TestWhatASignal|TestLimits", "-test.v") //nolint:gosec // this test
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), envBinary+"="+podBinary, "TMPDIR="+tmp, "HOME="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.WaitDelay = time.Minute // for descendants that hold the pipe
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestAClusterKeepsTheContract/with_namespaces") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WriteProgram(t, to, string(b))
}

func TestAGPUBelongsToOnePodAtATime(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir(), GPUs: 2}
	c, file := open(t, s), filepath.Join(t.TempDir(), "go")
	var js []*batchv1.Job
	for i := range 3 {
		j := gpuJob(fmt.Sprintf("gpu%d", i), "sh", "-c", fmt.Sprintf("echo $CUDA_VISIBLE_DEVICES >> %s.gpus; until test -e %s%d; do sleep 0.01; done", file, file, i))
		create(t, c, j)
		js = append(js, j)
	}
	await(t, c, js[0], "the first runs", running)
	await(t, c, js[1], "the second runs", running)
	seen := await(t, c, js[2], "the third waits", func(s cluster.Snapshot) bool { return len(s.Events) > 0 })
	if got := seen.Pods[0].Status.Conditions[0]; got.Type != corev1.PodScheduled || got.Reason != "Unschedulable" || !strings.Contains(got.Message, "Insufficient nvidia.com/gpu") {
		t.Errorf("it waits for %+v", got)
	}
	closeCluster(t, c, true) // the allocation survives a restart
	c = open(t, s)
	await(t, c, js[2], "it still waits", func(s cluster.Snapshot) bool { return len(s.Events) > 0 })
	for i, j := range js {
		touch(t, fmt.Sprintf("%s%d", file, i))
		await(t, c, j, "it ends", hasEnded)
		remove(t, c, j)
	}
	b, err := os.ReadFile(file + ".gpus")
	if lines := strings.Fields(string(b)); err != nil || len(lines) != 3 || lines[0] == lines[1] {
		t.Errorf("the pods had %q (%v)", lines, err)
	}
	wantNothingLeft(t, s.Dir)
}

// gpuJob returns a Job that needs a GPU.
func gpuJob(run string, command ...string) *batchv1.Job {
	j := entrypointJob(run, command...)
	j.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	return j
}

func TestAfterARestartAGPUBelongsToThePodThatRuns(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir(), GPUs: 1}
	c, file := open(t, s), filepath.Join(t.TempDir(), "go")
	for i := range 4 { // each had the GPU, and stays
		j := gpuJob(fmt.Sprintf("ended%d", i), "true")
		create(t, c, j)
		await(t, c, j, "it ends", hasEnded)
	}
	runs, waits := gpuJob("runs", untilFileExists(file, 0)...), gpuJob("waits", "true")
	create(t, c, runs)
	await(t, c, runs, "it runs", running)
	create(t, c, waits)
	for range 3 {
		closeCluster(t, c, true)
		// as if its start had failed after its GPU was written down
		record, path := disk.Record{}, disk.Folder{Dir: s.Dir}.RecordFile(string(waits.UID))
		if err := shimapi.Read(path, &record); err != nil {
			t.Fatal(err)
		}
		record.GPUs = []int{0}
		if err := shimapi.Write(path, record); err != nil {
			t.Fatal(err)
		}
		c = open(t, s)
		seen := await(t, c, waits, "it waits or runs", func(s cluster.Snapshot) bool { return len(s.Events) > 0 || running(s) || hasEnded(s) })
		if len(seen.Events) == 0 {
			t.Fatalf("two pods have the GPU: %+v", seen.Pods)
		}
	}
	touch(t, file)
	await(t, c, waits, "it ends", hasEnded)
}

func TestLookingAtAJobIsNoChangeOfIt(t *testing.T) {
	t.Parallel()
	c := open(t, local.Settings{Dir: t.TempDir(), Resync: time.Hour})
	first, second := entrypointJob("first", "true"), entrypointJob("second", "true")
	create(t, c, first)
	await(t, c, first, "it ends", hasEnded)
	looked, done := 0, make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go c.Watch(ctx, func(s cluster.Snapshot) { //nolint:errcheck // until the end
		if s.Ref.Run == "first" {
			looked++
			if _, err := c.Observe(t.Context(), s.Ref); err != nil {
				t.Error(err)
			}
		} else if hasEnded(s) {
			close(done)
			cancel()
		}
	})
	create(t, c, second)
	<-done
	if looked > 2 {
		t.Errorf("a job that nothing happened to was handed over %d times", looked)
	}
}

func TestAJobThatNothingHappensToIsHandedOverAgainAfterEachResync(t *testing.T) {
	t.Parallel()
	c := open(t, local.Settings{Dir: t.TempDir(), Resync: time.Millisecond})
	j := entrypointJob("quiet", "true")
	create(t, c, j)
	await(t, c, j, "it ends", hasEnded)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	times := 0
	err := c.Watch(ctx, func(cluster.Snapshot) {
		if times++; times == 3 {
			cancel()
		}
	})
	if times < 3 {
		t.Errorf("it was handed over %d times, until %v", times, err)
	}
}

func TestWhatABenchmarkMountsIsNotRemovedWithIt(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root can mount")
		return
	}
	s := local.Settings{Dir: t.TempDir(), NoNamespaces: true}
	c, precious := open(t, s), t.TempDir()
	file := filepath.Join(precious, "file")
	touch(t, file)
	j := entrypointJob("mounts", "sh", "-c", "mkdir $BAI_DIR/x && mount --bind "+precious+" $BAI_DIR/x && test -e $BAI_DIR/x/file")
	create(t, c, j)
	if seen := await(t, c, j, "it ends", hasEnded); seen.Job.Status.Succeeded != 1 {
		t.Fatalf("it ended as %+v", benchmarkOf(seen))
	}
	remove(t, c, j)
	wantNothingLeft(t, s.Dir)
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// smallDisk returns a directory on a small disk of its own.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a small disk must be mounted, which needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=48m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func isFull(t *testing.T, dir string) func() bool {
	t.Helper()
	return func() bool {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		return st.Bfree == 0
	}
}

func TestAFullDiskHoldsAPodUpUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: smallDisk(t)}
	c := open(t, s)
	j := entrypointJob("full", "sh", "-c", "dd if=/dev/zero of=/bai/filler bs=4k 2>/dev/null; echo done; exit 5")
	create(t, c, j)
	eventually(t, "the disk is full", isFull(t, s.Dir))
	other := entrypointJob("other", "true")
	if err := c.Create(t.Context(), other); err == nil || errors.As(err, new(*cluster.RefusedError)) {
		t.Errorf("create on a full disk: %v, want an error that passes", err)
	}
	if err := os.Remove(filepath.Join(s.Dir, "pods", string(j.UID), "volumes", "bai", "filler")); err != nil {
		t.Fatal(err)
	}
	if end := benchmarkOf(await(t, c, j, "it ends", hasEnded)).Terminated; end == nil || end.ExitCode != 5 {
		t.Errorf("it ended as %+v", end)
	}
	create(t, c, other)
	await(t, c, other, "the other ends", hasEnded)
	remove(t, c, j)
	remove(t, c, other)
}
