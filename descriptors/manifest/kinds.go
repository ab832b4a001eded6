package manifest

import (
	"maps"
	"slices"
	"strings"
)

// A Kind is a kind of object that runs pods to an end. Paths are names of keys with points
// between them; NAME[*] stands for every item of a list, and * for every value of a map.
type Kind struct {
	APIVersion string
	Kind       string
	Operator   string // brings the kind into a cluster; empty if every cluster has it

	Templates   []Template
	PodMetadata string // path of labels and annotations for pods of a kind without templates of pods

	// PodLabel is a label of the pods of a kind without any of both, whose value is the name of
	// the object. It is empty if there is none.
	PodLabel string

	Container string // that is measured; the first one if a pod has none of that name
	Succeeded Condition
	Failed    Condition

	Deadline string         // path of the seconds that the object may run; empty if it has none
	TTL      string         // path of the seconds that the ended object stays; empty if it has none
	Suspend  string         // path of the switch with which a queue holds it back; empty if it has none
	Defaults map[string]any // values, by path, that an object has that says nothing about them

	ReplicaIndex bool // its pods have the label training.kubeflow.org/replica-index
}

// A Template is where an object has templates of pods, which have the type PodTemplateSpec.
type Template struct {
	At     string   // path of the groups of equal pods
	Spec   string   // path of the template in a group
	Counts []string // paths in a group of numbers whose product is that of the pods; one that is not there is 1

	Defaults map[string]any // as those of the kind, in a group
	Restart  string         // path in a group of the policy by which its pods start again; empty if the pod template has it
}

// Pods is a group of equal pods of an object.
type Pods struct {
	Group    map[string]any // what the object says about the group
	Template map[string]any
	Count    int
	Of       Template
}

// Kinds returns the known kinds. The caller may change the result.
func Kinds() []Kind {
	kinds := []Kind{
		{
			APIVersion: "batch/v1", Kind: "Job",
			Templates: []Template{{At: "spec", Spec: "template", Counts: []string{"parallelism"}}},
			Succeeded: Condition{Type: "Complete"}, Failed: Condition{Type: "Failed"},
			Deadline: "spec.activeDeadlineSeconds", TTL: "spec.ttlSecondsAfterFinished", Suspend: "spec.suspend",
			Defaults: map[string]any{"spec.backoffLimit": int64(0)},
		},
		{
			APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Operator: "JobSet (sigs.k8s.io/jobset)",
			Templates: []Template{{
				At: "spec.replicatedJobs[*]", Spec: "template.spec.template", Counts: []string{"replicas", "template.spec.parallelism"},
				Defaults: map[string]any{"template.spec.backoffLimit": int64(0)},
			}},
			Succeeded: Condition{Type: "Completed"}, Failed: Condition{Type: "Failed"},
			TTL: "spec.ttlSecondsAfterFinished", Suspend: "spec.suspend",
		},
		replicaSpecs("v2beta1", "MPIJob", "mpiReplicaSpecs", "", "the MPI operator (kubeflow.org/v2beta1)"),
	}
	for _, k := range []struct{ kind, specs, container string }{
		{"TFJob", "tfReplicaSpecs", "tensorflow"},
		{"PyTorchJob", "pytorchReplicaSpecs", "pytorch"},
		{"MXJob", "mxReplicaSpecs", "mxnet"},
		{"XGBoostJob", "xgbReplicaSpecs", "xgboost"},
		{"MPIJob", "mpiReplicaSpecs", "mpi"},
	} {
		kinds = append(kinds, replicaSpecs("v1", k.kind, k.specs, k.container, "Kubeflow's training operator (kubeflow.org/v1)"))
	}
	return append(kinds,
		Kind{
			APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Operator: "Kubeflow Trainer",
			Succeeded: Condition{Type: "Complete"}, Failed: Condition{Type: "Failed"}, Suspend: "spec.suspend",
			PodLabel: "jobset.sigs.k8s.io/jobset-name",
		},
		Kind{
			APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", Operator: "Argo Workflows",
			PodMetadata: "spec.podMetadata", Container: "main",
			Succeeded: Condition{Path: []string{"status", "phase"}, Values: []string{"Succeeded"}},
			Failed:    Condition{Path: []string{"status", "phase"}, Values: []string{"Failed", "Error"}},
			Deadline:  "spec.activeDeadlineSeconds",
		})
}

