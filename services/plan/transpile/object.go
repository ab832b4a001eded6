package transpile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/roles"
)

// Annotations of a run's objects.
const (
	annotationOwner = cluster.LabelOwner // complete; the label may be shortened
	annotationTeam  = cluster.LabelTeam
	annotationEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

// builder makes the objects of one role.
type builder struct {
	in       Input
	settings Settings
	role     roles.Role
	names    roles.Names
	zone     string
}

// name returns the name of all objects of the role.
func (b builder) name() string { return b.names.Of(b.role) }

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
	m.Annotations[cluster.AnnotationGrace] = strconv.FormatInt(int64(b.benchmarkGrace()/time.Second), 10)
	b.annotatePodGroup(m.Annotations)
	b.annotateNetwork(m.Annotations)
	b.annotatePeers(m.Annotations)
	if price := b.role.Hardware.PricePerHour; price != "" {
		m.Annotations[cluster.AnnotationPrice] = price
	}
	return metav1.ObjectMeta{Labels: m.Labels, Annotations: m.Annotations}
}

// labels returns the user's labels with the platform's labels over them.
func (b builder) labels() map[string]string {
	h, labels := b.in.Run.Header, map[string]string{}
	for k, v := range b.in.Run.Labels {
		if labelKey(k) {
			labels[k] = labelValue(v)
		}
	}
	maps.Copy(labels, map[string]string{
		cluster.LabelRun: h.Run, cluster.LabelAttempt: strconv.Itoa(h.Attempt), cluster.LabelRole: b.role.Name,
		cluster.LabelOwner: labelValue(h.Owner), cluster.LabelTeam: labelValue(h.Namespace),
	})
	if b.role.End != "" {
		labels[cluster.LabelEnd] = b.role.End
	}
	if h.Set != "" {
		labels[cluster.LabelSet] = labelValue(h.Set)
	}
	if h.Schedule != "" {
		labels[cluster.LabelSchedule] = labelValue(h.Schedule)
	}
	return labels
}

// labelKey reports whether a user's label may be a label of an object. Labels that
// Kubernetes itself sets on a job's pods may not.
func labelKey(k string) bool {
	return len(validation.IsQualifiedName(k)) == 0 && k != "job-name" && k != "controller-uid" &&
		!strings.Contains(k, "kubernetes.io/") && !strings.Contains(k, "k8s.io/") && !strings.HasPrefix(k, "benchmark-ai.dev/")
}

// labelValue returns s shortened and with other characters replaced, so that it is a
// valid label value.
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

// selector returns the labels that select exactly the pods of the role.
func (b builder) selector() map[string]string {
	return map[string]string{
		cluster.LabelRun: b.in.Run.Run, cluster.LabelAttempt: strconv.Itoa(b.in.Run.Attempt), cluster.LabelRole: b.role.Name,
	}
}

// prerequisites returns the objects that must exist before the role's pods.
func (b builder) prerequisites() []cluster.Object {
	var objects []cluster.Object
	if len(b.role.Scripts()) > 0 && (!b.settings.Owner || !b.role.EndsRun) {
		objects = append(objects, b.roleConfigMap())
	}
	if len(b.role.SSHFiles) > 0 {
		objects = append(objects, b.newConfigMap(b.names.Shared("mpi"), b.role.SSHFiles))
	}
	objects = append(objects, b.emptySecret())
	if b.role.OwnsKeys {
		objects = append(objects, b.keysSecret(roles.Keys{}))
	}
	if (b.role.OwnsNames || len(b.role.Ports) > 0) && !b.names.Operator {
		objects = append(objects, b.networkService())
	}
	return objects
}

// roleConfigMap returns the role's ConfigMap, with its scripts if it has any.
func (b builder) roleConfigMap() *corev1.ConfigMap {
	return b.newConfigMap(b.name(), b.role.Scripts())
}

func (b builder) newConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: b.meta(), Data: data}
	c.APIVersion, c.Kind, c.Name = "v1", "ConfigMap", name
	return c
}

// networkService returns a Service that gives the role a name on the network, or the
// headless Service that gives each pod of the run a name.
func (b builder) networkService() *corev1.Service {
	s := &corev1.Service{ObjectMeta: b.meta(), Spec: corev1.ServiceSpec{Selector: b.selector()}}
	s.APIVersion, s.Kind = "v1", "Service"
	if b.role.OwnsNames {
		s.Name = b.names.Subdomain(b.role)
		delete(s.Spec.Selector, cluster.LabelRole)
		s.Spec.ClusterIP, s.Spec.PublishNotReadyAddresses = corev1.ClusterIPNone, true
	}
	for i, port := range b.role.Ports {
		n := int32(port) //nolint:gosec // a port
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: portName(i), Protocol: corev1.ProtocolTCP, Port: n, TargetPort: intstr.FromInt32(n),
		})
	}
	return s
}

