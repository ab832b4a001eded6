package transpile_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

const entrypointDescriptor = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"example.org/bench:1\"\nimage_pull_secret = \"mine\"\n"

func parseDescriptor(t *testing.T, text string) *descriptors.Descriptor {
	t.Helper()
	d, faults := parser.Parse("d.toml", []byte(text))
	if d == nil {
		t.Fatal(faults)
	}
	return d
}

// benchmarkContainerOf returns the benchmark's container of a run, given registry
// answers.
func benchmarkContainerOf(t *testing.T, text string, images ...cluster.Image) corev1.Container {
	t.Helper()
	run := event.Fetched{Header: event.Header{Run: runID, Attempt: 1}, Descriptor: text}
	plan, err := transpile.Objects(transpile.Input{Run: run, Descriptor: parseDescriptor(t, text), Images: images}, settings)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(plan.Objects, func(o cluster.Object) bool { _, ok := o.(*batchv1.Job); return ok })
	job, ok := plan.Objects[i].(*batchv1.Job)
	if !ok {
		t.Fatal("no job")
	}
	return job.Spec.Template.Spec.Containers[0]
}

func registryAnswer() cluster.Image {
	return cluster.Image{Name: "example.org/bench:1", Digest: "sha256:abc", Entrypoint: []string{"/bin/sh", "-c", "echo $(HOME) $$ $1"}, Cmd: []string{"--n", "$(N)"}}
}

