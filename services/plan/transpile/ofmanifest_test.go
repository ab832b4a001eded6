package transpile_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/inject"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// withManifest is a descriptor of strategy manifest with further tables.
func withManifest(objects string, more ...string) string {
	return "spec_version = '1.0'\n[info]\ndescription = 'x'\n[hardware]\ncpus = 1\nstrategy = 'manifest'\n[env]\ndocker_image = 'default:1'\n" +
		"vars = { FROM = 'env' }\n[data]\nsources = [{ src = 's3://b/set', path = '/data' }]\n" + strings.Join(more, "\n") +
		"\n[manifest]\ncopies = 1\nobjects = '''\n" + objects + "'''\n"
}

// pods are the end of an object, indented by a number of blanks.
func podsOf(name string, indent int) string {
	lines := "template:\n  metadata: {labels: {app: mine}}\n  spec:\n    restartPolicy: OnFailure\n    containers:\n    - name: " + name +
		"\n      image: own:1\n      command: [sh, -c, 'echo $$HOME $(BAI_OBJECTS)']\n      env: [{name: FROM, value: manifest}]\n" +
		"      volumeMounts: [{name: data, mountPath: /mine}]\n    - {name: aside, image: aside:1}\n" +
		"    volumes: [{name: data, configMap: {name: programs}}]\n"
	return strings.ReplaceAll(strings.Repeat(" ", indent)+strings.TrimSuffix(strings.ReplaceAll(lines, "\n", "\n"+strings.Repeat(" ", indent)), strings.Repeat(" ", indent)), "\n\n", "\n")
}

const programs = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: programs}\ndata: {a: b}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: hosts}\nspec: {clusterIP: None, selector: {app: mine}}\n"

// replicaSpecs is an object of Kubeflow.
func replicaSpecs(apiVersion, kind, specs, container, first string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: train}\nspec:\n  " + specs + ":\n    " + first + ":\n" + podsOf(container, 6) +
		"    Worker:\n      replicas: 2\n      restartPolicy: OnFailure\n" + podsOf(container, 6) + programs
}

// manifests are a manifest of each known kind.
func manifests() map[string]string {
	return map[string]string{
		"job": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train, labels: {app: mine}}\nspec:\n  parallelism: 2\n  completions: 2\n  completionMode: Indexed\n" + podsOf("main", 2) + programs,
		"jobset": "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: train}\nspec:\n  replicatedJobs:\n  - name: workers\n    replicas: 2\n    template:\n      spec:\n" +
			"        parallelism: 2\n" + podsOf("main", 8) + programs,
		"mpijob":     replicaSpecs("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs", "main", "Launcher"),
		"mpijob-v1":  replicaSpecs("kubeflow.org/v1", "MPIJob", "mpiReplicaSpecs", "mpi", "Launcher"),
		"tfjob":      replicaSpecs("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", "tensorflow", "PS"),
		"pytorchjob": replicaSpecs("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs", "pytorch", "Master"),
		"mxjob":      replicaSpecs("kubeflow.org/v1", "MXJob", "mxReplicaSpecs", "mxnet", "Scheduler"),
		"xgboostjob": replicaSpecs("kubeflow.org/v1", "XGBoostJob", "xgbReplicaSpecs", "xgboost", "Master"),
		"trainjob":   "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: train}\nspec:\n  runtimeRef: {name: torch-distributed}\n  trainer: {image: 'own:1', numNodes: 2}\n",
		"workflow": "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: flow-}\nspec:\n  entrypoint: main\n  podMetadata: {labels: {app: mine}}\n" +
			"  templates:\n  - name: main\n    container: {image: 'own:1', command: [sh], volumeMounts: [{name: c, mountPath: /c}]}\n  volumes: [{name: c, configMap: {name: programs}}]\n" + programs,
	}
}

// withoutData is a descriptor of withManifest without variables and data sets.
func withoutData(text string) string {
	return strings.Replace(text, "vars = { FROM = 'env' }\n[data]\nsources = [{ src = 's3://b/set', path = '/data' }]\n", "", 1)
}

