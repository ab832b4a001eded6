package transpile_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// withSentCode adds code to the data of a run, as the fetcher would.
func withSentCode(in transpile.Input) transpile.Input {
	code := pod.Code(event.Bundle{SHA256: strings.Repeat("ab", 32), Size: 7})
	code.Object = "objects/code"
	in.Run.Data = append(slices.Clone(in.Run.Data), code)
	return in
}

// rolesThatFindCode returns the roles whose benchmark has the code and the variable
// with its path.
func rolesThatFindCode(t *testing.T, in transpile.Input) (roles []string) {
	t.Helper()
	for _, o := range objects(t, in, settings).Objects {
		job, ok := o.(*batchv1.Job)
		if !ok {
			continue
		}
		c := job.Spec.Template.Spec.Containers[0]
		named := slices.Contains(c.Env, corev1.EnvVar{Name: pod.EnvScripts, Value: "/bai/scripts"})
		mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/bai/scripts" && !m.ReadOnly })
		if named != mounted {
			t.Errorf("%s: the variable is there: %t, the folder: %t", job.Name, named, mounted)
		}
		if named {
			roles = append(roles, job.Labels[cluster.LabelRole])
		}
	}
	return roles
}

// rolesThatPullCode returns the roles whose pods pull the code.
func rolesThatPullCode(t *testing.T, in transpile.Input) (roles []string) {
	t.Helper()
	whole, err := transpile.Secrets(in, settings, secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range whole {
		var pull pod.Pull
		if text, ok := s.Data[pod.PullFile]; !ok || json.Unmarshal(text, &pull) != nil {
			continue
		}
		if slices.ContainsFunc(pull.Data, func(d event.Data) bool {
			return d.Path == "/bai/scripts" && d.Unpack && d.Writable && d.Object == "objects/code"
		}) {
			roles = append(roles, s.Labels[cluster.LabelRole])
		}
	}
	return roles
}

func TestCodeThatIsSentAlongIsInThePodsOfTheBenchmarkWhetherOrNotItIsAskedFor(t *testing.T) {
	for name, want := range map[string][]string{
		"hello-world": {"benchmark"},
		"minimal":     {"benchmark"},
		"data":        {"benchmark"},
		"inference":   {"client"},
		"mpi":         {"worker", "launcher"},
	} {
		t.Run(name, func(t *testing.T) {
			in := withSentCode(input(t, examples+"/"+name+".toml"))
			if diff := cmp.Diff(want, rolesThatFindCode(t, in)); diff != "" {
				t.Errorf("who finds it (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, rolesThatPullCode(t, in)); diff != "" {
				t.Errorf("who pulls it (-want +got):\n%s", diff)
			}
			in.Run.Data = in.Run.Data[:len(in.Run.Data)-1]
			if find, pull := rolesThatFindCode(t, in), rolesThatPullCode(t, in); len(find)+len(pull) > 0 {
				t.Errorf("without code %v find it and %v pull it", find, pull)
			}
		})
	}
}

func TestTheFolderOfCodeIsKnownInCommandsHoweverItIsWritten(t *testing.T) {
	in := withSentCode(withCommand(t, input(t, examples+"/hello-world.toml"), `"${BAI_SCRIPTS_PATH}/run.sh $(BAI_SCRIPTS_PATH)/a $BAI_SCRIPTS_PATH"`))
	in.Run.Data = []event.Data{in.Run.Data[len(in.Run.Data)-1]}
	c := podOf(t, objects(t, in, settings)).Containers[0]
	want := []string{"/bai/bin/bai-pod", "exec", "--", "$(BAI_SCRIPTS_PATH)/run.sh", "$(BAI_SCRIPTS_PATH)/a", "$BAI_SCRIPTS_PATH"}
	if diff := cmp.Diff(want, c.Command); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestADescriptorThatWantsCodeIsRefusedWithout(t *testing.T) {
	in := input(t, examples+"/hello-world.toml")
	in.Descriptor.ML.Script = &descriptors.Script{Archive: "code.tar"}
	_, err := transpile.Objects(in, settings)
	refused, ok := errors.AsType[*refusal.Error](err)
	if !ok || refused.Reason != event.InvalidDescriptor || !strings.Contains(refused.Message, "submit it with --script DIR") {
		t.Errorf("%v", err)
	}
	if _, err := transpile.Objects(withSentCode(in), settings); err != nil {
		t.Errorf("with code: %v", err)
	}
}

func TestAManifestHasCodeWhereItIsAskedForOrSaidToBeSent(t *testing.T) {
	for name, tt := range map[string]struct{ asked, sent, want bool }{
		"neither": {}, "asked for": {asked: true, want: true}, "sent": {sent: true, want: true}, "both": {asked: true, sent: true, want: true},
	} {
		in := input(t, examples+"/hello-world.toml")
		if tt.asked {
			in.Descriptor.ML.Script = &descriptors.Script{Archive: "code.tar"}
		}
		text, err := transpile.Manifest(in.Descriptor, []byte(in.Run.Descriptor), tt.sent, settings)
		if err != nil || strings.Contains(string(text), "value: /bai/scripts") != tt.want {
			t.Errorf("%s: %v, want %t\n%s", name, err, tt.want, text)
		}
	}
}