func portName(i int) string { return fmt.Sprintf("port-%d", i) }

// keysSecret returns the Secret with the ssh keys of the run. It is empty without keys.
func (b builder) keysSecret(k roles.Keys) *corev1.Secret {
	s := b.emptySecret()
	s.Name = b.names.Shared("keys")
	if len(k.Private) > 0 {
		s.Data = map[string][]byte{"id": k.Private, "id.pub": k.Public, "host": k.HostKey, "known_hosts": k.KnownHosts}
	}
	return s
}

// emptySecret returns the role's Secret without data.
func (b builder) emptySecret() *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: b.meta(), Type: corev1.SecretTypeOpaque}
	s.APIVersion, s.Kind = "v1", "Secret"
	return s
}

// filledSecret returns the role's Secret with its data.
func (b builder) filledSecret(token string) (*corev1.Secret, error) {
	secret, header := b.emptySecret(), b.in.Run.Cause("launched", "")
	secret.Data = make(map[string][]byte)
	files := map[string]any{pod.CollectFile: pod.Collect{
		Header: header, Role: b.role.Name, Container: cluster.ContainerBenchmark,
		Brokers: b.settings.Brokers, Access: b.settings.Access, Token: token, Metrics: podMetrics(b.role.Metrics),
		MaxLog: b.maxLog(), Reserve: b.settings.Reserve,
		Gateway: b.settings.Gateway, Artifacts: b.role.Artifacts, Volumes: mountPaths(b.artifactMounts()),
		Drain:  max(b.podGrace()-15*time.Second, b.podGrace()/2),
		Scrape: b.role.Scrape, OTLP: b.role.OTLP, Series: b.maxSeries(), Steps: b.role.StepNames(), LastStep: b.role.LastStep(),
	}}
	if len(b.role.Data) > 0 {
		files[pod.PullFile] = pod.Pull{
			Header: header, Brokers: b.settings.Brokers, Access: b.settings.Access, Token: token, Store: b.settings.ObjectStore,
			Data: b.role.Data, Shared: b.sharedDataSets(),
			MaxFiles: b.settings.Unpack.MaxFiles, MaxUnpacked: b.settings.Unpack.MaxBytes, Reserve: b.settings.Unpack.Reserve,
		}
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

// maxSeries returns the maximum number of series of the collector of a pod, or zero if
// it is the maximum of the run. If the output is read from outside the pod, since the
// platform's entrypoint does not run the benchmark, the follower has the other half.
func (b builder) maxSeries() int {
	n := pod.SeriesLimit(b.role.EndsRun && !b.role.Indexed, b.role.OtherPods)
	if !b.hasEntrypoint() {
		n /= 2
	}
	if n == pod.MaxSeries {
		return 0
	}
	return max(1, n)
}

// mountPaths returns the paths of mounts.
func mountPaths(mounts []corev1.VolumeMount) []string {
	var all []string
	for _, m := range mounts {
		all = append(all, m.MountPath)
	}
	return all
}

// artifacts returns the artifacts for the program in the benchmark's container, as
// JSON in a text whose dollars Kubernetes keeps. It is empty if there are none, or no gateway
// to store them.
func (b builder) artifacts() string {
	if len(b.role.Artifacts) == 0 || b.settings.Gateway == "" {
		return ""
	}
	return escapedJSON(b.role.Artifacts)
}

// parsers returns the parsers for the program in the benchmark's container, as JSON in a text
// whose dollars Kubernetes keeps. It is empty if there are none.
func (b builder) parsers() string {
	if len(b.role.Parsers) == 0 {
		return ""
	}
	return escapedJSON(b.role.Parsers)
}

// escapedJSON returns v as JSON in the text of a variable, in which Kubernetes would expand
// $(NAME) and turn $$ into $.
func escapedJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return escapeDollars([]string{string(text)})[0]
}

func (b builder) maxLog() int64 {
	if n := b.in.Descriptor.Limits.MaxLogSize; n > 0 {
		return n
	}
	return b.settings.MaxLog
}

func podMetrics(ms []descriptors.Metric) []pod.Metric {
	var out []pod.Metric
	for _, m := range ms {
		parser := m.Parser
		if parser == "lines" {
			parser = "" // the default
		}
		made := pod.Metric{Name: m.Name, Unit: m.Units, Pattern: m.Pattern, Parser: parser, Direction: string(m.Direction)}
		if parser == descriptors.BlockParser {
			made.Block = pod.Block{Begin: m.Block, Lines: m.BlockLines, Within: m.BlockTime}
		}
		out = append(out, made)
	}
	return out
}

// orderedKeys returns the keys of m: first those in order, then the others sorted by
// name.
func orderedKeys[V any](m map[string]V, order []string) []string {
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
