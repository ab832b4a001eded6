//go:build linux

package local_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local"
)

func TestASurveyOfTheMachineTellsWhatItHas(t *testing.T) {
	secrets := t.TempDir()
	writeSecret(t, secrets, "s3cret\n", 0o600)
	c := open(t, local.Settings{Dir: t.TempDir(), Secrets: secrets, GPUs: 2})
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"},
	}
	s, err := c.Survey(t.Context(), cluster.SurveyRequest{
		Objects: []cluster.Object{claim}, Programs: []string{"sh", "/bin/sh", "no-such-program", "/no/such/program"},
		Secrets:     []cluster.SecretKey{{Name: "registry", Key: "token"}, {Name: "registry", Key: "other"}, {Name: "login"}},
		Permissions: []cluster.Permission{{Verb: "create", Resource: "jobs"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !s.LocalMachine || !strings.Contains(s.Name, "this machine") {
		t.Errorf("it is %q", s.Name)
	}
	checkAnswers(t, s)
	if len(s.Refusals) != 1 || !strings.Contains(s.Refusals[0].Message, "runs Jobs") {
		t.Errorf("refusals: %+v", s.Refusals)
	}
	if len(s.Nodes) != 1 {
		t.Fatalf("%d nodes", len(s.Nodes))
	}
	room := s.Nodes[0].Status.Allocatable
	if gpus := room["nvidia.com/gpu"]; gpus.Value() != 2 {
		t.Errorf("%s GPUs, want 2", gpus.String())
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q := room[name]; q.Sign() <= 0 {
			t.Errorf("%s of %s", q.String(), name)
		}
	}
}

// checkAnswers checks the answer for each item of the request.
func checkAnswers(t *testing.T, s cluster.Survey) {
	t.Helper()
	for name, want := range map[string]bool{"sh": true, "/bin/sh": true, "no-such-program": false, "/no/such/program": false} {
		if a := s.Programs[name]; a.Yes != want || a.Detail == "" {
			t.Errorf("program %s: %+v, want %t", name, a, want)
		}
	}
	for k, want := range map[cluster.SecretKey]bool{{Name: "registry", Key: "token"}: true, {Name: "registry", Key: "other"}: false, {Name: "login"}: true} {
		if a := s.Secrets[k]; a.Yes != want {
			t.Errorf("secret %+v: %+v, want %t", k, a, want)
		}
	}
	if !s.Permissions[cluster.Permission{Verb: "create", Resource: "jobs"}].Yes {
		t.Error("nobody needs a right here")
	}
}
