//go:build linux

package local

import (
	"bytes"
	"cmp"
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

// podEnv is the environment of a pod: the objects that it may name, and its network.
type podEnv struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	files      map[string]*corev1.Secret // secrets of files, byte for byte
	hosts      string                    // content of its /etc/hosts if it has a network of its own
	remedy     string                    // remedy for a missing secret
}

// userSecrets is the folder Settings.Secrets; it may be empty.
type userSecrets string

// add adds the values of secrets that a job's containers name and the folder has: those of variables to secrets, without the line feed
// that editors add at the end, and those of files to files. It returns the remedy for secrets that cannot be read.
func (u userSecrets) add(j *job, secrets, files map[string]*corev1.Secret) (remedy string) {
	if u == "" {
		return ""
	}
	template := j.record.Job.Spec.Template.Spec
	for _, r := range variableSecrets(template) {
		value, problem := u.addTo(secrets, r)
		remedy = cmp.Or(remedy, problem)
		if problem == "" {
			secrets[r.Name].Data[r.Key] = bytes.TrimSuffix(value, []byte("\n"))
		}
	}
	for _, r := range fileSecrets(template) {
		_, problem := u.addTo(files, r)
		remedy = cmp.Or(remedy, problem)
	}
	return remedy
}

// addTo adds a value of the folder to secrets, and returns the value, or the remedy if it cannot be read.
func (u userSecrets) addTo(secrets map[string]*corev1.Secret, r cluster.SecretKey) (value []byte, remedy string) {
	value, problem := readSecret(filepath.Join(string(u), r.Name, r.Key))
	if problem != "" {
		return nil, "; " + problem
	}
	if secrets[r.Name] == nil {
		secrets[r.Name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Data: map[string][]byte{}}
	}
	secrets[r.Name].Data[r.Key] = value
	return value, ""
}

// variableSecrets returns the values of secrets that variables of a pod name.
func variableSecrets(s corev1.PodSpec) []cluster.SecretKey {
	var all []cluster.SecretKey
	for _, container := range s.Containers {
		for _, e := range container.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				all = append(all, cluster.SecretKey{Name: e.ValueFrom.SecretKeyRef.Name, Key: e.ValueFrom.SecretKeyRef.Key})
			}
		}
	}
	return all
}

// fileSecrets returns the values of secrets that files of a pod have.
func fileSecrets(s corev1.PodSpec) []cluster.SecretKey {
	var all []cluster.SecretKey
	for _, v := range s.Volumes {
		if v.Secret == nil || !strings.HasPrefix(v.Name, cluster.VolumeSecretFile) {
			continue
		}
		for _, i := range v.Secret.Items {
			all = append(all, cluster.SecretKey{Name: v.Secret.SecretName, Key: i.Key})
		}
	}
	return all
}

// maxSecret is the largest value of a secret, in bytes, as in Kubernetes.
const maxSecret = 1 << 20

// readSecret returns the value in a file, or the remedy if the file cannot be read.
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
	return b, ""
}
