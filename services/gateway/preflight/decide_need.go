package preflight

import (
	"cmp"
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/descriptors/manifest"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/roles"
)

// Requirements are the things that a run needs.
type Requirements struct {
	Settings     Settings
	Scope        string           // Kubernetes namespace of the run
	Objects      []cluster.Object // objects of the run
	PlanError    string           // reason why the run can have no objects; empty if it has some
	ClusterError string           // reason why the cluster could not be surveyed; empty if it was
	Data         []DataSource
	Images       []cluster.Image // registry answers for images whose own entrypoint is run
}

// DataSource is one data set.
type DataSource struct {
	Source     string
	DenyReason string // reason why the source may not be read; empty if it may
}

// NewInquiry returns the request for a survey of the cluster.
func NewInquiry(n Requirements, s Settings) cluster.SurveyRequest {
	q := cluster.SurveyRequest{Scope: n.Scope, Objects: n.Objects, Permissions: rights(n.Objects, s), Kinds: kinds(n.Objects)}
	own := map[string]bool{}
	for _, o := range n.Objects {
		switch o := o.(type) {
		case *corev1.PersistentVolumeClaim:
			q.StorageClasses = append(q.StorageClasses, className(o))
		case *corev1.Secret:
			own[o.GetName()] = true
		}
	}
	for _, r := range rolesOf(n.Objects) {
		foreign := slices.DeleteFunc(secrets(r.spec), func(k cluster.SecretKey) bool { return own[k.Name] })
		q.Secrets, q.Programs = union(q.Secrets, foreign), union(q.Programs, programs(r))
		if r.network != "" {
			q.Kinds, q.Networks = union(q.Kinds, []schema.GroupVersionKind{networkKind()}), union(q.Networks, []string{r.network})
		}
		if name := r.spec.PriorityClassName; name != "" {
			q.PriorityClasses = union(q.PriorityClasses, []string{name})
		}
	}
	return q
}

// networkKind returns the kind of the networks of Multus.
func networkKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Kind: "NetworkAttachmentDefinition"}
}

// union appends to all the elements of more that it does not have yet.
func union[T comparable](all, more []T) []T {
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// role is a group of equal pods of a run: those of one Job, or of one replica type of
// an MPIJob.
type role struct {
	name     string
	replicas int64
	spec     corev1.PodSpec
	network  string // of Multus, in place of the pod network; empty for none
	measured string // name of the measured container, if it is another one than in other pods
}

func rolesOf(objects []cluster.Object) []role {
	var all []role
	for _, o := range objects {
		switch o := o.(type) {
		case *batchv1.Job:
			r := role{
				name: cmp.Or(o.Labels[cluster.LabelRole], o.Name), replicas: 1, spec: o.Spec.Template.Spec,
				network: o.Spec.Template.Annotations[cluster.AnnotationNetwork],
			}
			r.measured = o.Spec.Template.Annotations[cluster.AnnotationContainer]
			if o.Spec.Parallelism != nil {
				r.replicas = int64(*o.Spec.Parallelism)
			}
			all = append(all, r)
		case *mpijob.Job:
			all = append(all, mpiRoles(o)...)
		case *unstructured.Unstructured:
			all = append(all, objectRoles(o)...)
		}
	}
	return all
}

// mpiRoles returns the roles of an MPIJob, in the order in which separate Jobs would be
// created.
func mpiRoles(j *mpijob.Job) []role {
	var all []role
	for _, name := range []string{mpijob.Worker, mpijob.Launcher} {
		if r, ok := j.Spec.ReplicaSpecs[name]; ok {
			all = append(all, role{
				name: cmp.Or(r.Template.Labels[cluster.LabelRole], strings.ToLower(name)), replicas: int64(r.Replicas),
				spec: r.Template.Spec, network: r.Template.Annotations[cluster.AnnotationNetwork],
			})
		}
	}
	return all
}

// objectRoles returns the groups of pods of an object of a manifest, as far as they are known.
func objectRoles(o *unstructured.Unstructured) []role {
	kind, _ := manifest.Find(o.GetAPIVersion(), o.GetKind())
	var all []role
	for _, group := range kind.Pods(o.Object) {
		var template corev1.PodTemplateSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(group.Template, &template) == nil {
			all = append(all, role{
				name: cmp.Or(template.Labels[cluster.LabelRole], o.GetName()), replicas: int64(group.Count), spec: template.Spec,
				measured: template.Annotations[cluster.AnnotationContainer],
			})
		}
	}
	return all
}

// benchmark returns the container of a role that runs the user's image.
func (r role) benchmark() corev1.Container {
	for _, c := range r.spec.Containers {
		if c.Name == cmp.Or(r.measured, cluster.ContainerBenchmark) {
			return c
		}
	}
	return corev1.Container{}
}

// className returns the storage class of a claim, or "" for the default class.
func className(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return ""
	}
	return *c.Spec.StorageClassName
}

