//go:build linux

package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
)

// wantsSecret is a job that writes its secret to a file.
func wantsSecret(file string) *batchv1.Job {
	j := entrypointJob("secretive", "sh", "-c", `printf %s "$TOKEN" > `+file)
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
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		s.Secrets = t.TempDir()
		writeSecret(t, s.Secrets, "s3cret\n", 0o600)
		file := filepath.Join(t.TempDir(), "out")
		c, j := open(t, s), wantsSecret(file)
		create(t, c, j)
		await(t, c, j, "it ends", hasEnded)
		if got, err := os.ReadFile(file); err != nil || string(got) != "s3cret" {
			t.Errorf("the job had %q (%v)", got, err)
		}
		remove(t, c, j)
	})
}

func TestAFileWithASecretIsMountedByteForByteAndCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := local.Settings{Dir: t.TempDir(), Secrets: t.TempDir()}
	file := filepath.Join(t.TempDir(), "out")
	j := entrypointJob("secretive", "sh", "-c", `{ cat /opt/.aws/credentials; ls -l /opt/.aws/credentials | cut -c1-10; echo x >> /opt/.aws/credentials || echo kept; } > `+file+` 2>/dev/null`)
	mode, spec := int32(0o440), &j.Spec.Template.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: cluster.VolumeSecretFile + "0", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "registry", DefaultMode: &mode, Items: []corev1.KeyToPath{{Key: "token", Path: "secret"}}},
	}})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{
		Name: cluster.VolumeSecretFile + "0", MountPath: "/opt/.aws/credentials", SubPath: "secret", ReadOnly: true,
	})
	c := networked(t, s)
	create(t, c, j)
	place := filepath.Join(s.Secrets, "registry", "token")
	await(t, c, j, "it says that there is none", func(seen cluster.Snapshot) bool {
		w := benchmarkOf(seen).Waiting
		return w != nil && w.Message == `secret "registry" not found; put its value into the file `+place+", readable by you alone (chmod 600)"
	})
	writeSecret(t, s.Secrets, "s3cret\n", 0o600)
	await(t, c, j, "it ends", hasEnded)
	if got, err := os.ReadFile(file); err != nil || string(got) != "s3cret\n-r--r-----\nkept\n" {
		t.Errorf("the job had %q (%v)", got, err)
	}
	if _, err := os.Stat("/opt/.aws/credentials"); err == nil {
		t.Error("the machine has the file")
	}
	remove(t, c, j)
}

func TestAPodThatWaitsForASecretIsTriedOnceASecondHoweverManyObjectsAreCreated(t *testing.T) {
	t.Parallel()
	c, j := open(t, local.Settings{Dir: t.TempDir(), Secrets: t.TempDir()}), wantsSecret(filepath.Join(t.TempDir(), "out"))
	create(t, c, j)
	for i := range 40 {
		create(t, c, configMap(fmt.Sprintf("other%d", i)))
	}
	tries := func(seen cluster.Snapshot) int { // each gives the job another version
		n, err := strconv.Atoi(seen.Job.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	begin := time.Now()
	first := tries(await(t, c, j, "it waits", func(s cluster.Snapshot) bool { return s.Job != nil }))
	await(t, c, j, "it was tried three times", func(s cluster.Snapshot) bool { return tries(s) >= first+3 })
	if took := time.Since(begin); took < 2*time.Second-100*time.Millisecond {
		t.Errorf("three tries within %s", took)
	}
	remove(t, c, j)
}

func TestASecretThatIsMissingIsSaidWithWhatToDoAndMayComeLater(t *testing.T) {
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		s.Secrets = t.TempDir()
		c, j := open(t, s), wantsSecret(filepath.Join(t.TempDir(), "out"))
		create(t, c, j)
		words := func(seen cluster.Snapshot) string {
			if w := benchmarkOf(seen).Waiting; w != nil {
				return w.Reason + ": " + w.Message
			}
			return ""
		}
		place := filepath.Join(s.Secrets, "registry", "token")
		await(t, c, j, "it says that there is none", func(s cluster.Snapshot) bool {
			return words(s) == `CreateContainerConfigError: secret "registry" not found; put its value into the file `+place+", readable by you alone (chmod 600)"
		})
		writeSecret(t, s.Secrets, "x", 0o644)
		await(t, c, j, "it says that others can read it", func(s cluster.Snapshot) bool {
			return strings.HasSuffix(words(s), "others can read "+place+": chmod 600 it")
		})
		writeSecret(t, s.Secrets, "x", 0o600)
		await(t, c, j, "it ends", hasEnded)
		remove(t, c, j)
	})
}

// withoutPorts reports whether a pod waits for a port.
func withoutPorts(seen cluster.Snapshot) bool {
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
	forEachIsolation(t, func(t *testing.T, s local.Settings) {
		t.Helper()
		c, file := open(t, s), filepath.Join(t.TempDir(), "go")
		first, second := entrypointJob("first", untilFileExists(file, 0)...), entrypointJob("second", "true")
		for _, j := range []*batchv1.Job{first, second} {
			j.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
		}
		create(t, c, first, second)
		await(t, c, first, "the first runs", running)
		await(t, c, second, "the second waits", withoutPorts)
		touch(t, file)
		await(t, c, second, "the second ends", hasEnded)
		remove(t, c, first)
		remove(t, c, second)
	})
}
