//go:build linux

package local_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// serve answers HTTP at an address: the first request with an error, the later ones with success.
func serve(at string) int {
	asked := 0
	server := http.Server{Addr: at, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintf(w, "%d", asked)
	})}
	_, _ = fmt.Fprintln(os.Stderr, server.ListenAndServe())
	return 1
}

// printMTU prints the MTU of a link.
func printMTU(name string) int {
	l, err := net.InterfaceByName(name)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = fmt.Fprintln(os.Stdout, l.MTU)
	return 0
}

// networked opens a cluster whose pods may have networks.
func networked(t *testing.T, s local.Settings) *local.Cluster {
	t.Helper()
	c := open(t, s)
	if why := c.Namespaces(); why != "" {
		t.Skip(why)
	}
	return c
}

// gangJob returns the objects of a run with n pods that have numbers, and names in
// the headless Service RUN-pods.
func gangJob(run string, n int32, command ...string) (*corev1.Service, *batchv1.Job) {
	j, mode := entrypointJob(run, command...), batchv1.IndexedCompletion
	j.Spec.CompletionMode, j.Spec.Completions, j.Spec.Parallelism = &mode, &n, &n
	j.Spec.Template.Spec.Subdomain = run + "-pods"
	s := serviceOf(run)
	s.Name, s.Spec.ClusterIP = run+"-pods", corev1.ClusterIPNone
	return s, j
}

// serviceOf returns a Service of a run's server.
func serviceOf(run string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: entrypointJob(run).ObjectMeta, Spec: corev1.ServiceSpec{
		Selector: map[string]string{cluster.LabelRun: run}, Ports: []corev1.ServicePort{{Name: "p", Port: 8080}},
	}}
	s.APIVersion, s.Kind, s.Name = "v1", "Service", run+"-server"
	return s
}

// siblingJob returns a Job of another role of a run.
func siblingJob(run, role string, command ...string) *batchv1.Job {
	j := entrypointJob(run, command...)
	j.Name += "-" + role
	labels := map[string]string{cluster.LabelRole: role}
	maps.Copy(labels, j.Labels)
	j.Labels, j.Spec.Template.Labels = labels, labels
	return j
}

// logsByPod returns the logs of a run's pods, by the pod's number.
func logsByPod(t *testing.T, dir string, j *batchv1.Job) map[int]string {
	t.Helper()
	all := map[int]string{}
	paths, err := filepath.Glob(filepath.Join(dir, "pods", string(j.UID)+"*", "logs", "benchmark.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		id := filepath.Base(filepath.Dir(filepath.Dir(path)))
		n, _ := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(id, string(j.UID)), "-"))
		all[n] = string(b)
	}
	return all
}

// wantSuccess waits until a job has ended, which must be well.
func wantSuccess(t *testing.T, c *local.Cluster, dir string, j *batchv1.Job) {
	t.Helper()
	if seen := await(t, c, j, "it ends", hasEnded); seen.Job.Status.Failed > 0 {
		t.Errorf("it failed: %+v\n%v", benchmarkOf(seen), logsByPod(t, dir, j))
	}
}