// rights returns the permissions that the executor and the watcher use for a run with
// these objects.
func rights(objects []cluster.Object, s Settings) []cluster.Permission {
	var all []cluster.Permission
	add := func(account, group, resource string, verbs ...string) {
		for _, verb := range verbs {
			if r := (cluster.Permission{Account: account, Verb: verb, Group: group, Resource: resource}); !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	add(s.Executor, "batch", "jobs", "create", "delete", "get", "list")
	add(s.Executor, "", "pods", "delete", "list")
	for _, o := range objects {
		switch kind := o.GetObjectKind().GroupVersionKind(); {
		case kind.Group == "" && kind.Kind == "Secret":
			add(s.Executor, "", "secrets", "create", "deletecollection")
		case kind.Group == "" && kind.Kind == "ConfigMap":
			add(s.Executor, "", "configmaps", "create", "delete", "get", "list")
		case kind.Group == "batch" && kind.Kind == "Job":
		case kind.Kind == mpijob.Kind || o.GetAnnotations()[cluster.AnnotationSucceeded] != "":
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			add(s.Executor, kind.Group, plural.Resource, "create", "delete", "list")
			add(s.Watcher, kind.Group, plural.Resource, "list", "watch")
		default:
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			add(s.Executor, kind.Group, plural.Resource, "create", "delete", "list")
		}
	}
	add(s.Watcher, "batch", "jobs", "get", "list", "watch")
	add(s.Watcher, "", "pods", "list", "watch")
	add(s.Watcher, "", "events", "list", "watch")
	if slices.ContainsFunc(rolesOf(objects), runsEntrypoint) || slices.ContainsFunc(objects, isFollowed) {
		add(s.Watcher, "", "pods/log", "get")
	}
	if slices.ContainsFunc(rolesOf(objects), getsPeers) {
		add(s.Watcher, "", "pods/status", "patch")
	}
	return all
}

// getsPeers reports whether the pods of a role get the addresses of the run's pods.
func getsPeers(r role) bool {
	return slices.ContainsFunc(r.spec.InitContainers, func(c corev1.Container) bool { return c.Name == cluster.ContainerHosts })
}

// runsEntrypoint reports whether a role runs the entrypoint of its image.
func runsEntrypoint(r role) bool { return len(r.benchmark().Command) == 0 }

// isFollowed reports whether the logs of the pods of an object are followed: those of a kind
// without pod templates, whose pods have the labels of the run or are selected.
func isFollowed(o cluster.Object) bool {
	kind, _ := manifest.Find(o.GetObjectKind().GroupVersionKind().GroupVersion().String(), o.GetObjectKind().GroupVersionKind().Kind)
	return kind.PodMetadata != "" || o.GetAnnotations()[cluster.AnnotationPodSelector] != ""
}

// kinds returns the kinds of objects that not every cluster has.
func kinds(objects []cluster.Object) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, o := range objects {
		kind := o.GetObjectKind().GroupVersionKind()
		if _, queued := o.GetLabels()[cluster.LabelKueueQueue]; queued {
			all = union(all, []schema.GroupVersionKind{{Group: "kueue.x-k8s.io", Kind: "LocalQueue"}})
		}
		if kind.Group != "" && kind.Group != "batch" && !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	return all
}

// secrets returns the secrets that a pod names.
func secrets(s corev1.PodSpec) []cluster.SecretKey {
	var all []cluster.SecretKey
	for _, ref := range s.ImagePullSecrets {
		all = append(all, cluster.SecretKey{Name: ref.Name})
	}
	for _, v := range s.Volumes {
		if v.Secret != nil {
			all = append(all, secretsOf(*v.Secret)...)
		}
	}
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				all = append(all, cluster.SecretKey{Name: e.ValueFrom.SecretKeyRef.Name, Key: e.ValueFrom.SecretKeyRef.Key})
			}
		}
	}
	return all
}

