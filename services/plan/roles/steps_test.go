package roles_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/plan/roles"
)

// stepped returns a descriptor with a step that always runs, further keys of its hardware, and tables.
func stepped(hardware, tables string) string {
	return "spec_version = \"1.0\"\n[info]\ndescription = \"d\"\n[hardware]\ncpus = \"1\"\n" + hardware + "[env]\ndocker_image = \"debian:12\"\n[ml]\nbenchmark_code = \"true\"\n" +
		tables + "[[steps]]\nname = \"drop\"\nwhen = \"always\"\ncommand = \"drop\"\n"
}

func TestAStepThatAlwaysRunsIsInThePodWhoseEndEndsTheRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		descriptor string
		operator   bool
		want       string // the roles with the step, or the error
	}{
		"one pod": {descriptor: stepped("strategy = \"single_node\"\n", ""), want: "benchmark"},
		"mpi":     {descriptor: stepped("strategy = \"mpi\"\n[hardware.distributed]\nnum_instances = 2\n", ""), want: "launcher"},
		"mpi by an operator": {
			descriptor: stepped("strategy = \"mpi\"\n[hardware.distributed]\nnum_instances = 2\n", ""), operator: true,
			want: "InvalidDescriptor: this platform runs strategy mpi by Kubeflow's MPI operator, whose runs have no [[steps]] (leave them out)",
		},
		"inference": {
			descriptor: stepped("strategy = \"inference\"\n", "[server.hardware]\ncpus = \"1\"\n[server.env]\ndocker_image = \"debian:12\"\nports = [80]\nstart_command = \"serve\"\n"),
			want:       "client",
		},
		"roles, of which the last one ends the run": {descriptor: stepped("", "[[roles]]\nname = \"a\"\nreplicas = 3\n[[roles]]\nname = \"b\"\n"), want: "b"},
		"roles, of which an earlier one ends the run": {
			descriptor: stepped("", "[[roles]]\nname = \"a\"\nends_run = true\n[[roles]]\nname = \"b\"\nreplicas = 2\n"), want: "a",
		},
	} {
		d, faults := parser.Parse("f.toml", []byte(tt.descriptor))
		if d == nil || faults.Err() != nil {
			t.Errorf("%s: %v", name, faults)
			continue
		}
		all, err := roles.Of(roles.Input{Descriptor: d, Names: roles.Names{Operator: tt.operator}})
		var with []string
		for _, r := range all {
			if len(r.Steps) > 0 {
				with = append(with, r.Name)
			}
		}
		got := strings.Join(with, " ")
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