func TestEachPodOfARunHasANetworkAndNamesOfItsOwn(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c, go1 := networked(t, s), filepath.Join(t.TempDir(), "go")
	service, j := gangJob("names", 2, "sh", "-c", `
		echo hostname=$(cat /proc/sys/kernel/hostname) ip=$IP tmp=$TMPDIR
		until test -e `+go1+`; do sleep 0.01; done
		cat /etc/hosts /proc/net/dev
		touch $TMPDIR/bai-names /run/sshd/bai-names && test ! -e /tmp/bai-names`)
	j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}
	late := siblingJob("names", "launcher", "cat", "/etc/hosts")
	late.Spec.Template.Spec.Hostname, late.Spec.Template.Spec.Subdomain = "launcher", "names-pods"
	create(t, c, service, j)
	await(t, c, j, "both run", func(seen cluster.Snapshot) bool {
		return len(seen.Pods) == 2 && seen.Job.Status.Ready != nil && *seen.Job.Status.Ready == 2
	})
	create(t, c, late)
	touch(t, go1)
	wantSuccess(t, c, s.Dir, j)
	await(t, c, j, "the other ends", func(seen cluster.Snapshot) bool {
		return len(seen.Pods) == 3 && seen.Pods[2].Status.Phase == corev1.PodSucceeded
	})
	hosts := `127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
10.0.0.1 names-0.names-pods.default.svc.cluster.local names-0.names-pods.default.svc names-0.names-pods.default names-0.names-pods names-0
10.0.0.2 names-1.names-pods.default.svc.cluster.local names-1.names-pods.default.svc names-1.names-pods.default names-1.names-pods names-1
10.0.0.1 names-pods.default.svc.cluster.local names-pods.default.svc names-pods.default names-pods
10.0.0.2 names-pods.default.svc.cluster.local names-pods.default.svc names-pods.default names-pods
10.0.0.3 launcher.names-pods.default.svc.cluster.local launcher.names-pods.default.svc launcher.names-pods.default launcher.names-pods launcher
10.0.0.3 names-pods.default.svc.cluster.local names-pods.default.svc names-pods.default names-pods
`
	for n, text := range logsByPod(t, s.Dir, j) {
		for _, want := range []string{fmt.Sprintf("hostname=names-%d ip=10.0.0.%d tmp=/bai/tmp\n", n, n+1), hosts, " lo:", " eth0:"} {
			if !strings.Contains(text, want) {
				t.Errorf("pod %d told %q, without %q", n, text, want)
			}
		}
		if _, links, _ := strings.Cut(text, "Inter-"); strings.Count(links, ":") != 2 {
			t.Errorf("pod %d has other links than its own: %s", n, text)
		}
	}
	if text := logsByPod(t, s.Dir, late)[0]; !strings.Contains(text, "10.0.0.3 launcher.names-pods") || !strings.Contains(text, "names-1") {
		t.Errorf("the pod that came late found %s", text)
	}
	remove(t, c, j)
	wantNothingLeft(t, s.Dir)
}

func TestThePodsOfARunHaveTheMTUOfTheirAnnotation(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c := networked(t, s)
	for run, size := range map[string]string{"large": "9000", "small": "576", "usual": ""} {
		service, j := gangJob(run, 2, os.Args[0])
		j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: envLink, Value: "eth0"}}
		want := "1500"
		if size != "" {
			j.Spec.Template.Annotations, want = map[string]string{cluster.AnnotationMTU: size}, size
		}
		create(t, c, service, j)
		wantSuccess(t, c, s.Dir, j)
		for n, log := range logsByPod(t, s.Dir, j) {
			if !strings.Contains(log, want+"\n") {
				t.Errorf("%s, pod %d: %q, want %s", run, n, log, want)
			}
		}
	}
}

// The program that sets the MTU in the pods of a cluster is run in a pod that has the right
// to set it.
func TestAProgramInAPodSetsTheMTUOfItsLink(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c := networked(t, s)
	service, j := gangJob("sets", 1, "sh", "-c", pod.PathIn("", pod.Binary)+" mtu 1400 && "+pod.PathIn("", pod.Binary)+" mtu 65535 && ! "+pod.PathIn("", pod.Binary)+" mtu 10")
	create(t, c, service, j)
	wantSuccess(t, c, s.Dir, j)
	log := logsByPod(t, s.Dir, j)[0]
	for _, want := range []string{"the MTU of eth0 is 1400 (it was 1500)", "the MTU of eth0 is 65535 (it was 1400)", "set the MTU of eth0 to 10 (it is 65535): "} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in %q", want, log)
		}
	}
}

// serverJob returns a job that answers on port 8080.
func serverJob(run string) *batchv1.Job {
	j := siblingJob(run, "server", os.Args[0])
	j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: envServer, Value: ":8080"}}
	j.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
	return j
}