// replicaSpecs returns a kind of Kubeflow, whose pods are in a map of replica types.
func replicaSpecs(version, kind, specs, container, operator string) Kind {
	return Kind{
		APIVersion: "kubeflow.org/" + version, Kind: kind, Operator: operator, Container: container,
		Templates: []Template{{At: "spec." + specs + ".*", Spec: "template", Counts: []string{"replicas"}, Restart: "restartPolicy"}},
		Succeeded: Condition{Type: "Succeeded"}, Failed: Condition{Type: "Failed"},
		Deadline: "spec.runPolicy.activeDeadlineSeconds", TTL: "spec.runPolicy.ttlSecondsAfterFinished", Suspend: "spec.runPolicy.suspend",
		Defaults:     map[string]any{"spec.runPolicy.backoffLimit": int64(0), "spec.runPolicy.cleanPodPolicy": "Running"},
		ReplicaIndex: true,
	}
}

// Find returns a known kind.
func Find(apiVersion, kind string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.APIVersion == apiVersion && k.Kind == kind {
			return k, true
		}
	}
	return Kind{}, false
}

// Unlabeled reports whether the pods of the kind get no labels of the platform, so that a selector
// has to find them. Those of an unknown kind, the zero one, get none.
func (k Kind) Unlabeled() bool { return len(k.Templates) == 0 && k.PodMetadata == "" }

// ResourceKind returns the name by which settings list the kind.
func (k Kind) ResourceKind() string { return ResourceKind(k.APIVersion, k.Kind) }

// Pods returns the groups of pods of an object, as parts of it: who changes them changes the
// object. The order is always the same.
func (k Kind) Pods(object map[string]any) []Pods {
	var all []Pods
	for _, t := range k.Templates {
		for _, group := range visit(object, strings.Split(t.At, ".")) {
			for _, template := range visit(group, strings.Split(t.Spec, ".")) {
				all = append(all, Pods{Group: group, Template: template, Count: t.count(group), Of: t})
			}
		}
	}
	return all
}

// maxPods bounds the number of pods that a group is counted with.
const maxPods = 1 << 16

func (t Template) count(group map[string]any) int {
	n := 1
	for _, path := range t.Counts {
		value, _ := lookup(group, strings.Split(path, "."))
		if factor, ok := value.(int64); ok {
			n = int(min(maxPods, int64(n)*max(0, min(factor, maxPods))))
		}
	}
	return n
}

// visit returns the maps at a path.
func visit(in any, path []string) []map[string]any {
	level, ok := in.(map[string]any)
	if !ok {
		return nil
	}
	if len(path) == 0 {
		return []map[string]any{level}
	}
	var all []map[string]any
	name, items := strings.CutSuffix(path[0], "[*]")
	switch list, _ := level[name].([]any); {
	case items:
		for _, item := range list {
			all = append(all, visit(item, path[1:])...)
		}
	case name == "*":
		for _, key := range slices.Sorted(maps.Keys(level)) {
			all = append(all, visit(level[key], path[1:])...)
		}
	default:
		return visit(level[name], path[1:])
	}
	return all
}

// Set writes a value at a path of an object, and makes the maps on the way. It changes nothing
// if the path leads through another value, or, unless over is set, if there is a value already.
func Set(object map[string]any, path string, value any, over bool) {
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		next, ok := object[part].(map[string]any)
		if !ok {
			if object[part] != nil {
				return
			}
			next = map[string]any{}
			object[part] = next
		}
		object = next
	}
	last := parts[len(parts)-1]
	if _, there := object[last]; over || !there {
		object[last] = value
	}
}
