package transpile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

const (
	runID    = "01jz0000000000000000000000"
	examples = "../../../descriptors/examples"
	secret   = "the-token-of-the-run"
)

var settings = transpile.Settings{
	Scope:       "benchmarks",
	Image:       "example.org/bai-pod:1",
	Brokers:     []string{"kafka:9092"},
	ObjectStore: "http://gateway:8080/v1/runs/{run}",
	Zones:       map[string]string{"use1-az1": "us-east-1a"},
}

// TestObjectsOfExamples compares the objects of each example with a golden file.
func TestObjectsOfExamples(t *testing.T) {
	for name, file := range map[string]string{
		"minimal":     examples + "/minimal.toml",
		"hello-world": examples + "/hello-world.toml",
		"data":        examples + "/data.toml",
		"gpu":         examples + "/gpu.toml",
		"scheduled":   examples + "/scheduled.toml",
		"everything":  "testdata/everything.toml",
		"inference":   examples + "/inference.toml",
		"mpi":         examples + "/mpi.toml",
		"every-key":   examples + "/every-key.toml",
		"volumes":     "testdata/volumes.toml",

		"launcher-data": "testdata/launcher-data.toml",

		"roles": examples + "/roles.toml",
		"steps": examples + "/steps.toml",
	} {
		t.Run(name, func(t *testing.T) {
			p := objects(t, input(t, file), settings)
			text := manifest(t, p.Objects)
			checkStrict(t, text)
			golden.Check(t, filepath.Join("testdata", name+".yaml"), text)
		})
	}
}

// TestSecret compares the Secret of the puller and the collector with a golden file.
func TestSecret(t *testing.T) {
	in := input(t, "testdata/everything.toml")
	got := secrets(t, in, settings)
	for _, name := range []string{pod.CollectFile, pod.PullFile} {
		text, err := yaml.JSONToYAML(got.Data[name])
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", name+".golden"), text)
	}
}

func TestOnlyWhoBringsTheProgramsCanWriteThem(t *testing.T) {
	for _, file := range []string{examples + "/minimal.toml", examples + "/inference.toml", examples + "/mpi.toml", examples + "/every-key.toml", examples + "/steps.toml", "testdata/everything.toml"} {
		seen := 0
		for _, o := range objects(t, input(t, file), settings).Objects {
			if job, ok := o.(*batchv1.Job); ok {
				for _, c := range slices.Concat(job.Spec.Template.Spec.InitContainers, job.Spec.Template.Spec.Containers) {
					seen++
					wantPrograms(t, file, c)
				}
			}
		}
		if seen < 3 {
			t.Errorf("%s: %d containers", file, seen)
		}
	}
}

