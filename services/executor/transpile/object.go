package transpile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Annotations of a run's objects.
const (
	annotationOwner = cluster.LabelOwner // whole; the label is cut to what labels may hold
	annotationTeam  = cluster.LabelTeam
	annotationEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

// builder makes the objects of one role.
type builder struct {
	in       Input
	settings Settings
	role     role
	zone     string
}

// name is that of all objects of the role. The role that ends the run has the
// run's own.
func (b builder) name() string {
	name := Name(b.in.Run.Run, b.in.Run.Attempt)
	if b.role.ends {
		return name
	}
	return name + "-" + b.role.name
}

func (b builder) meta() metav1.ObjectMeta {
	h := b.in.Run.Header
	return metav1.ObjectMeta{
		Name: b.name(), Namespace: b.settings.scope(), Labels: b.labels(),
		Annotations: map[string]string{annotationOwner: h.Owner, annotationTeam: h.Namespace},
	}
}

func (b builder) podMeta() metav1.ObjectMeta {
	m := b.meta()
	m.Annotations[annotationEvict] = "false"
	return metav1.ObjectMeta{Labels: m.Labels, Annotations: m.Annotations}
}

// labels are the user's, and over them ours.
func (b builder) labels() map[string]string {
	h, labels := b.in.Run.Header, map[string]string{}
	for k, v := range b.in.Run.Labels {
		if labelKey(k) {
			labels[k] = labelValue(v)
		}
	}
	maps.Copy(labels, map[string]string{
		cluster.LabelRun: h.Run, cluster.LabelAttempt: strconv.Itoa(h.Attempt), cluster.LabelRole: b.role.name,
		cluster.LabelOwner: labelValue(h.Owner), cluster.LabelTeam: labelValue(h.Namespace),
	})
	if h.Set != "" {
		labels[cluster.LabelSet] = labelValue(h.Set)
	}
	if h.Schedule != "" {
		labels[cluster.LabelSchedule] = labelValue(h.Schedule)
	}
	return labels
}

// labelKey reports whether a user's label may be a label of an object: those
// that Kubernetes gives a job's pods itself may not.
func labelKey(k string) bool {
	return len(validation.IsQualifiedName(k)) == 0 && k != "job-name" && k != "controller-uid" &&
		!strings.Contains(k, "kubernetes.io/") && !strings.Contains(k, "k8s.io/") && !strings.HasPrefix(k, "benchmark-ai.dev/")
}

// labelValue returns the part of s that a label can hold.
func labelValue(s string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, s)
	return strings.Trim(safe[:min(len(safe), validation.LabelValueMaxLength)], "-_.")
}

// supplies are what the role's pods need to be there before them.
func (b builder) supplies() []cluster.Object {
	var objects []cluster.Object
	if b.role.script != "" {
		c := &corev1.ConfigMap{ObjectMeta: b.meta(), Data: map[string]string{scriptFile: b.role.script}}
		c.APIVersion, c.Kind = "v1", "ConfigMap"
		objects = append(objects, c)
	}
	return append(objects, b.secret())
}

// secret is the role's Secret, without what is secret.
func (b builder) secret() *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: b.meta(), Type: corev1.SecretTypeOpaque}
	s.APIVersion, s.Kind = "v1", "Secret"
	return s
}

// filled is the role's Secret, whole.
func (b builder) filled(token string) (*corev1.Secret, error) {
	secret, header := b.secret(), b.in.Run.Cause("launched", "")
	secret.Data = make(map[string][]byte)
	files := map[string]any{pod.CollectFile: pod.Collect{
		Header: header, Role: b.role.name, Container: cluster.ContainerBenchmark,
		Brokers: b.settings.Brokers, Token: token, Metrics: metrics(b.role.metrics), MaxLog: b.maxLog(),
	}}
	if len(b.role.data) > 0 {
		files[pod.PullFile] = pod.Pull{Header: header, Brokers: b.settings.Brokers, Token: token, Store: b.settings.ObjectStore, Data: b.role.data}
	}
	for name, v := range files {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		secret.Data[name] = text
	}
	return secret, nil
}

func (b builder) maxLog() int64 {
	if n := b.in.Descriptor.Limits.MaxLogSize; n > 0 {
		return n
	}
	return b.settings.MaxLog
}

func metrics(ms []descriptors.Metric) []pod.Metric {
	var out []pod.Metric
	for _, m := range ms {
		out = append(out, pod.Metric{Name: m.Name, Unit: m.Units, Pattern: m.Pattern})
	}
	return out
}

// ordered returns the keys of m: those in order first, as there, then the rest
// by name.
func ordered[V any](m map[string]V, order []string) []string {
	var names []string
	for _, name := range order {
		if _, ok := m[name]; ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
