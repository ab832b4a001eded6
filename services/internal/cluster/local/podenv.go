//go:build linux

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// podEnv are what there is for a pod beside itself.
type podEnv struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	hosts      string // what its pod finds in /etc/hosts, where it has a network of its own
	remedy     string // what to do about a secret that is not there
}

// podEnv returns the objects of a locked job's scope, the user's own secrets,
// and the names in the network of its attempt.
func (c *Cluster) podEnv(j *job) podEnv {
	s := podEnv{configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}}
	s.remedy = c.addUserSecrets(j, s.secrets)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.objects {
		kind, m := o.meta()
		if m.Namespace != j.attempt.scope {
			continue
		}
		switch kind {
		case "ConfigMap":
			s.configMaps[m.Name] = o.ConfigMap
		case "Secret":
			s.secrets[m.Name] = o.Secret
		}
	}
	if j.record.Number > 0 {
		s.hosts = strings.Join(c.hostLines(j.attempt), "\n") + "\n"
	}
	return s
}

// port is one that pods of an attempt listen on, or ask another.
type port struct {
	attempt attempt
	jobs    map[string]bool // by ID
}

// claimPorts gives a locked job the ports that its pod listens on, if no other
// attempt has them: pods without a network of their own share the machine's, so
// that one would be answered by another's server.
func (c *Cluster) claimPorts(j *job) bool {
	if j.record.Number > 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	want := portsOf(j)
	for _, n := range want {
		if p, used := c.ports[n]; used && p.attempt != j.attempt {
			return false
		}
	}
	for _, n := range want {
		if _, used := c.ports[n]; !used {
			c.ports[n] = port{j.attempt, map[string]bool{}}
		}
		c.ports[n].jobs[j.id] = true
	}
	return true
}

// portsOf returns the ports that a job's pod listens on.
func portsOf(j *job) []int32 {
	var want []int32
	for _, container := range j.record.Job.Spec.Template.Spec.Containers {
		for _, p := range container.Ports {
			want = append(want, p.ContainerPort)
		}
	}
	return want
}

// addUserSecrets adds those secrets that a job's containers name and the user keeps
// in the folder for them, and says what to do about those that cannot be had.
func (c *Cluster) addUserSecrets(j *job, secrets map[string]*corev1.Secret) (remedy string) {
	if c.settings.Secrets == "" {
		return ""
	}
	for _, r := range secretsOf(j) {
		value, problem := readSecret(filepath.Join(c.settings.Secrets, r.Name, r.Key))
		if problem != "" {
			remedy = cmp.Or(remedy, "; "+problem)
			continue
		}
		if secrets[r.Name] == nil {
			secrets[r.Name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Data: map[string][]byte{}}
		}
		secrets[r.Name].Data[r.Key] = value
	}
	return remedy
}

// Labels implements cluster.Labeler: the user's secrets are files, which have none.
func (*Cluster) Labels(_ context.Context, kind, _, name string) (map[string]string, error) {
	return nil, fmt.Errorf("look at the labels of %s %s: %w", kind, name, cluster.ErrNotFound)
}

// secretsOf returns the values of secrets that a job's containers name.
func secretsOf(j *job) []corev1.SecretKeySelector {
	var all []corev1.SecretKeySelector
	for _, container := range j.record.Job.Spec.Template.Spec.Containers {
		for _, e := range container.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				all = append(all, *e.ValueFrom.SecretKeyRef)
			}
		}
	}
	return all
}

// maxSecret is how much a secret's value may have, as in Kubernetes.
const maxSecret = 1 << 20

// readSecret returns the value in a file, without the line feed that editors
// leave at its end, or what to do so that there is one.
func readSecret(path string) (value []byte, problem string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Sprintf("put its value into the file %s, readable by you alone (chmod 600)", path)
	case err != nil:
		return nil, err.Error()
	case !info.Mode().IsRegular() || info.Size() > maxSecret:
		return nil, fmt.Sprintf("%s is no file of at most %d bytes", path, maxSecret)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Sprintf("others can read %s: chmod 600 it", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err.Error()
	}
	return []byte(strings.TrimSuffix(string(b), "\n")), ""
}
