// Package eks converts the parameters of the EKS deep-learning benchmark utility, with the
// configurations of its training jobs and of its cluster.
package eks

import (
	"fmt"
	"path"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// dataRoot is where jobs find their data.
const dataRoot = "/kubebench/data"

// A Benchmark is a descriptor, and a name for its file.
type Benchmark struct {
	Name  string
	Draft *draft.Draft
}

// Read returns the documents of a file: YAML, or parameters as they stand in params.libsonnet.
func Read(text []byte, notes *document.Notes) []document.Value {
	all := document.Read([]byte(yamlOf(string(text))), notes)
	for i, v := range all {
		if inner := v.Peek("components", "workflows"); inner.Kind() == document.Table {
			components := v.Get("components")
			all[i] = components.Get("workflows")
			if len(v.Get("global").Keys()) > 0 {
				v.Get("global").Remark("parameters of all components are left out: write them in components.workflows")
			}
			components.Rest("no benchmark: left out")
			v.Rest("is not known to convert: left out")
		}
	}
	return all
}

// Is reports whether a document is one of the utility's files.
func Is(v document.Value) bool { return isParameters(v) || isTraining(v) || isCluster(v) }

func isParameters(v document.Value) bool {
	for _, key := range []string{"experiments", "s3ResultPath", "clusterConfig", "storageBackend", "s3SecretName"} {
		if v.Peek(key).Has() {
			return true
		}
	}
	return false
}

func isTraining(v document.Value) bool {
	return v.Peek("image").Has() && (v.Peek("gpusPerReplica").Has() || v.Peek("replicas").Has())
}

func isCluster(v document.Value) bool { return v.Peek("kind").Raw() == "ClusterConfig" }

// A setup is what the documents of a file say.
type setup struct {
	parameters document.Value
	cluster    document.Value
	trainings  []document.Value
}

// Convert returns a descriptor for each experiment of the parameters, or for each training job
// if the file has no parameters.
func Convert(documents []document.Value) []Benchmark {
	if len(documents) == 0 {
		return nil
	}
	var s setup
	for _, v := range documents {
		switch {
		case isCluster(v):
			s.cluster = v
		case isTraining(v):
			s.trainings = append(s.trainings, v)
		case s.parameters.Has():
			v.Fault("write one file for each", "the file has parameters already")
		default:
			s.parameters = v
		}
	}
	benchmarks := s.benchmarks()
	for _, v := range documents {
		v.Unknown()
	}
	return benchmarks
}

func (s setup) benchmarks() []Benchmark {
	if !s.parameters.Has() {
		if len(s.trainings) == 0 {
			s.cluster.Fault("add the configuration of the training job", "a ClusterConfig alone is no benchmark")
		}
		var all []Benchmark
		for _, training := range s.trainings {
			all = append(all, s.one(document.Value{}, training))
		}
		return all
	}
	s.dropParameters()
	experiments := s.parameters.Get("experiments").Items()
	if len(experiments) == 0 {
		return []Benchmark{s.one(document.Value{}, s.training(0, 1))}
	}
	all := make([]Benchmark, 0, len(experiments))
	for i, e := range experiments {
		all = append(all, s.one(e, s.training(i, len(experiments))))
	}
	if n := len(experiments); len(s.trainings) > n {
		for _, more := range s.trainings[n:] {
			more.Remark("there is no experiment for this training job: left out")
			more.Forget()
		}
	}
	return all
}

// training returns the training job of an experiment: the only one of the file, or the one at
// the same place.
func (s setup) training(i, experiments int) document.Value {
	switch {
	case len(s.trainings) == 1 && experiments >= 1:
		return s.trainings[0]
	case i < len(s.trainings):
		return s.trainings[i]
	}
	return document.Value{}
}

// one writes the descriptor of an experiment with its training job.
func (s setup) one(experiment, training document.Value) Benchmark {
	d := &draft.Draft{}
	at := experiment.Get("experiment")
	if !experiment.Has() {
		if at = s.parameters.Peek("name"); !at.Has() {
			at = training.Get("name")
		}
	}
	name := at.Scalar()
	d.Comment("Converted from the EKS deep-learning benchmark utility: %s.", name)
	d.Table("").Set("spec_version", "1.0")
	d.Table("info").Set("description", "Distributed training on EKS")
	kube.Name(d, at, name, "training")
	s.machine(d)
	for _, table := range []string{"hardware.distributed", "env", "env.vars"} {
		d.Table(table) // in this order
	}
	if training.Has() {
		train(d, training)
	} else {
		s.unknownTraining(d, experiment)
	}
	s.data(d)
	s.dropExperiment(experiment)
	return Benchmark{Name: name, Draft: d}
}

// Placeholders of the training job, whose configuration lies in S3.
const (
	missingImage   = "example.org/replace-this-image:1"
	missingCommand = "replace-this-command"
)

// unknownTraining writes placeholders for a training job that is not in the file.
func (s setup) unknownTraining(d *draft.Draft, experiment document.Value) {
	at := experiment.Get("trainingJobConfig")
	if !at.Has() {
		at = s.parameters
	}
	at.Remark("baictl does not fetch the training job: image and command are placeholders, and so are the numbers of replicas and GPUs (add the file as a further document, after ---)")
	h := d.Table("hardware").Set("strategy", "mpi")
	if h.Lacks("instance_type") {
		h.Set("gpus", 1)
	}
	d.Table("hardware.distributed").Set("num_instances", 2)
	d.Table("env").Set("docker_image", missingImage)
	d.Table("ml").Set("benchmark_code", missingCommand)
}

// dropExperiment says what ksonnet read of an experiment.
func (s setup) dropExperiment(v document.Value) {
	if v.Has() {
		if s.parameters.Has() && len(s.trainings) > 0 {
			v.Drop("the training job is the one of the file: left out", "trainingJobConfig")
		}
		v.Drop("ksonnet read it, which is not used: left out", "trainingJobPkg", "trainingJobPrototype", "trainingJobRegistry")
	}
}

// machine writes the kind of machine of the first group of nodes.
func (s setup) machine(d *draft.Draft) {
	h := d.Table("hardware")
	if at := s.parameters.Get("instanceType"); at.Has() {
		h.Set("instance_type", at.String())
	}
	if !s.cluster.Has() {
		return
	}
	c := s.cluster
	c.Get("kind")
	c.Get("apiVersion")
	groups := c.Get("nodeGroups").Items()
	if len(groups) > 0 {
		group := groups[0]
		h.SetText("instance_type", group.Get("instanceType").String())
		if group.Get("instanceType").Has() {
			s.parameters.Drop("the ClusterConfig of the file has the kind of machine: left out", "instanceType")
		}
		if zones := group.Get("availabilityZones"); zones.Has() && len(zones.Strings()) == 1 {
			h.SetText("availability_zone", zones.Strings()[0])
		}
		group.Rest("the platform runs on a cluster that is there: left out")
	}
	for _, group := range groups[min(1, len(groups)):] {
		group.Remark("a run has one kind of machine: left out")
		group.Forget()
	}
	c.Rest("the platform runs on a cluster that is there: left out")
}

// data writes the data set, which the utility has on a file system of all pods.
func (s setup) data(d *draft.Draft) {
	source, backend := s.parameters.Get("s3DatasetPath"), s.parameters.Get("storageBackend")
	if !source.Has() {
		return
	}
	target := dataRoot
	switch backend.Scalar() {
	case "efs":
		if folder := folderOf(source.String()); folder != "" {
			target += "/" + folder
		}
	case "fsx":
	default:
		source.Remark("without storageBackend efs or fsx the utility has no data set: left out")
		return
	}
	d.Item("data.sources").Set("src", source.String()).Set("path", target)
	backend.Remark(`%s is not made: each pod has a copy of the data (write mount = "shared" in data.sources for one volume of all pods)`,
		backend.Scalar())
}

// folderOf returns the folder to which the utility copies a source: the last part of its path,
// and none for a bucket or a file.
func folderOf(source string) string {
	_, rest, _ := strings.Cut(source, "://")
	_, key, _ := strings.Cut(strings.Trim(rest, "/"), "/")
	if key == "" || path.Ext(key) != "" {
		return ""
	}
	return path.Base(key)
}

// dropParameters says what has no counterpart.
func (s setup) dropParameters() {
	p := s.parameters
	p.Get("name")
	p.Drop("results are in the platform: baictl export RUN s3://BUCKET/PREFIX writes them there", "s3ResultPath", "bucket")
	if !s.cluster.Has() {
		p.Drop("the platform runs on a cluster that is there: left out (add the ClusterConfig as a further document for its kind of machine)", "clusterConfig")
	} else {
		p.Drop("the ClusterConfig is the one of the file: left out", "clusterConfig")
	}
	p.Drop("the platform runs on a cluster that is there: left out", "clusterVersion", "ami", "region", "az")
	p.Drop("nothing is cloned from GitHub: left out", "githubSecretName", "githubSecretTokenKeyName", "kubeflowRegistry")
	p.Drop("no workflow runs beside the benchmark: left out", "image", "nfsVolume", "nfsVolumeClaim", "trainingDatasetVolume")
	p.Drop("baictl submit --namespace names the namespace of a run: left out", "namespace")
	p.Drop("the platform reads S3 with its own rights: left out", "s3SecretName", "s3SecretAccesskeyidKeyName",
		"s3SecretSecretaccesskeyKeyName", "s3SecretAccesskeyidKey")
	p.Drop(`the utility does not use it: left out (hardware.together = "zone" keeps pods close)`, "placementGroup")
}

// maxPods is how many pods a run can have.
const maxPods = 999

// train writes a training job: an MPIJob, whose command and arguments are lists with commas.
func train(d *draft.Draft, v document.Value) {
	v.Get("name")
	replicas, gpus := int64(1), int64(0)
	if at := v.Get("replicas"); at.Has() {
		replicas = at.Int(1, maxPods)
	}
	if at := v.Get("gpusPerReplica"); at.Has() {
		gpus = at.Int(0, maxPods)
	}
	words := append(list(v.Get("command")), list(v.Get("args"))...)
	h, slots := d.Table("hardware").Set("gpus", gpus), max(gpus, 1)
	d.Table("env").Set("docker_image", v.Get("image").String())
	switch {
	case replicas > 1:
		h.Set("strategy", "mpi")
		d.Table("hardware.distributed").Set("num_instances", replicas).Set("processes_per_instance", slots)
	case len(words) > 0 && words[0] == "mpirun":
		words = append([]string{"mpirun", "-np", fmt.Sprint(slots)}, words[1:]...)
		d.Table("env.vars").Set("OMPI_ALLOW_RUN_AS_ROOT", "1").Set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	}
	if len(words) == 0 {
		v.Remark("has no command: write it in place of %q", missingCommand)
		words = []string{missingCommand}
	}
	d.Table("ml").Set("benchmark_code", draft.Words(words))
	if strings.Contains(strings.Join(words, " "), "tf_cnn_benchmarks") {
		d.Item("output.parsers").Set("kind", "tf-cnn")
	}
}

// list returns the words of a text with commas between them, or of a list.
func list(v document.Value) []string {
	switch {
	case !v.Has():
		return nil
	case v.Kind() == document.List:
		return v.Strings()
	}
	text := v.Scalar()
	if text == "" {
		return nil
	}
	for _, open := range []string{"[", "("} {
		if _, inside, ok := strings.Cut(text, open); ok &&
			strings.Contains(strings.SplitN(inside, map[string]string{"[": "]", "(": ")"}[open], 2)[0], ",") {
			v.Remark("the commas between brackets separate arguments, too, as in the utility")
		}
	}
	return strings.Split(text, ",")
}
