//go:build linux

package local_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// wantsSecret is a job that writes its secret to a file.
func wantsSecret(file string) *batchv1.Job {
	j := wrapped("secretive", "sh", "-c", `printf %s "$TOKEN" > `+file)
	j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "registry"}, Key: "token"},
	}}}
	return j
}

func writeSecret(t *testing.T, dir, value string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, "registry", "token")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestAUsersSecretComesFromAFile(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		s.Secrets = t.TempDir()
		writeSecret(t, s.Secrets, "s3cret\n", 0o600)
		file := filepath.Join(t.TempDir(), "out")
		c, j := open(t, s), wantsSecret(file)
		create(t, c, j)
		await(t, c, j, "it ends", over)
		if got, err := os.ReadFile(file); err != nil || string(got) != "s3cret" {
			t.Errorf("the job had %q (%v)", got, err)
		}
		remove(t, c, j)
	})
}

func TestASecretThatIsMissingIsSaidWithWhatToDoAndMayComeLater(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		s.Secrets = t.TempDir()
		c, j := open(t, s), wantsSecret(filepath.Join(t.TempDir(), "out"))
		create(t, c, j)
		words := func(seen cluster.Seen) string {
			if w := benchmarkOf(seen).Waiting; w != nil {
				return w.Reason + ": " + w.Message
			}
			return ""
		}
		place := filepath.Join(s.Secrets, "registry", "token")
		await(t, c, j, "it says that there is none", func(s cluster.Seen) bool {
			return words(s) == `CreateContainerConfigError: secret "registry" not found; put its value into the file `+place+", readable by you alone (chmod 600)"
		})
		writeSecret(t, s.Secrets, "x", 0o644)
		await(t, c, j, "it says that others can read it", func(s cluster.Seen) bool {
			return strings.HasSuffix(words(s), "others can read "+place+": chmod 600 it")
		})
		writeSecret(t, s.Secrets, "x", 0o600)
		await(t, c, j, "it ends", over)
		remove(t, c, j)
	})
}

func TestPodsOfARunFindEachOtherByName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, local.Settings{Dir: dir})
	if why := c.Namespaces(); why != "" {
		t.Skip(why)
	}
	file := filepath.Join(t.TempDir(), "hosts")
	j := wrapped("client", "cp", "/etc/hosts", file)
	service := &corev1.Service{ObjectMeta: j.ObjectMeta}
	service.Name, service.APIVersion, service.Kind = "client-server", "v1", "Service"
	other := service.DeepCopy()
	other.Name, other.Labels = "other-server", map[string]string{cluster.LabelRun: "other", cluster.LabelAttempt: "1"}
	create(t, c, service, other, j)
	await(t, c, j, "it ends", over)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSuffix(string(own), "\n") + "\n127.0.0.1 client-server.default.svc client-server.default client-server\n"
	if string(got) != want {
		t.Errorf("its pod finds %q, want %q", got, want)
	}
	if err := c.Delete(t.Context(), cluster.Ref{Run: "other", Attempt: 1, Scope: "default", Job: "other"}); err != nil {
		t.Fatal(err)
	}
	remove(t, c, j)
	nothingLeft(t, dir)
}

// TestNobodyIsAnsweredByAnotherRunsServer: all pods have the machine's addresses,
// so that a client waits while another run's server has the port of its own.
func TestNobodyIsAnsweredByAnotherRunsServer(t *testing.T) {
	t.Parallel()
	c, file := open(t, local.Settings{Dir: t.TempDir()}), filepath.Join(t.TempDir(), "go")
	if why := c.Namespaces(); why != "" {
		t.Skip(why)
	}
	server, client := wrapped("first", until(file, 0)...), wrapped("second", "true")
	server.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
	service := &corev1.Service{ObjectMeta: client.ObjectMeta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}}}
	service.Name, service.APIVersion, service.Kind = "second-server", "v1", "Service"
	create(t, c, server)
	await(t, c, server, "the server runs", running)
	create(t, c, service, client)
	await(t, c, client, "the other's client waits", withoutPorts)
	touch(t, file)
	await(t, c, client, "the other's client ends", over)
	remove(t, c, server)
	remove(t, c, client)
}

// withoutPorts reports whether a pod waits for a port.
func withoutPorts(seen cluster.Seen) bool {
	for _, p := range seen.Pods {
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && strings.Contains(condition.Message, "free ports") {
				return true
			}
		}
	}
	return false
}

func TestAPortIsOnePodsAtATime(t *testing.T) {
	modes(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c, file := open(t, s), filepath.Join(t.TempDir(), "go")
		first, second := wrapped("first", until(file, 0)...), wrapped("second", "true")
		for _, j := range []*batchv1.Job{first, second} {
			j.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
		}
		create(t, c, first, second)
		await(t, c, first, "the first runs", running)
		await(t, c, second, "the second waits", withoutPorts)
		touch(t, file)
		await(t, c, second, "the second ends", over)
		remove(t, c, first)
		remove(t, c, second)
	})
}

// TestABenchmarkBeginsWhenWhatItNeedsAnswers: by the name of its Service.
func TestABenchmarkBeginsWhenWhatItNeedsAnswers(t *testing.T) {
	t.Parallel()
	c := open(t, local.Settings{Dir: t.TempDir()})
	if why := c.Namespaces(); why != "" {
		t.Skip(why)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // closed below
	asked := make(chan struct{}, 100)
	bad := true
	server := http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if bad {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		bad = false
		asked <- struct{}{}
	})}
	go server.Serve(l)   //nolint:errcheck // until it is closed
	defer server.Close() //nolint:errcheck // the test is over

	j := wrapped("asks", "true")
	service := &corev1.Service{ObjectMeta: j.ObjectMeta}
	service.Name, service.APIVersion, service.Kind = "asks-server", "v1", "Service"
	target := strings.Replace("http://"+l.Addr().String()+"/ping", "127.0.0.1", "asks-server.default.svc", 1)
	install := j.Spec.Template.Spec.InitContainers[0]
	j.Spec.Template.Spec.InitContainers = append(j.Spec.Template.Spec.InitContainers, corev1.Container{
		Name: cluster.ContainerWait, VolumeMounts: install.VolumeMounts,
		Command: []string{pod.In("", pod.Binary), "await"}, Args: []string{"--every=1ms", target},
	})
	create(t, c, service, j)
	if seen := await(t, c, j, "it ends", over); seen.Job.Status.Succeeded != 1 || len(asked) != 2 {
		t.Errorf("asked %d times, and then %+v", len(asked), benchmarkOf(seen))
	}
	remove(t, c, j)
}