func TestAnEntrypointThatIsKnownIsRunAsACommandIs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text          string
		image         cluster.Image
		from          string
		command, args []string
	}{
		"with its own arguments, as they are": {
			text: entrypointDescriptor, image: registryAnswer(), from: "example.org/bench:1@sha256:abc",
			command: []string{"/bai/bin/bai-pod", "exec", "--", "/bin/sh", "-c", "echo $$(HOME) $$$$ $$1"}, args: []string{"--n", "$$(N)"},
		},
		"with the descriptor's arguments in the place of its own": {
			text: entrypointDescriptor + "[ml]\nargs = \"--n $(BAI_RUN)\"\n", image: registryAnswer(), from: "example.org/bench:1@sha256:abc",
			command: []string{"/bai/bin/bai-pod", "exec", "--", "/bin/sh", "-c", "echo $$(HOME) $$$$ $$1"}, args: []string{"--n", "$(BAI_RUN)"},
		},
		"not where the descriptor has a command": {
			text: entrypointDescriptor + "[ml]\nbenchmark_code = \"true\"\n", image: registryAnswer(), from: "example.org/bench:1",
			command: []string{"/bai/bin/bai-pod", "exec", "--", "true"},
		},
		"not where the registry gave no answer": {
			text: entrypointDescriptor, image: cluster.Image{Name: "example.org/bench:1", UnreadReason: "away"}, from: "example.org/bench:1",
		},
		"not where the answer is about another image": {
			text: entrypointDescriptor, image: cluster.Image{Name: "other", Digest: "sha256:d", Entrypoint: []string{"x"}}, from: "example.org/bench:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := benchmarkContainerOf(t, tt.text, tt.image)
			if diff := cmp.Diff([]any{tt.from, tt.command, tt.args}, []any{c.Image, c.Command, c.Args}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnImageWithAKnownEntrypointHasTheSeriesAndTheTimeOfACommand(t *testing.T) {
	t.Parallel()
	type share struct {
		Series int
		Drain  time.Duration
		Pod    int64 // seconds that the pod has to end
	}
	all, half := share{0, time.Hour - 15*time.Second, 3600}, share{7500, 5*time.Minute - 15*time.Second, 300}
	for name, tt := range map[string]struct {
		more   string
		images []cluster.Image
		want   share
	}{
		"a command":             {more: "[ml]\nbenchmark_code = \"true\"\n", want: all},
		"a known entrypoint":    {images: []cluster.Image{registryAnswer()}, want: all},
		"an unknown entrypoint": {want: half},
	} {
		text := entrypointDescriptor + tt.more
		in := transpile.Input{Run: event.Fetched{Header: event.Header{Run: runID, Attempt: 1}, Descriptor: text}, Descriptor: parseDescriptor(t, text), Images: tt.images}
		var collect pod.Collect
		if err := json.Unmarshal(secrets(t, in, settings).Data[pod.CollectFile], &collect); err != nil {
			t.Fatal(err)
		}
		got := share{collect.Series, collect.Drain, *podOf(t, objects(t, in, settings)).TerminationGracePeriodSeconds}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnImageThatItsDigestNamesIsLaunchedByThatName(t *testing.T) {
	t.Parallel()
	image := registryAnswer()
	image.Name = "example.org/bench@sha256:" + strings.Repeat("ab", 32)
	c := benchmarkContainerOf(t, strings.ReplaceAll(entrypointDescriptor, "example.org/bench:1", image.Name), image)
	if c.Image != image.Name || len(c.Command) == 0 {
		t.Errorf("%s %q", c.Image, c.Command)
	}
}

// neverPulled is a descriptor whose image is on the nodes.
var neverPulled = strings.Replace(entrypointDescriptor, "[env]\n", "[env]\npull_policy = \"never\"\n", 1)

func TestTheDescriptorSaysWhenItsImageIsPulledUnlessSettingsDo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text, setting string
		machine       bool
		want          corev1.PullPolicy
		refused       bool
	}{
		"neither does":               {text: entrypointDescriptor},
		"the settings do":            {text: entrypointDescriptor, setting: "Always", want: "Always"},
		"the descriptor does":        {text: neverPulled, want: "Never"},
		"both say the same":          {text: neverPulled, setting: "Never", want: "Never"},
		"they differ":                {text: neverPulled, setting: "Always", refused: true},
		"they differ on one machine": {text: neverPulled, setting: "Always", machine: true, want: "Always"},
		"the name is of Kubernetes":  {text: strings.Replace(neverPulled, "never", "IfNotPresent", 1), want: "IfNotPresent"},
	} {
		s := settings
		s.PullPolicy, s.OneMachine = tt.setting, tt.machine
		d := parseDescriptor(t, tt.text)
		p, err := transpile.Preview(d, []byte(tt.text), false, s)
		if (err != nil) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
		if tt.refused {
			continue
		}
		spec := podOf(t, p)
		if got := spec.Containers[0].ImagePullPolicy; got != tt.want {
			t.Errorf("%s: pulled by %q, want %q", name, got, tt.want)
		}
		if got := spec.InitContainers[0].ImagePullPolicy; string(got) != tt.setting {
			t.Errorf("%s: the platform's image is pulled by %q, want %q", name, got, tt.setting)
		}
	}
}

func TestARenderedRunSaysOfEachImageWhoIsAskedForItsEntrypoint(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		entrypointDescriptor: "at launch its registry is asked for its entrypoint",
		neverPulled:          "its entrypoint is run as it is",
	} {
		got, err := transpile.Manifest(parseDescriptor(t, text), []byte(text), false, settings)
		if comment, _, _ := strings.Cut(string(got), "\n"); err != nil || !strings.Contains(comment, want) {
			t.Errorf("%q, %v; want %q", comment, err, want)
		}
	}
}

func TestOnlyImagesThatRunByThemselvesAreAskedFor(t *testing.T) {
	t.Parallel()
	server := "[hardware]\nstrategy = \"inference\"\ncpus = 1\n[hardware.node_selector]\n\"kubernetes.io/arch\" = \"arm64\"\n[env]\ndocker_image = \"client\"\n[server.env]\ndocker_image = \"server\"\nstart_command = \"\"\nports = [80]\n[server.hardware]\ncpus = 1\n"
	const frame = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n"
	for name, tt := range map[string]struct {
		text string
		set  func(*transpile.Settings)
		want []cluster.ImageQuery
	}{
		"with the descriptor's secret first": {
			text: entrypointDescriptor, set: func(s *transpile.Settings) { s.PullSecrets = []string{"theirs"} },
			want: []cluster.ImageQuery{{Name: "example.org/bench:1", Scope: "benchmarks", Secrets: []string{"mine", "theirs"}}},
		},
		"of a client and its server": {
			text: frame + server, want: []cluster.ImageQuery{{Name: "client", Arch: "arm64", Scope: "benchmarks"}, {Name: "server", Scope: "benchmarks"}},
		},
		"not with a command":                        {text: entrypointDescriptor + "[ml]\nbenchmark_code = \"true\"\n"},
		"not with a script":                         {text: entrypointDescriptor + "[ml]\nbenchmark_code = \"\"\"#!/bin/sh\ntrue\n\"\"\"\n"},
		"not on the local cluster":                  {text: entrypointDescriptor, set: func(s *transpile.Settings) { s.OneMachine = true }},
		"not where settings let none be asked":      {text: entrypointDescriptor, set: func(s *transpile.Settings) { s.NoRegistry = true }},
		"not where a node has images of its own":    {text: entrypointDescriptor, set: func(s *transpile.Settings) { s.PullPolicy = "Never" }},
		"not where the descriptor says so":          {text: neverPulled},
		"with arguments, which an entrypoint takes": {text: entrypointDescriptor + "[ml]\nargs = \"-n 1\"\n", want: []cluster.ImageQuery{{Name: "example.org/bench:1", Scope: "benchmarks", Secrets: []string{"mine"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings
			if tt.set != nil {
				tt.set(&s)
			}
			if diff := cmp.Diff(tt.want, transpile.Images(parseDescriptor(t, tt.text), s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
