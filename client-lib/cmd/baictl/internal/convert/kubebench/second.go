package kubebench

import (
	"slices"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// Where the second version mounts its managed volumes.
const workflowRoot = "/kubebench/workflow/experiments"

// A task is one of the graph of version v1alpha2.
type task struct {
	at    document.Value
	name  string
	needs []string
}

// readSecond reads the spec of version v1alpha2: a graph of tasks. The first task that makes a
// resource is the benchmark, or the last one if all are containers. Tasks that depend on it run after it.
func (j *job) readSecond(spec document.Value) {
	j.vars = append(experiment(experimentRoot),
		draft.Pair{Key: "KUBEBENCH_WF_EXP_ROOT", Value: workflowRoot},
		draft.Pair{Key: "KUBEBENCH_WF_EXP_PATH", Value: workflowRoot + "/$(BENCHMARK_AI_RUN)"})
	j.folders = folders()
	j.volumes(spec.Get("volumes"))
	j.managed(spec.Get("managedVolumes"))
	tasks := readTasks(spec.Get("tasks"))
	main := mainTask(tasks)
	if main < 0 {
		spec.Get("tasks").Fault("add a task", "is empty")
		return
	}
	j.main = j.taskWorkload(tasks[main].at)
	after := dependents(tasks, tasks[main].name)
	for i, t := range tasks {
		if i != main {
			j.taskStep(t, slices.Contains(after, t.name), tasks[main].name)
		}
	}
	spec.Drop("pods of a run use no service account: left out", "serviceAccountName", "serviceAccount")
	spec.Drop("arguments of Argo have no counterpart: write the values, or [sweep.product]", "arguments")
	spec.Drop("no agent makes the objects of a run: left out", "workflowAgent")
}

func readTasks(v document.Value) []task {
	var tasks []task
	for _, at := range v.Items() {
		t := task{at: at, name: at.Get("name").String(), needs: at.Get("dependencies").Strings()}
		if t.name == "" {
			at.Fault("add it", "has no name")
		}
		at.Drop("inputs and outputs of Argo have no counterpart: steps write to $BAI_STEP_OUTPUT", "inputs", "outputs")
		tasks = append(tasks, t)
	}
	for _, t := range tasks {
		for _, name := range t.needs {
			if !slices.ContainsFunc(tasks, func(other task) bool { return other.name == name }) {
				t.at.Get("dependencies").Remark("there is no task %q: left out", name)
			}
		}
	}
	return tasks
}

// mainTask returns the number of the task that is the benchmark; -1 without tasks.
func mainTask(tasks []task) int {
	if i := slices.IndexFunc(tasks, func(t task) bool { return t.at.Peek("resource").Has() }); i >= 0 {
		return i
	}
	return len(tasks) - 1
}

// dependents returns the names of the tasks that need another one, or one that needs it.
func dependents(tasks []task, name string) []string {
	found := []string{name}
	for i := 0; i < len(found); i++ {
		for _, t := range tasks {
			if slices.Contains(t.needs, found[i]) && !slices.Contains(found, t.name) {
				found = append(found, t.name)
			}
		}
	}
	return found[1:]
}

// taskWorkload reads the task that is the benchmark.
func (j *job) taskWorkload(v document.Value) workload {
	if container := v.Get("container"); container.Has() {
		j.deadline = options(container.Get("options"))
		return workload{container: kube.ReadContainer(container), pods: 1}
	}
	resource := v.Get("resource")
	w := placeholder(v)
	switch {
	case resource.Peek("manifest").Has():
		w = j.manifest(resource.Get("manifest"))
	case resource.Peek("manifestFrom").Has():
		resource.Get("manifestFrom").Remark("%q is not read: image and command are placeholders",
			resource.Get("manifestFrom", "path").Scalar())
	default:
		v.Fault("add container, or resource.manifest", "has nothing to run")
	}
	for _, m := range resource.Get("volumeMounts").Items() {
		w.container.Mounts = append(w.container.Mounts,
			kube.Mount{At: m, Volume: m.Get("name").String(), Path: m.Get("mountPath").String(), ReadOnly: m.Get("readOnly").Bool()})
	}
	j.deadline = options(resource.Get("options"))
	return w
}

// options reads the options of a task, and returns its time limit; "" if it has none.
func options(v document.Value) (deadline string) {
	if !v.Has() {
		return ""
	}
	v.Get("mountManagedVolumes")
	if n := v.Get("numCopies"); n.Has() && n.Int(1, maxPods) > 1 {
		n.Remark("a run has one copy: write [sweep] with repetitions and max_parallel for several")
	}
	v.Drop("the platform deletes the objects of a run at its end: limits.keep keeps them", "autoDelete")
	if timeout := v.Get("autoWatch", "timeout"); timeout.Has() {
		return timeout.Scalar()
	}
	return ""
}

// taskStep adds a task that is not the benchmark.
func (j *job) taskStep(t task, after bool, main string) {
	container := t.at.Get("container")
	if !container.Has() {
		t.at.Get("resource").Remark("a run has one main job: this further one is left out")
		t.at.Get("resource").Forget()
		return
	}
	var needs []string
	for _, name := range t.needs {
		if name != main {
			needs = append(needs, draft.ShortName(name))
		}
	}
	deadline := options(container.Get("options"))
	j.addStep(step{name: t.name, container: kube.ReadContainer(container), after: after, needs: needs, deadline: deadline})
}

// managed mounts the volumes of experiments and of the workflow.
func (j *job) managed(v document.Value) {
	for _, one := range []struct{ key, path string }{{"experimentVolume", experimentRoot}, {"workflowVolume", workflowRoot}} {
		at := v.Get(one.key)
		if at.Has() {
			j.volumeAt(at, one.path)
		} else if one.path == experimentRoot {
			j.mount(at, one.path, scratch(), false)
		}
	}
}
