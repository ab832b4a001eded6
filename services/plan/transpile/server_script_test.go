package transpile_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

func TestAServerMayBeStartedByAScript(t *testing.T) {
	text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\nstrategy = \"inference\"\n[env]\ndocker_image = \"a/b:1\"\n[ml]\nbenchmark_code = \"client\"\n" +
		"[server.hardware]\ncpus = 1\n[server.env]\ndocker_image = \"a/b:1\"\nports = [80]\nstart_command = \"\"\"\n#!/bin/sh -e\nwarm up && exec serve \"$@\"\n\"\"\"\nstart_command_args = \"--port 80\"\n")
	d, faults := parser.Parse("f.toml", text)
	if d == nil || len(faults) > 0 {
		t.Fatal(faults)
	}
	plan, err := transpile.Preview(d, text, false, settings)
	if err != nil {
		t.Fatal(err)
	}
	var script, command []string
	for _, o := range plan.Objects {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			for _, text := range o.Data {
				script = append(script, o.Labels[cluster.LabelRole]+": "+text)
			}
		case *batchv1.Job:
			if o.Labels[cluster.LabelRole] == "server" {
				command = o.Spec.Template.Spec.Containers[0].Command
			}
		}
	}
	if diff := cmp.Diff([]string{"server: #!/bin/sh -e\nwarm up && exec serve \"$@\"\n"}, script); diff != "" {
		t.Errorf("scripts (-want +got):\n%s", diff)
	}
	at := slices.Index(command, "--")
	if diff := cmp.Diff([]string{"/bin/sh", "-e", "/bai/script/benchmark", "--port", "80"}, command[at+1:]); diff != "" {
		t.Errorf("the server's command (-want +got):\n%s", diff)
	}
}
