//go:build linux

package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podEnv is the environment of a pod: the objects that it may name, and its network.
type podEnv struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	hosts      string // content of its /etc/hosts if it has a network of its own
	remedy     string // remedy for a missing secret
}

// userSecrets is the folder Settings.Secrets; it may be empty.
type userSecrets string

// add adds the secrets that a job's containers name and the folder has. It returns the remedy for secrets that cannot be read.
func (u userSecrets) add(j *job, secrets map[string]*corev1.Secret) (remedy string) {
	if u == "" {
		return ""
	}
	for _, r := range secretsOf(j) {
		value, problem := readSecret(filepath.Join(string(u), r.Name, r.Key))
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

// maxSecret is the largest value of a secret, in bytes, as in Kubernetes.
const maxSecret = 1 << 20

// readSecret returns the value in a file, without the line feed that editors add at its end, or the remedy if the file cannot be read.
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
