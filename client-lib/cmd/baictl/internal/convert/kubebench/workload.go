package kubebench

import (
	"slices"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// These stand for what only the user knows.
const (
	missingImage   = "example.org/replace-this-image:1"
	missingCommand = "replace-this-command"
)

// A workload is the main job.
type workload struct {
	container kube.Container
	pods      int64 // of MPI; others have one
	slots     int64 // processes of MPI in each pod
}

// placeholder is the main job that is not known.
func placeholder(v document.Value) workload {
	return workload{container: kube.Container{At: v, Image: missingImage, Command: []string{missingCommand}}, pods: 1}
}

// maxPods is how many pods a run can have.
const maxPods = 999

// manifest reads the main job from a manifest: a table, or a text that is one.
func (j *job) manifest(v document.Value) workload {
	objects := []document.Value{v}
	if v.Kind() == document.Text {
		objects = v.Documents()
		j.nested = append(j.nested, objects...)
	}
	if len(objects) == 0 {
		v.Fault("add it", "has no object")
		return placeholder(v)
	}
	for _, other := range objects[1:] {
		other.Remark("a run has one job: this further object is left out")
		other.Forget()
	}
	return j.object(objects[0])
}

// object reads the main job from an object of a kind that has pods.
func (j *job) object(v document.Value) workload {
	kind, spec := v.Get("kind").String(), v.Get("spec")
	v.Get("apiVersion")
	v.Drop("the platform names the objects of a run: left out", "metadata")
	switch kind {
	case "Job":
		spec.Drop("a run has its own rules of retries and clean-up: left out", "backoffLimit", "completions", "parallelism",
			"ttlSecondsAfterFinished", "activeDeadlineSeconds", "completionMode", "suspend")
		return workload{container: j.template(spec.Get("template")), pods: 1}
	case "MPIJob":
		return j.mpi(spec)
	case "TFJob":
		return j.replicas(kind, spec.Get("tfReplicaSpecs"), "Chief", "Master", "Worker", "PS", "Evaluator")
	case "PyTorchJob":
		return j.replicas(kind, spec.Get("pytorchReplicaSpecs"), "Master", "Worker")
	}
	v.Remark("kind %s cannot be a run: image and command are placeholders", kind)
	for _, key := range spec.Keys() {
		spec.Get(key)
	}
	return placeholder(v)
}

// mpi reads an MPIJob of v1alpha1, with one template, or of a later version, with two.
func (j *job) mpi(spec document.Value) workload {
	w := workload{pods: 1, slots: 1}
	read := func(v document.Value) int64 {
		if !v.Has() {
			return 1
		}
		return v.Int(1, maxPods)
	}
	if roles := spec.Get("mpiReplicaSpecs"); roles.Has() {
		launcher, worker := roles.Get("Launcher", "template"), roles.Get("Worker")
		w.container = j.template(launcher)
		w.pods = read(worker.Get("replicas"))
		w.container.Resources = j.worker(worker.Get("template"), launcher)
		w.slots = read(spec.Get("slotsPerWorker"))
		worker.Drop("a run has its own rules of retries: left out", "restartPolicy")
		roles.Get("Launcher").Drop("one pod launches: left out", "replicas", "restartPolicy")
	} else {
		w.pods = read(spec.Get("replicas"))
		w.slots = read(spec.Get("slotsPerWorker"))
		w.container = j.template(spec.Get("template"))
	}
	spec.Drop("a run has its own rules of clean-up: left out", "cleanPodPolicy", "runPolicy", "backoffLimit", "launcherOnMaster")
	return w
}

// worker reads the template of the workers of an MPIJob, and returns their resources, which those of the launcher give way to. All pods of
// a run have the rest of the launcher's template.
func (j *job) worker(v, launcher document.Value) []kube.Setting {
	const left = "all pods of a run have the container of the launcher: left out"
	v.Drop("pods of a run have the labels of the run: left out", "metadata")
	spec := v.Get("spec")
	spec.Drop("a run has its own rules of retries: left out", "restartPolicy")
	spec.Drop("pods of a run use no service account: left out", "serviceAccount", "serviceAccountName")
	spec.Drop(left, "initContainers")
	spec.DropChanged(launcher.Peek("spec"), "all pods of a run have the volumes of the launcher: left out", "volumes")
	j.selector(spec.Get("nodeSelector"))
	containers := spec.Get("containers")
	c, of := first(containers), first(launcher.Get("spec", "containers"))
	for _, other := range containers.Items()[min(1, len(containers.Items())):] {
		other.Remark("a pod of a run has one container of the user's: left out")
	}
	c.Get("name")
	c.DropChanged(of, left, "image", "command", "args", "env", "volumeMounts", "imagePullPolicy")
	c.Get("securityContext").DropChanged(of.Peek("securityContext"), left, "privileged")
	c.Drop(left, "workingDir", "ports")
	of.DropChanged(c, "all pods of a run have the resources of the workers: left out", "resources")
	if at := c.Get("resources"); at.Has() {
		return kube.Resources(at)
	}
	return nil
}

// replicas reads the one pod of a kind with several roles. Those that a run cannot have are remarks.
func (j *job) replicas(kind string, v document.Value, roles ...string) workload {
	w, found := placeholder(v), false
	for _, role := range roles {
		at := v.Get(role)
		if !at.Has() {
			continue
		}
		if found {
			at.Remark("roles of kind %s have no counterpart: left out, so that one pod is measured", kind)
			continue
		}
		found = true
		if n := at.Get("replicas"); n.Has() && n.Int(1, maxPods) > 1 {
			n.Remark("%s replicas of kind %s have no counterpart: one pod is measured", n.Raw(), kind)
		}
		at.Drop("a run has its own rules of retries: left out", "restartPolicy")
		w = workload{container: j.template(at.Get("template")), pods: 1}
	}
	if !found {
		v.Fault("add one of them", "has none of the roles of kind %s", kind)
	}
	return w
}

// template reads a template of a pod.
func (j *job) template(v document.Value) kube.Container {
	v.Drop("pods of a run have the labels of the run: left out", "metadata")
	spec := v.Get("spec")
	j.volumes(spec.Get("volumes"))
	for _, init := range spec.Get("initContainers").Items() {
		init.Remark("is left out: make it a step")
	}
	containers := spec.Get("containers")
	if all := containers.Items(); len(all) > 1 {
		for _, other := range all[1:] {
			other.Remark("a pod of a run has one container of the user's: left out")
		}
	}
	spec.Drop("a run has its own rules of retries: left out", "restartPolicy")
	spec.Drop("pods of a run use no service account: left out", "serviceAccount", "serviceAccountName")
	j.selector(spec.Get("nodeSelector"))
	return kube.ReadContainer(first(containers))
}

// selector keeps the labels of nodes.
func (j *job) selector(v document.Value) {
	if v.Has() {
		v.Remark("is left out: write it as hardware.node_selector")
		for _, key := range v.Keys() {
			v.Get(key)
		}
	}
}

// first returns the first element of a list, which has to be there.
func first(v document.Value) document.Value {
	if items := v.Items(); len(items) > 0 {
		return items[0]
	}
	v.Fault("add a container", "has no container")
	return v.Get("container")
}

// folder returns the variables of the folders of an experiment below a root.
func experiment(root string) draft.Inline {
	path := root + "/$(BENCHMARK_AI_RUN)"
	return draft.Inline{
		{Key: "KUBEBENCH_EXP_ID", Value: "$(BENCHMARK_AI_RUN)"},
		{Key: "KUBEBENCH_EXP_ROOT", Value: root},
		{Key: "KUBEBENCH_EXP_PATH", Value: path},
		{Key: "KUBEBENCH_EXP_CONFIG_PATH", Value: path + "/config"},
		{Key: "KUBEBENCH_EXP_OUTPUT_PATH", Value: path + "/output"},
		{Key: "KUBEBENCH_EXP_RESULT_PATH", Value: path + "/result"},
	}
}

// folders are the variables of those folders that Kubebench makes.
func folders() []string {
	return slices.Clone([]string{"KUBEBENCH_EXP_CONFIG_PATH", "KUBEBENCH_EXP_OUTPUT_PATH", "KUBEBENCH_EXP_RESULT_PATH"})
}
