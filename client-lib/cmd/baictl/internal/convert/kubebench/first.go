package kubebench

import (
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// Where the first version mounts its volumes.
const (
	configRoot     = "/kubebench/config"
	dataRoot       = "/kubebench/data"
	experimentRoot = "/kubebench/experiments"
	credentials    = "/secret/gcp-credentials/"
)

// readFirst reads the spec of version v1alpha1: jobSpecs with preJob, mainJob and postJob.
func (j *job) readFirst(spec document.Value) {
	j.vars = append(experiment(experimentRoot), draft.Pair{Key: "KUBEBENCH_CONFIG_ROOT", Value: configRoot},
		draft.Pair{Key: "KUBEBENCH_DATA_ROOT", Value: dataRoot})
	j.folders = folders()
	jobs := spec.Get("jobSpecs")
	j.main = j.mainJob(jobs)
	j.outerJob(jobs.Get("preJob"), "pre-job", false)
	j.outerJob(jobs.Get("postJob"), "post-job", true)
	volumes := spec.Get("volumeSpecs")
	j.volumeAt(volumes.Get("configVolume"), configRoot)
	j.volumeAt(volumes.Get("dataVolume"), dataRoot)
	if at := volumes.Get("experimentVolume"); at.Has() {
		j.volumeAt(at, experimentRoot)
	} else {
		j.mount(at, experimentRoot, scratch(), false)
	}
	j.secrets(spec.Get("secretSpecs"))
	for _, report := range spec.Get("reportSpecs").Peek("csv").Elements() {
		report.Remark("results are in the platform: baictl metrics RUN -o csv, or a destination, reports them")
	}
	if at := spec.Get("reportSpecs"); at.Has() {
		at.Get("csv")
	}
	spec.Drop("pods of a run use no service account: left out", "serviceAccount")
}

// scratch is a volume of the run's own.
func scratch() *draft.Pair {
	return &draft.Pair{Key: "ephemeral", Value: draft.Inline{{Key: "size", Value: "10GiB"}}}
}

func (j *job) volumeAt(v document.Value, path string) {
	if !v.Has() {
		return
	}
	v.Get("name")
	j.mount(v, path, kube.Volume(v), false)
}

// mainJob reads the main job: a container, a manifest, or a template of ksonnet that nobody can render any more.
func (j *job) mainJob(jobs document.Value) workload {
	v := jobs.Get("mainJob")
	resource := v.Get("resource")
	switch manifest := resource.Peek("manifest"); {
	case v.Peek("container").Has():
		return workload{container: kube.ReadContainer(v.Get("container")), pods: 1}
	case manifest.Has():
		return j.manifest(resource.Get("manifest"))
	case resource.Has():
		resource.Remark("a prototype of ksonnet, which is not rendered: image and command are placeholders")
		j.ksonnet(resource)
		return placeholder(resource)
	}
	jobs.Fault("add jobSpecs.mainJob", "has no main job")
	return placeholder(jobs)
}

// ksonnet says what the keys of a template were.
func (j *job) ksonnet(v document.Value) {
	from := v.Get("manifestTemplate", "valueFrom", "ksonnet")
	for _, key := range []string{"name", "prototype", "package", "registry"} {
		if one := from.Get(key); one.Has() {
			one.Remark("%q is left out: write the image and the command that it made", one.Scalar())
		}
	}
	if path := v.Get("manifestParameters", "valueFrom", "path"); path.Has() {
		path.Remark("the parameters in %q are left out: write them in the command, or in [sweep]", path.Scalar())
	}
	v.Drop("the end of the run is that of its pods: left out", "createSuccessCondition", "createFailureCondition",
		"runSuccessCondition", "runFailureCondition")
}

// outerJob reads the job before or after the main one.
func (j *job) outerJob(v document.Value, name string, after bool) {
	if !v.Has() {
		return
	}
	if container := v.Get("container"); container.Has() {
		if own := container.Peek("name").Raw(); own != "" {
			name = own
		}
		j.addStep(step{name: name, container: kube.ReadContainer(container), after: after})
	}
	v.Drop("a step is a container: left out", "resource")
}

// secrets reads the secrets of clouds and of GitHub.
func (j *job) secrets(v document.Value) {
	if !v.Has() {
		return
	}
	if at := v.Get("githubTokenSecret"); at.Has() {
		at.Remark("ksonnet read it, which is not used: left out")
		at.Get("secretName")
		at.Get("secretKey")
	}
	if at := v.Get("gcpCredentialsSecret"); at.Has() {
		name, key := at.Get("secretName").String(), at.Get("secretKey").String()
		j.secretFile = &draft.Pair{Key: credentials + key, Value: name + "/" + key}
		j.vars = append(j.vars, draft.Pair{Key: "GOOGLE_APPLICATION_CREDENTIALS", Value: credentials + key})
	}
}