// clientJob returns a job that starts when its dependency answers under the name of its Service.
func clientJob(run string) *batchv1.Job {
	j := entrypointJob(run, "true")
	install := j.Spec.Template.Spec.InitContainers[0]
	j.Spec.Template.Spec.InitContainers = append(j.Spec.Template.Spec.InitContainers, corev1.Container{
		Name: cluster.ContainerWait, VolumeMounts: install.VolumeMounts,
		Command: []string{pod.PathIn("", pod.ShipBinary), "await"}, Args: []string{"--every=5ms", "--within=15s", "http://" + run + "-server.default.svc:8080/ping"},
	})
	return j
}

func serverOf(run string) *corev1.Service {
	s := serviceOf(run)
	s.Spec.Selector[cluster.LabelRole] = "server"
	return s
}

func TestABenchmarkBeginsWhenWhatItNeedsAnswersAndRunsDoNotMeet(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c := networked(t, s)
	for _, run := range []string{"first", "second"} { // both servers have one port
		create(t, c, serverOf(run), serverJob(run), clientJob(run))
	}
	for _, run := range []string{"first", "second"} {
		wantSuccess(t, c, s.Dir, clientJob(run))
	}
	for _, run := range []string{"first", "second"} {
		remove(t, c, clientJob(run))
	}
	wantNothingLeft(t, s.Dir)
}

func TestAPodWithANetworkOfItsOwnDoesNotReachTheMachine(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c := networked(t, s)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	j := entrypointJob("reaches", "sh", "-c", "! /bai/bin/bai-pod-ship await --within=300ms --every=20ms tcp://"+l.Addr().String())
	j.Spec.Template.Spec.InitContainers = append(j.Spec.Template.Spec.InitContainers, corev1.Container{
		Name: "links", Command: []string{"sh", "-c", "ls -l /proc/self/ns/net /proc/self/ns/uts"},
	})
	create(t, c, serviceOf("reaches"), j)
	wantSuccess(t, c, s.Dir, j)
	b, err := os.ReadFile(filepath.Join(s.Dir, "pods", string(j.UID), "logs", "links.log"))
	for _, kind := range []string{"net", "uts"} {
		own, _ := os.Readlink("/proc/self/ns/" + kind)
		if err != nil || strings.Contains(string(b), own) || !strings.Contains(string(b), kind+":[") {
			t.Errorf("its containers are in %q (%v), the machine in %s", b, err, own)
		}
	}
	remove(t, c, j)
}

// bridgeProcesses returns the processes that join pods below dir.
func bridgeProcesses(t *testing.T, dir string) []int {
	t.Helper()
	var found []int
	for _, pid := range processes(t, filepath.Join(dir, "networks")) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(b), "--hub") {
			found = append(found, pid)
		}
	}
	return found
}

func TestAGangThatRunsIsAdoptedAndMayGrow(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c, file := networked(t, s), filepath.Join(t.TempDir(), "go")
	create(t, c, serverOf("grows"), serverJob("grows"))
	await(t, c, serverJob("grows"), "its server runs", running)
	closeCluster(t, c, true)

	c = open(t, s)
	create(t, c, clientJob("grows"))
	wantSuccess(t, c, s.Dir, clientJob("grows"))
	service, j := gangJob("kept", 3, untilFileExists(file, 0)...)
	create(t, c, service, j)
	before := await(t, c, j, "all run", func(seen cluster.Snapshot) bool { return *seen.Job.Status.Ready == 3 })
	closeCluster(t, c, true)
	c = open(t, s)
	after := await(t, c, j, "all still run", func(seen cluster.Snapshot) bool { return *seen.Job.Status.Ready == 3 })
	for i, p := range after.Pods {
		if p.UID != before.Pods[i].UID {
			t.Errorf("pod %s is another", p.Name)
		}
	}
	touch(t, file)
	wantSuccess(t, c, s.Dir, j)
	remove(t, c, j)
	remove(t, c, clientJob("grows"))
	wantNothingLeft(t, s.Dir)
}