// secretsOf returns the values that a volume takes from a Secret, or the Secret as a whole.
func secretsOf(v corev1.SecretVolumeSource) []cluster.SecretKey {
	if len(v.Items) == 0 {
		return []cluster.SecretKey{{Name: v.SecretName}}
	}
	var all []cluster.SecretKey
	for _, i := range v.Items {
		all = append(all, cluster.SecretKey{Name: v.SecretName, Key: i.Key})
	}
	return all
}

// programs returns the programs that a role's container starts: the first word after
// the platform's entrypoint program, the program that env looks up, and the programs
// that the platform's MPI scripts call. It leaves out programs in code that is sent
// along.
func programs(r role) []string {
	command := r.benchmark().Command
	if at := slices.Index(command, "--"); at >= 0 {
		command = command[at+1:]
	}
	var all []string
	if len(command) > 0 && strings.HasPrefix(command[0], pod.Dir+"/mpi/") { // the command of a launcher or worker
		all = append(all, "ssh", "sshd")
		// the platform's script that calls mpirun
		if path.Base(command[0]) == "launch" && len(command) > 1 && !strings.HasPrefix(path.Base(command[1]), "mpi") {
			all = append(all, "mpirun")
		}
		command = command[1:]
	}
	all = append(all, leadingPrograms(command, r.benchmark().Env)...)
	return append(all, leadingPrograms(startedByMPI(command), r.benchmark().Env)...)
}

// startedByMPI returns the command that a command of mpirun starts on each host, or nil
// if that command cannot be determined.
func startedByMPI(command []string) []string {
	if len(command) == 0 || !roles.StartsRanks(command[0]) {
		return nil
	}
	values := map[string]int{}
	for n, options := range []string{
		"oversubscribe allow-run-as-root tag-output display-map report-bindings nolocal quiet q v verbose l",
		"n np N c H host hosts hostfile machinefile f ppn perhost npernode map-by bind-to rank-by x wd wdir launcher",
		"mca gmca prtemca pmixmca env genv",
	} {
		for o := range strings.FieldsSeq(options) {
			values[o] = n
		}
	}
	for rest := command[1:]; len(rest) > 0; {
		option, isOption := strings.CutPrefix(rest[0], "-")
		if !isOption {
			return rest
		}
		n, ok := values[strings.TrimPrefix(option, "-")]
		if !ok || len(rest) <= n {
			return nil // an unknown option may take the next word
		}
		rest = rest[n+1:]
	}
	return nil
}

// leadingPrograms returns the programs that a command starts with: its first word, and
// the program that env looks up.
func leadingPrograms(command []string, vars []corev1.EnvVar) []string {
	var all []string
	for i, word := range command {
		if strings.HasPrefix(word, pod.Dir+"/") || i > 0 && strings.HasPrefix(word, "-") {
			break
		}
		if i > 0 && strings.Contains(word, "=") {
			continue // a variable that env sets
		}
		word = expandVars(word, vars)
		if strings.Contains(word, "$(") || strings.HasPrefix(word, pod.ScriptsDir+"/") {
			break // the program is only known at run time
		}
		all = append(all, word)
		if path.Base(word) != "env" {
			break
		}
	}
	return all
}

// expandVars expands the variables in a word that have a value, as Kubernetes does in
// commands.
func expandVars(word string, vars []corev1.EnvVar) string {
	return cluster.Expand(word, func(name string) (string, bool) {
		i := slices.IndexFunc(vars, func(v corev1.EnvVar) bool { return v.Name == name && v.ValueFrom == nil })
		if i < 0 {
			return "", false
		}
		return vars[i].Value, true
	})
}