// wantPrograms checks that a container has the programs once, read-only unless it
// installs them.
func wantPrograms(t *testing.T, file string, c corev1.Container) {
	t.Helper()
	want := []corev1.VolumeMount{{Name: "programs", MountPath: "/bai/bin", ReadOnly: c.Name != cluster.ContainerInstall}}
	got := slices.DeleteFunc(slices.Clone(c.VolumeMounts), func(m corev1.VolumeMount) bool { return m.Name != "programs" && m.MountPath != "/bai/bin" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s (-want +got):\n%s", file, c.Name, diff)
	}
}

func TestObjectsAreTheSameEveryTime(t *testing.T) {
	first := manifest(t, objects(t, input(t, "testdata/everything.toml"), settings).Objects)
	for range 20 {
		if got := manifest(t, objects(t, input(t, "testdata/everything.toml"), settings).Objects); !bytes.Equal(first, got) {
			t.Fatalf("another time, other objects:\n%s", cmp.Diff(string(first), string(got)))
		}
	}
}

func TestNoSecretValueIsInThePlan(t *testing.T) {
	in := input(t, "testdata/everything.toml")
	for _, o := range objects(t, in, settings).Objects {
		if s, ok := o.(*corev1.Secret); ok && len(s.Data)+len(s.StringData) > 0 {
			t.Errorf("Secret %s holds values", s.Name)
		}
	}
	if !bytes.Contains(secrets(t, in, settings).Data[pod.CollectFile], []byte(secret)) {
		t.Error("the whole Secret does not hold the token")
	}
}

// TestSecretsTakeThePlaceOfThoseInThePlan: they have the same name, namespace and
// labels.
func TestSecretsTakeThePlaceOfThoseInThePlan(t *testing.T) {
	in := input(t, "testdata/everything.toml")
	whole := secrets(t, in, settings)
	whole.Data = nil
	for _, o := range objects(t, in, settings).Objects {
		if s, ok := o.(*corev1.Secret); ok {
			if diff := cmp.Diff(s, whole); diff != "" {
				t.Errorf("(-planned +made):\n%s", diff)
			}
		}
	}
}

func TestPlan(t *testing.T) {
	in := input(t, "testdata/everything.toml")
	type summary struct {
		Scope, Job string
		Pods       int
		Retries    int
		Pending    time.Duration
	}
	for name, tt := range map[string]struct {
		attempt int
		want    summary
	}{
		"the first attempt has all retries left": {1, summary{"benchmarks", "bai-" + runID + "-1", 1, 2, 2 * time.Minute}},
		"the last attempt has none":              {3, summary{"benchmarks", "bai-" + runID + "-3", 1, 0, 2 * time.Minute}},
		"nor has any beyond":                     {9, summary{"benchmarks", "bai-" + runID + "-9", 1, 0, 2 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			in.Run.Attempt = tt.attempt
			p := objects(t, in, settings)
			if diff := cmp.Diff(tt.want, summary{p.Scope, p.Job, p.Pods, p.Retries, p.PendingDeadline}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeRunHere(t *testing.T) {
	for name, tt := range map[string]struct {
		file, old, new string
		security       string
		want           refusal.Error
	}{
		"a volume that pods may not have": {
			file: "testdata/volumes.toml", security: transpile.Restricted,
			want: refusal.Error{Reason: event.InvalidDescriptor, Message: `volumes[4] is a folder of an NFS server, and this platform's pods keep to the level restricted of Pod Security, which has none: name a claim of that folder (volumes.claim)`},
		},
		"a pod with rights that it may not have": {
			file: "testdata/everything.toml", security: transpile.Restricted,
			want: refusal.Error{Reason: event.InvalidDescriptor, Message: `env.privileged is true, and this platform's pods keep to the level restricted of Pod Security`},
		},
		"a zone that nobody knows": {
			file: "testdata/everything.toml", old: "use1-az1", new: "use1-az9",
			want: refusal.Error{Reason: event.InvalidDescriptor, Message: `hardware.aws_zone_id is "use1-az9", a zone that this platform does not know: it knows use1-az1; hardware.availability_zone takes the name of any`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, tt.file)
			if tt.old != "" {
				in = replaceInDescriptor(t, in, tt.old, tt.new)
			}
			s := settings
			s.Security = tt.security
			_, err := transpile.Objects(in, s)
			got, ok := errors.AsType[*refusal.Error](err)
			if !ok {
				t.Fatalf("Objects: %v, want a refusal", err)
			}
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPod checks the properties of every pod, whatever the descriptor.
func TestPod(t *testing.T) {
	in := input(t, "testdata/everything.toml")
	spec := podOf(t, objects(t, in, settings))
	if *spec.AutomountServiceAccountToken || *spec.EnableServiceLinks {
		t.Error("a pod of a run is given a Kubernetes token or other services' addresses")
	}
	var order []string
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		order = append(order, c.Name)
		for _, m := range c.VolumeMounts {
			if m.MountPath == pod.SecretDir && c.Name != cluster.ContainerPull && c.Name != cluster.ContainerCollect {
				t.Errorf("container %s sees the run's credentials", c.Name)
			}
		}
		if c.Name != cluster.ContainerBenchmark && c.SecurityContext.Privileged != nil {
			t.Errorf("container %s is privileged", c.Name)
		}
	}
	if diff := cmp.Diff([]string{"bai-install", "bai-collect", "bai-pull", "benchmark"}, order); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

func TestOnlyTheCollectorHasAndKnowsTheVolumeThatIsItsOwn(t *testing.T) {
	for _, file := range []string{"testdata/everything.toml", examples + "/mpi.toml", examples + "/inference.toml"} {
		spec := podOf(t, objects(t, input(t, file), settings))
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			has := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == pod.StateDir || m.Name == "state" })
			hasEnv := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == pod.EnvStateDir && e.Value == pod.StateDir })
			if want := c.Name == cluster.ContainerCollect; has != want || hasEnv != want {
				t.Errorf("%s: container %s has the volume: %t, knows it: %t", file, c.Name, has, hasEnv)
			}
		}
	}
}

// TestACollectorHasAsLongAsItsPodMayBeOwing: the collector has the whole grace period
// of the pod, and the benchmark has less.
func TestACollectorHasAsLongAsItsPodMayBeOwing(t *testing.T) {
	for name, tt := range map[string]struct {
		grace, owed time.Duration
		image       bool // the benchmark runs its image's own entrypoint
		pod         int64
		benchmark   string
		drain       time.Duration
	}{
		"an hour where nobody says":                      {pod: 3600, benchmark: "310", drain: time.Hour - 15*time.Second},
		"as settings say":                                {owed: 3 * time.Hour, pod: 10800, benchmark: "310", drain: 3*time.Hour - 15*time.Second},
		"never less than its benchmark":                  {grace: 2 * time.Hour, pod: 7210, benchmark: "7210", drain: 2*time.Hour - 5*time.Second},
		"less where Kubernetes has to end the benchmark": {image: true, pod: 300, benchmark: "300", drain: 285 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings
			s.Grace, s.ShippingGrace = tt.grace, tt.owed
			in := input(t, examples+"/hello-world.toml")
			if tt.image {
				in = input(t, examples+"/minimal.toml")
			}
			job := jobOf(t, objects(t, in, s))
			var collect pod.Collect
			if err := json.Unmarshal(secrets(t, in, s).Data[pod.CollectFile], &collect); err != nil {
				t.Fatal(err)
			}
			got := []any{*job.Spec.Template.Spec.TerminationGracePeriodSeconds, job.Spec.Template.Annotations[cluster.AnnotationGrace], collect.Drain}
			if diff := cmp.Diff([]any{tt.pod, tt.benchmark, tt.drain}, got); diff != "" {
				t.Errorf("the pod, its benchmark, its collector (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEntrypointKillsABenchmarkAfterItsGraceAndBeforeThePodIsKilled(t *testing.T) {
	for name, tt := range map[string]struct {
		file  string
		grace time.Duration
		image bool // the image's own entrypoint is known
		want  time.Duration
	}{
		"5 minutes by default":                {file: examples + "/hello-world.toml", want: 5 * time.Minute},
		"as set":                              {file: examples + "/hello-world.toml", grace: 90 * time.Second, want: 90 * time.Second},
		"longer than data may be owed":        {file: examples + "/hello-world.toml", grace: 2 * time.Hour, want: 2 * time.Hour},
		"with artifacts":                      {file: "testdata/everything.toml", grace: time.Minute, want: time.Minute},
		"with steps":                          {file: examples + "/steps.toml", grace: time.Minute, want: time.Minute},
		"the entrypoint of an image is known": {file: examples + "/minimal.toml", grace: time.Minute, image: true, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s, in := settings, input(t, tt.file)
			s.Grace = tt.grace
			if tt.image {
				answer := registryAnswer()
				answer.Name = in.Descriptor.Env.DockerImage
				in.Images = []cluster.Image{answer}
			}
			template := jobOf(t, objects(t, in, s)).Spec.Template
			if diff := cmp.Diff(map[string]string{cluster.ContainerBenchmark: tt.want.String()}, graces(template.Spec)); diff != "" {
				t.Errorf("the graces of the containers (-want +got):\n%s", diff)
			}
			all := time.Duration(*template.Spec.TerminationGracePeriodSeconds) * time.Second
			if killed := cluster.BenchmarkGrace(template.Annotations, all); killed < tt.want+10*time.Second || all < killed {
				t.Errorf("the container is killed after %s, its pod after %s", killed, all)
			}
		})
	}
}

// graces returns the grace of each container that has one for the entrypoint.
func graces(spec corev1.PodSpec) map[string]string {
	all := make(map[string]string)
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, e := range c.Env {
			if e.Name == pod.EnvGrace {
				all[c.Name] = e.Value
			}
		}
	}
	return all
}

func TestThePodsOfARunAreToldTheirShareOfSeries(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want []int // by role, in the order of their Secrets
	}{
		"all where there is one":                        {examples + "/hello-world.toml", []int{0}},
		"half where another reads its output":           {examples + "/minimal.toml", []int{7500}},
		"half for a client, and half for its server":    {examples + "/inference.toml", []int{7500, 7500}},
		"half for a launcher, the rest for its workers": {examples + "/mpi.toml", []int{3750, 7500}},
	} {
		t.Run(name, func(t *testing.T) {
			got := sharesOf(t, input(t, tt.file))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// sharesOf returns the maximum number of series of the collectors of each role.
func sharesOf(t *testing.T, in transpile.Input) (shares []int) {
	t.Helper()
	all, err := transpile.Secrets(in, settings, secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		text, ok := s.Data[pod.CollectFile]
		if !ok {
			continue
		}
		var collect pod.Collect
		if err := json.Unmarshal(text, &collect); err != nil {
			t.Fatal(err)
		}
		shares = append(shares, collect.Series)
	}
	return shares
}

func TestKubernetesChangesNoDollarsInTextsForThePlatformsPrograms(t *testing.T) {
	s := settings
	s.Gateway = "http://gateway:8080"
	in := replaceInDescriptor(t, input(t, examples+"/inference.toml"), `path = "/ping"`, `path = "/$$ping/$(BAI_RUN)"`)
	text := in.Run.Descriptor + "\n[[output.artifacts]]\npath = \"/out/$$1/$(BAI_RUN)\"\n"
	in.Run.Descriptor, in.Descriptor = text, parseDescriptor(t, text)
	spec := podOf(t, objects(t, in, s))
	expanded := func(text string) string {
		return cluster.Expand(text, func(string) (string, bool) { return "expanded", true })
	}
	var artifacts []pod.Artifact
	for _, e := range spec.Containers[0].Env {
		if e.Name != pod.EnvArtifacts {
			continue
		}
		if err := json.Unmarshal([]byte(expanded(e.Value)), &artifacts); err != nil {
			t.Fatal(err)
		}
	}
	if len(artifacts) != 1 || artifacts[0].Path != "/out/$$1/$(BAI_RUN)" {
		t.Errorf("artifacts %+v", artifacts)
	}
	wait := containerOf(spec.InitContainers, cluster.ContainerWait)
	if got := expanded(wait.Args[len(wait.Args)-1]); !strings.HasSuffix(got, ":8080/$$ping/$(BAI_RUN)") {
		t.Errorf("the client waits for %s", got)
	}
}

func TestWhatAUserWritesIntoLabels(t *testing.T) {
	in := input(t, examples+"/minimal.toml")
	in.Run.Owner = "Ünal Müller <unal@example.org> of the team with the very long name in the house"
	in.Run.Labels = map[string]string{"ok": "yes", "job-name": "mine", "bad value": "x", "batch.kubernetes.io/job-name": "x", cluster.LabelRun: "other", "v": "-a b-"}
	job := jobOf(t, objects(t, in, settings))
	want := map[string]string{
		cluster.LabelRun: runID, cluster.LabelAttempt: "1", cluster.LabelRole: "benchmark", cluster.LabelTeam: "pets",
		cluster.LabelOwner: "nal-M-ller--unal-example.org--of-the-team-with-the-very-long-n",
		"ok":               "yes", "v": "a-b",
	}
	if diff := cmp.Diff(want, job.Labels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := job.Annotations[cluster.LabelOwner]; got != in.Run.Owner {
		t.Errorf("annotation: %q, want the owner whole", got)
	}
}

func TestGPUsOfAnInstanceTypeThatSettingsKnow(t *testing.T) {
	in := replaceInDescriptor(t, input(t, "testdata/everything.toml"), "gpus = 2", "")
	in = replaceInDescriptor(t, in, "p3.8xlarge", "z9.huge")
	s := settings
	s.Instances = "z9.huge 3"
	limits := podOf(t, objects(t, in, s)).Containers[0].Resources.Limits
	if got := limits["amd.com/gpu"]; got.Value() != 3 {
		t.Errorf("%v GPUs, want 3", got.Value())
	}
}

func TestAClusterThatEnforcesNoLimitsIsOnlyAsked(t *testing.T) {
	s := settings
	s.NoLimits = true
	r := podOf(t, objects(t, input(t, "testdata/everything.toml"), s)).Containers[0].Resources
	if diff := cmp.Diff([]int{1, 2}, []int{len(r.Limits), len(r.Requests)}); diff != "" {
		t.Errorf("limits (GPUs), requests (CPU, memory) (-want +got):\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	err := transpile.Settings{Deadline: -1, MaxLog: -1, Instances: "x y", Unpack: transpile.Unpack{MaxFiles: -1}}.Validate("executor.pods")
	for _, want := range []string{"executor.pods.deadline: must not be negative", "executor.pods.max_log: must not be negative", "executor.pods.instances: ", "executor.pods.unpack: max_files"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

func TestSettingsHaveAddressesThatPodsCanRead(t *testing.T) {
	for name, tt := range map[string]struct{ objects, gateway, want string }{
		"none":                       {},
		"by way of the gateway":      {objects: "https://bai.example/v1/runs/{run}", gateway: "https://bai.example"},
		"a folder, and an address":   {objects: "file:///srv/objects", gateway: "http://10.0.0.1:7070/bai"},
		"a bucket":                   {objects: "s3://bai/objects", want: `engines.gpu.pods.object_store: "s3://bai/objects" is no URL that pods read: use file, http or https, as https://bai.example/v1/runs/{run}`},
		"a path":                     {objects: "/srv/objects", want: "engines.gpu.pods.object_store: "},
		"a relative folder":          {objects: "file://srv/objects", want: "engines.gpu.pods.object_store: "},
		"an address without a host":  {objects: "https:///objects", want: "engines.gpu.pods.object_store: "},
		"a gateway without a scheme": {gateway: "bai.example:7070", want: `engines.gpu.pods.gateway: "bai.example:7070" is no URL that pods read: use http or https, as https://bai.example`},
		"a gateway in a folder":      {gateway: "file:///srv", want: "engines.gpu.pods.gateway: "},
	} {
		err := transpile.Settings{ObjectStore: tt.objects, Gateway: tt.gateway}.Validate("engines.gpu.pods")
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func input(t *testing.T, file string) transpile.Input {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h := event.NewHeader("m1", runID, "pets", "ann@example.org", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return newInput(t, event.Fetched{Header: h, File: filepath.Base(file), Descriptor: string(text)})
}

// newInput parses the run's descriptor and adds the data that the fetcher would add.
func newInput(t *testing.T, run event.Fetched) transpile.Input {
	t.Helper()
	d, faults := parser.Parser{Instances: "z9.huge 3"}.Parse(run.File, []byte(run.Descriptor))
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	run.Labels, run.Data = d.Info.Labels, nil
	sources := d.Data.Sources
	if d.Server != nil {
		sources = append(slices.Clone(sources), d.Server.Models...)
	}
	for _, s := range sources {
		run.Data = append(run.Data, event.Data{Source: s.Src, Path: s.Path, Object: "objects/" + filepath.Base(s.Path), Unpack: s.Unpack, Writable: !s.ReadOnly, Size: 1})
	}
	if d.ML != nil && d.ML.Script != nil {
		run.Data = append(run.Data, event.Data{Source: d.ML.Script.Archive, Path: pod.ScriptsDir, Object: "objects/script", Size: 1})
	}
	return transpile.Input{Run: run, Descriptor: d}
}

func replaceInDescriptor(t *testing.T, in transpile.Input, old, replacement string) transpile.Input {
	t.Helper()
	in.Run.Descriptor = strings.Replace(in.Run.Descriptor, old, replacement, 1)
	return newInput(t, in.Run)
}

func objects(t *testing.T, in transpile.Input, s transpile.Settings) transpile.Workload {
	t.Helper()
	p, err := transpile.Objects(in, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func secrets(t *testing.T, in transpile.Input, s transpile.Settings) *corev1.Secret {
	t.Helper()
	all, err := transpile.Secrets(in, s, secret)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("%d secrets, want 1", len(all))
	}
	return all[0]
}

func jobOf(t *testing.T, p transpile.Workload) *batchv1.Job {
	t.Helper()
	job, ok := p.Objects[len(p.Objects)-1].(*batchv1.Job)
	if !ok {
		t.Fatalf("the last object is a %T, want a Job", p.Objects[len(p.Objects)-1])
	}
	return job
}

func podOf(t *testing.T, p transpile.Workload) corev1.PodSpec {
	t.Helper()
	return jobOf(t, p).Spec.Template.Spec
}

func manifest(t *testing.T, objects []cluster.Object) []byte {
	t.Helper()
	var all [][]byte
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return bytes.Join(all, []byte("---\n"))
}