func TestWithTheHubOrASupervisorGoesTheWholeJob(t *testing.T) {
	t.Parallel()
	for name, victim := range map[string]func(t *testing.T, dir string, j *batchv1.Job) int{
		"the hub": func(t *testing.T, dir string, _ *batchv1.Job) int {
			t.Helper()
			return bridgeProcesses(t, dir)[0]
		},
		"a supervisor": func(t *testing.T, dir string, j *batchv1.Job) int {
			t.Helper()
			var s shimapi.State
			if err := shimapi.Read(filepath.Join(dir, "live", string(j.UID)+"-1.json"), &s); err != nil {
				t.Fatal(err)
			}
			return s.PID
		},
	} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, platform away: %t", name, away), func(t *testing.T) {
				t.Parallel()
				wantNothingLeftAfterKilling(t, victim, away)
			})
		}
	}
}

func TestAHubThatASignalHasStoppedGoesWithItsRun(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c := networked(t, s)
	service, j := gangJob("frozen", 2, "sleep", "300")
	create(t, c, service, j)
	await(t, c, j, "all run", func(seen cluster.Snapshot) bool { return *seen.Job.Status.Ready == 2 })
	if err := syscall.Kill(bridgeProcesses(t, s.Dir)[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	remove(t, c, j)
	eventually(t, "the hub has ended", func() bool { return len(bridgeProcesses(t, s.Dir)) == 0 })
	wantNothingLeft(t, s.Dir)
}

// wantNothingLeftAfterKilling kills one process of a gang, and checks that no process, mount or file of the gang remains.
func wantNothingLeftAfterKilling(t *testing.T, victim func(t *testing.T, dir string, j *batchv1.Job) int, away bool) {
	t.Helper()
	s := local.Settings{Dir: t.TempDir()}
	c, needle := networked(t, s), fmt.Sprintf(".%d", 1e6+rand.IntN(1e6))
	service, j := gangJob("lost", 2, daemon(needle)...)
	create(t, c, service, j)
	await(t, c, j, "all run", func(seen cluster.Snapshot) bool { return *seen.Job.Status.Ready == 2 })
	eventually(t, "all its processes run", func() bool { return len(processes(t, "sleep 100"+needle)) > 1 })
	if away {
		closeCluster(t, c, true)
	}
	if err := syscall.Kill(victim(t, s.Dir, j), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if away {
		c = open(t, s)
	}
	eventually(t, "it is gone", isGone(t, c, j))
	if err := c.Delete(t.Context(), refOf(j)); err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, s.Dir, needle)
}

func TestAHubThatIsToldNonsenseServesOn(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c, file := networked(t, s), filepath.Join(t.TempDir(), "go")
	service, j := gangJob("nonsense", 2, untilFileExists(file, 0)...)
	create(t, c, service, j)
	await(t, c, j, "all run", func(seen cluster.Snapshot) bool { return *seen.Job.Status.Ready == 2 })
	dirs, err := filepath.Glob(filepath.Join(s.Dir, "networks", "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("networks %v (%v)", dirs, err)
	}
	dir, err := os.Open(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // only looked at
	for _, words := range []string{"", "x", "{}", `{"args": []}`, strings.Repeat("x", 60<<10)} {
		conn, err := net.Dial("unixpacket", fmt.Sprintf("/proc/self/fd/%d/hub", dir.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(words)); err != nil {
			t.Error(err)
		}
		b := make([]byte, 1<<10)
		if n, err := conn.Read(b); words != "" && (err != nil || !strings.Contains(string(b[:n]), `"problem":`)) {
			t.Errorf("the hub was told %.20q and answers %q (%v)", words, b[:n], err)
		}
		_ = conn.Close()
	}
	other := siblingJob("nonsense", "other", "true")
	create(t, c, other)
	await(t, c, j, "one more comes and ends", func(seen cluster.Snapshot) bool {
		return len(seen.Pods) == 3 && seen.Pods[2].Status.Phase == corev1.PodSucceeded
	})
	touch(t, file)
	wantSuccess(t, c, s.Dir, j)
	remove(t, c, j)
	wantNothingLeft(t, s.Dir)
}

func TestAPodThatFailsEndsThoseThatHaveNotBegun(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c := open(t, s)
		_, j := gangJob("half", 2, "sh", "-c", "exit 3")
		j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "half"}, Key: "a"},
		}}}
		create(t, c, j)
		await(t, c, j, "both wait", func(seen cluster.Snapshot) bool { return benchmarkOf(seen).Waiting != nil })
		closeCluster(t, c, true)
		c = open(t, s)
		create(t, c, configMap("half"))
		seen := await(t, c, j, "all has ended", func(seen cluster.Snapshot) bool { return len(seen.Job.Status.Conditions) == 2 })
		if got := seen.Job.Status.Conditions[1]; got.Type != batchv1.JobFailed || got.Reason != "BackoffLimitExceeded" {
			t.Errorf("it ended as %+v", got)
		}
		remove(t, c, j)
		wantNothingLeft(t, s.Dir)
	})
}

