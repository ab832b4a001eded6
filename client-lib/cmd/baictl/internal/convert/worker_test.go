package convert_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert"
)

// TestWhatAWorkerOfMPIHasApartFromTheLauncherIsNamed has an MPIJob whose worker differs from its launcher, and one whose worker is alike.
func TestWhatAWorkerOfMPIHasApartFromTheLauncherIsNamed(t *testing.T) {
	t.Parallel()
	const roles = "spec.tasks[0].resource.manifest.spec.mpiReplicaSpecs."
	pod, container := roles+"Worker.template.spec.", roles+"Worker.template.spec.containers[0]."
	text := string(read(t, "testdata/kubebench/mpi-launcher.yaml"))
	r := convert.Convert(convert.Kubebench, []byte(text))
	for _, path := range []string{
		pod + "restartPolicy", pod + "serviceAccountName", pod + "nodeSelector", pod + "tolerations", pod + "volumes", pod + "initContainers",
		pod + "containers[1]", roles + "Worker.template.metadata",
		container + "image", container + "command", container + "workingDir", container + "ports", container + "env", container + "volumeMounts",
		container + "securityContext.privileged", container + "securityContext.capabilities",
		roles + "Launcher.template.spec.containers[0].resources",
	} {
		if n := remarksAt(r, path); n != 1 {
			t.Errorf("%s has %d lines, want 1: %v", path, n, r.Remarks)
		}
	}
	begin, end := strings.Index(text, "                    volumes:"), strings.Index(text, "              Worker:")
	r = convert.Convert(convert.Kubebench, []byte(text[:end]+"              Worker:\n                replicas: 4\n                template:\n                  spec:\n"+text[begin:end]))
	if i := slices.IndexFunc(r.Remarks, func(n convert.Note) bool { return strings.Contains(n.Path, "Worker.template.spec") }); i >= 0 || len(r.Faults) > 0 {
		t.Errorf("a worker like its launcher: %v %v, want no line about a key that is carried over", r.Remarks, r.Faults)
	}
}

func TestWhatAStepCannotHaveIsNamed(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: kubeflow.org/v1alpha1
kind: KubebenchJob
metadata: {name: one}
spec:
  jobSpecs:
    preJob:
      container:
        image: example.org/prepare:1
        command: [prepare]
        imagePullPolicy: Always
        securityContext: {privileged: true}
    mainJob:
      container: {image: "example.org/run:1", command: [run], imagePullPolicy: Always, securityContext: {privileged: true}}
`
	r := convert.Convert(convert.Kubebench, []byte(text))
	for path, want := range map[string]int{
		"spec.jobSpecs.preJob.container.imagePullPolicy": 1, "spec.jobSpecs.preJob.container.securityContext.privileged": 1,
		"spec.jobSpecs.mainJob.container.imagePullPolicy": 0, "spec.jobSpecs.mainJob.container.securityContext.privileged": 0,
	} {
		if n := remarksAt(r, path); n != want || len(r.Faults) > 0 {
			t.Errorf("%s has %d lines, want %d: %v %v", path, n, want, r.Remarks, r.Faults)
		}
	}
}

// remarksAt returns how many remarks are about a key.
func remarksAt(r convert.Result, path string) (n int) {
	for _, one := range r.Remarks {
		if one.Path == path {
			n++
		}
	}
	return n
}