// listed are settings that take all known kinds, and one that nobody knows.
func listed() transpile.Settings {
	s := transpile.Settings{Scope: "benchmarks", Owner: true, Gateway: "http://gateway", Manifests: map[string]inject.Kind{"Widget.v1.example.com": {Unknown: true}}}
	for _, kind := range []string{
		"JobSet.v1alpha2.jobset.x-k8s.io", "MPIJob.v2beta1.kubeflow.org", "MPIJob.v1.kubeflow.org", "TFJob.v1.kubeflow.org", "PyTorchJob.v1.kubeflow.org", "MXJob.v1.kubeflow.org",
		"XGBoostJob.v1.kubeflow.org", "TrainJob.v1alpha1.trainer.kubeflow.org", "Workflow.v1alpha1.argoproj.io",
	} {
		s.Manifests[kind] = inject.Kind{}
	}
	return s
}

func manifestInput(t *testing.T, text string) transpile.Input {
	t.Helper()
	run := event.Fetched{Header: event.Header{Run: runID, Attempt: 1, Owner: "ann", Namespace: "pets"}, Descriptor: text}
	if strings.Contains(text, "s3://b/set") {
		run.Data = []event.Data{{Source: "s3://b/set", Path: "/data"}}
	}
	return transpile.Input{Run: run, Descriptor: parseDescriptor(t, text)}
}

func TestObjectsOfEachKindAreAsTheyWere(t *testing.T) {
	if err := listed().Validate("executor.pods"); err != nil {
		t.Fatal(err)
	}
	for name, text := range manifests() {
		t.Run(name, func(t *testing.T) {
			whole := withManifest(text, "[limits]\ndeadline = '10m'")
			if name == "trainjob" {
				whole = strings.Replace(whole, "[limits]\ndeadline = '10m'", "", 1)
			}
			if name == "trainjob" || name == "workflow" {
				whole = withoutData(whole)
			}
			golden.Check(t, "testdata/manifests/"+name+".yaml", rendered(t, objects(t, manifestInput(t, whole), listed()).Objects))
		})
	}
}