// TestAGangIsMadeWholeOrNotAtAll checks the folders that a platform leaves if it ends while it creates or removes a Job of several pods.
func TestAGangIsMadeWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lose string // of its pods
		mark bool
	}{
		"it was being made":    {lose: "0"},
		"it was being removed": {lose: "1", mark: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := local.Settings{Dir: t.TempDir()}
			c := networked(t, s)
			service, j := gangJob("part", 3, "true")
			j.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "part"}}}}
			create(t, c, service, j)
			closeCluster(t, c, true)
			pods := filepath.Join(s.Dir, "pods", string(j.UID)+"-")
			if err := os.RemoveAll(pods + test.lose); err != nil {
				t.Fatal(err)
			}
			if test.mark {
				if err := shimapi.Write(pods+"2/deleted", map[string]any{"at": time.Now(), "attempt": true}); err != nil {
					t.Fatal(err)
				}
			}
			c = open(t, s)
			eventually(t, "nothing of it is there", isGone(t, c, j))
			if !test.mark {
				create(t, c, j, configMap("part"))
				wantSuccess(t, c, s.Dir, j)
				remove(t, c, j)
			}
			wantNothingLeft(t, s.Dir)
		})
	}
}

func TestAGangThatIsDeletedAtAnyMomentLeavesNothing(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir()}
	c, needle := networked(t, s), fmt.Sprintf(".%d", 1e6+rand.IntN(1e6))
	for i := range 10 {
		service, j := gangJob(fmt.Sprintf("moment%d", i), 2, daemon(needle)...)
		create(t, c, service, j)
		<-time.After(time.Duration(rand.IntN(150)) * time.Millisecond)
		remove(t, c, j)
		wantNothingLeft(t, s.Dir, needle)
	}
}

// TestAPlatformThatIsKilledWhileItMakesGangs is the storm of other tests, with
// Jobs of two pods.
func TestAPlatformThatIsKilledWhileItMakesGangs(t *testing.T) {
	t.Parallel()
	for i := range 6 {
		dir := t.TempDir()
		killed := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this test
		killed.Env = append(os.Environ(), envBinary+"="+podBinary, envPlatform+"="+dir, envGangs+"=1")
		killed.Stderr = os.Stderr
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(rand.IntN(200)) * time.Millisecond
		<-time.After(delay)
		_ = killed.Process.Kill()
		_ = killed.Wait()
		t.Run(fmt.Sprintf("%d after %s", i, delay), func(t *testing.T) {
			c := open(t, local.Settings{Dir: filepath.Join(dir, "cluster")})
			for _, objects := range gangs() {
				createAgain(t, c, objects.service, objects.job)
				wantSuccess(t, c, filepath.Join(dir, "cluster"), objects.job)
				remove(t, c, objects.job)
			}
			wantNothingLeft(t, filepath.Join(dir, "cluster"))
		})
	}
}

// gangObjects are the objects of one gang, in the order of their creation.
type gangObjects struct {
	service *corev1.Service
	job     *batchv1.Job
}

// gangs returns the gangs of a platform that is killed.
func gangs() []gangObjects {
	var all []gangObjects
	for i := range 3 {
		service, j := gangJob(fmt.Sprintf("gang%d", i), 2, "sh", "-c", "sleep 0.05")
		all = append(all, gangObjects{service, j})
	}
	return all
}