// rendered are objects as YAML documents, but for the ConfigMap and the Secret that every run has.
func rendered(t *testing.T, all []cluster.Object) []byte {
	t.Helper()
	var documents [][]byte
	for _, o := range all[2:] {
		document, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	return bytes.Join(documents, []byte("---\n"))
}

func TestEveryCopyHasNamesOfItsOwnAndItsEndIsAwaited(t *testing.T) {
	text := strings.Replace(withManifest(manifests()["job"]), "copies = 1", "copies = 3", 1)
	w := objects(t, manifestInput(t, text), listed())
	got := map[string]string{}
	for _, o := range w.Objects {
		if j, ok := o.(*batchv1.Job); ok {
			got[j.Name] = j.Labels[cluster.LabelEnd] + " " + j.Spec.Template.Labels[cluster.LabelCopy] + " " + j.Spec.Template.Spec.Volumes[0].ConfigMap.Name
			if j.Spec.Template.Labels[cluster.LabelEnd] != "" || j.Annotations[cluster.AnnotationSucceeded] != "condition=Complete" {
				t.Errorf("%s: %v", j.Name, j.Spec.Template.Labels)
			}
		}
		if s, ok := o.(*corev1.Service); ok && (s.Spec.Selector[cluster.LabelRun] != runID || s.Spec.Selector[cluster.LabelCopy] == "" || s.Spec.Selector["app"] != "mine") {
			t.Errorf("the Service selects %v", s.Spec.Selector)
		}
	}
	base := "bai-" + runID + "-1"
	want := map[string]string{base: " 0 " + base + "-programs", base + "-1": "awaited 1 " + base + "-1-programs", base + "-2": "awaited 2 " + base + "-2-programs"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if w.Pods != 6 || w.Job != base {
		t.Errorf("%d pods, %s", w.Pods, w.Job)
	}
}

func TestTheMeasuredContainerIsCompletedAndRunsUnderTheEntrypoint(t *testing.T) {
	w := objects(t, manifestInput(t, withManifest(manifests()["job"])), listed())
	job, ok := w.Objects[len(w.Objects)-1].(*batchv1.Job)
	if !ok {
		t.Fatal("the Job is not the last object")
	}
	c := job.Spec.Template.Spec.Containers[0]
	if diff := cmp.Diff([]string{"/bai/bin/bai-pod", "exec", "--", "sh", "-c", "echo $$HOME $(BAI_OBJECTS)"}, c.Command); diff != "" {
		t.Error(diff)
	}
	vars := map[string]string{}
	for _, v := range c.Env {
		vars[v.Name] = v.Value
	}
	if c.Image != "own:1" || vars["FROM"] != "manifest" || vars[pod.EnvObjects] != w.Job || vars[pod.EnvRun] != runID || c.Resources.Requests.Cpu().String() != "1" {
		t.Errorf("%s %v %v", c.Image, vars, c.Resources)
	}
	bare := strings.Replace(manifests()["job"], "command: [sh, -c, 'echo $$HOME $(BAI_OBJECTS)']", "tty: false", 1)
	bare = strings.Replace(bare, "image: own:1", "stdin: false", 1)
	w = objects(t, manifestInput(t, withManifest(bare, "[ml]\nbenchmark_code = 'run it'")), listed())
	job, _ = w.Objects[len(w.Objects)-1].(*batchv1.Job)
	if c := job.Spec.Template.Spec.Containers[0]; c.Image != "default:1" || strings.Join(c.Command[3:], " ") != "run it" {
		t.Errorf("%s %v", c.Image, c.Command)
	}
}

// many are n ConfigMaps behind other objects.
func many(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}}\n", i)
	}
	return all.String()
}

func TestManifestsThatThePlatformDoesNotRunAreRefused(t *testing.T) {
	local, queued := listed(), listed()
	local.OneMachine, queued.Queue = true, "nightly"
	widget := "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one}\n"
	ready := func(text string) string {
		return strings.Replace(text, "copies = 1", "succeeded = 'condition=Ready'", 1)
	}
	for name, row := range map[string]struct {
		text     string
		settings transpile.Settings
		want     string
	}{
		"a kind that is not listed":     {withManifest(manifests()["tfjob"]), transpile.Settings{}, "takes no TFJob.v1.kubeflow.org"},
		"any on one machine":            {withManifest(manifests()["job"]), local, "local cluster"},
		"a deadline of an unknown kind": {ready(withoutData(withManifest(widget, "[limits]\ndeadline = '1m'"))), listed(), "limits.deadline ends no Widget"},
		"data for nobody's pods":        {withManifest(manifests()["workflow"]), listed(), "data.sources goes into the pods"},
		"a queue that cannot hold it":   {withoutData(withManifest(manifests()["workflow"])), queued, "no Workflow waits there"},
		"a misspelled key":              {withManifest(strings.Replace(manifests()["job"], "containers:", "container:", 1)), listed(), `unknown field "spec.container"`},
		"a misspelled key of a Job":     {withManifest(strings.Replace(manifests()["job"], "completions:", "completion:", 1)), listed(), `unknown field "spec.completion"`},
		"the name of a step":            {withManifest(strings.Replace(manifests()["job"], "name: aside", "name: step-a", 1)), listed(), `container "step-a"`},
		"too many pods":                 {withManifest(strings.Replace(manifests()["job"], "parallelism: 2", "parallelism: 2000", 1)), listed(), "2000 pods"},
		"too many objects":              {strings.Replace(withManifest(strings.Replace(manifests()["job"], "parallelism: 2", "parallelism: 1", 1)+many(12)), "copies = 1", "copies = 100", 1), listed(), "1500 objects"},
		"parsers of no command": {
			withManifest(strings.Replace(manifests()["job"], "command:", "args:", 1), "[output]\nparsers = [{ kind = 'iperf3' }]"), listed(), "write its command",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := manifestInput(t, row.text)
			_, err := transpile.Objects(in, row.settings)
			if refused, ok := errors.AsType[*refusal.Error](err); !ok || !strings.Contains(refused.Message, row.want) {
				t.Errorf("%v", err)
			}
		})
	}
	w := objects(t, manifestInput(t, ready(withoutData(withManifest(widget)))), listed())
	if o := w.Objects[len(w.Objects)-1]; o.GetName() != w.Job || o.GetAnnotations()[cluster.AnnotationSucceeded] != "condition=Ready" {
		t.Errorf("%s %v", o.GetName(), o.GetAnnotations())
	}
}

func TestSettingsOfManifestsAreValidated(t *testing.T) {
	for name, row := range map[string]struct {
		kind string
		with inject.Kind
		want string
	}{
		"a known one":                     {"TFJob.v1.kubeflow.org", inject.Kind{}, ""},
		"an unknown one that says so":     {"Widget.v1.example.com", inject.Kind{Unknown: true}, ""},
		"an unknown one that does not":    {"TfJob.v1.kubeflow.org", inject.Kind{}, "unknown = true"},
		"a known one that is said not to": {"TFJob.v1.kubeflow.org", inject.Kind{Unknown: true}, "leave unknown out"},
		"no version":                      {"TFJob", inject.Kind{}, "write kind, version and group"},
		"Secrets":                         {"Secret.v1", inject.Kind{Unknown: true}, "values of a Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			err := transpile.Settings{Manifests: map[string]inject.Kind{row.kind: row.with}, Grace: time.Minute}.Validate("executor.pods")
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Error(err)
			}
		})
	}
}

func TestPodsWithoutLabelsAreSelectedByTheNameOfTheirObject(t *testing.T) {
	const widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one}\n---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: two}\n"
	base := "bai-" + runID + "-1"
	for name, row := range map[string]struct {
		objects, keys string
		want          []string
	}{
		"of an unknown kind, as the descriptor says": {
			widget, "copies = 2\nsucceeded = 'condition=Ready'\npods = 'of in ($(BAI_OBJECTS), $(BAI_OBJECTS)-two), app'",
			[]string{
				"of in (" + base + "," + base + "-two),app", "of in (" + base + "," + base + "-two),app",
				"of in (" + base + "-1," + base + "-1-two),app", "of in (" + base + "-1," + base + "-1-two),app",
			},
		},
		"of an unknown kind, by nothing": {widget, "copies = 1\nsucceeded = 'condition=Ready'", []string{"", ""}},
		"of a TrainJob, by its name":     {manifests()["trainjob"], "copies = 1", []string{"jobset.sigs.k8s.io/jobset-name=" + base}},
		"of a TrainJob, and by the descriptor": {
			manifests()["trainjob"], "copies = 1\npods = { of = '$(BAI_OBJECTS)' }", []string{"jobset.sigs.k8s.io/jobset-name=" + base + ",of=" + base},
		},
		"of a Workflow, which have the labels of the run": {manifests()["workflow"], "copies = 1", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(withoutData(withManifest(row.objects)), "copies = 1", row.keys, 1)
			var got []string
			for _, o := range objects(t, manifestInput(t, text), listed()).Objects {
				if all := o.GetAnnotations(); all[cluster.AnnotationSucceeded] != "" {
					got = append(got, all[cluster.AnnotationPodSelector])
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestASelectorOfOtherRunsIsRefusedAgain(t *testing.T) {
	in := manifestInput(t, withoutData(withManifest(manifests()["trainjob"])))
	in.Descriptor.Manifest.Pods = "app=x"
	_, err := transpile.Objects(in, listed())
	if refused, ok := errors.AsType[*refusal.Error](err); !ok || !strings.Contains(refused.Message, "selects pods of other runs") {
		t.Errorf("%v", err)
	}
}
