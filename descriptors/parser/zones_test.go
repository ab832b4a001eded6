package parser_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

func TestAZoneIsKnownWhereThePlatformSaysSo(t *testing.T) {
	const id, both = `aws_zone_id = "use1-az9"`, "aws_zone_id = \"use1-az9\"\navailability_zone = \"us-east-1a\""
	tests := map[string]struct {
		parser parser.Parser
		keys   string
		want   []string
	}{
		"a file alone may name any zone": {parser.Parser{}, id, nil},
		"a zone of the settings":         {parser.Parser{Zones: []string{"use1-az9"}}, id, nil},
		"another zone": {
			parser.Parser{Zones: []string{"use1-az1", "use1-az2"}},
			id,
			[]string{`BAI0037 hardware.aws_zone_id: this platform does not know the zone "use1-az9" (use one of use1-az1, use1-az2, or availability_zone, which takes the name of a zone)`},
		},
		"a platform without a map": {
			parser.Parser{Zones: []string{}},
			id,
			[]string{"BAI0037 hardware.aws_zone_id: this platform has no map of zone IDs (use availability_zone, which takes the name of a zone)"},
		},
		"what was accepted is not judged again": {parser.Parser{Zones: []string{}, Accepted: true}, id, nil},
		"the name wins": {
			parser.Parser{Zones: []string{}},
			both,
			[]string{"BAI0101 hardware.aws_zone_id: warning: availability_zone wins over it (leave one of the two out)"},
		},
		"one machine warns once": {
			parser.Parser{OneMachine: true},
			both,
			[]string{"BAI0101 hardware.aws_zone_id: warning: the local cluster has no zones: this machine stands for all of them"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := tt.parser.Parse("f.toml", []byte(completeDescriptor("[hardware]\ncpus = 1\n"+tt.keys)))
			var got []string
			for _, f := range faults {
				f.File, f.Line, f.Column = "", 0, 0
				got = append(got, fmt.Sprintf("%s %s", f.Code, f.String()[len(":0:0: "):]))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnAcceptedDescriptorMayNameAMachineThatOnlyThePlatformKnows(t *testing.T) {
	text := []byte(completeDescriptor("[hardware]\ninstance_type = \"lab.huge\"\nstrategy = \"mpi\"\n[hardware.distributed]\nprocesses_per_instance = \"gpus\"\nnum_instances = 2\n[ml]\nbenchmark_code = \"train\""))
	for name, p := range map[string]parser.Parser{"its own kinds": {Instances: "lab.huge 8"}, "accepted": {Accepted: true}} {
		if d, faults := p.Parse("f.toml", text); d == nil {
			t.Errorf("%s: %v", name, faults)
		}
	}
	if d, _ := parser.Parse("f.toml", text); d != nil {
		t.Error("the language alone knows the machine")
	}
}

func TestALabelThatSettingsFixHasNoOtherValue(t *testing.T) {
	fixed := map[string]string{"pool": "benchmarks", "node.kubernetes.io/instance-type": "lab.huge", "topology.kubernetes.io/zone": "b"}
	const others = "instance_type = \"lab.tiny\"\ngpus = 0\navailability_zone = \"a\"\nnode_selector = { pool = \"services\", disk = \"ssd\" }"
	for name, tt := range map[string]struct {
		parser parser.Parser
		keys   string
		want   []string
	}{
		"a file alone may name any node": {parser.Parser{}, others, nil},
		"the settings' own values":       {parser.Parser{NodeSelector: fixed}, "instance_type = \"lab.huge\"\ngpus = 0\navailability_zone = \"b\"\nnode_selector = { pool = \"benchmarks\" }", nil},
		"other values": {parser.Parser{NodeSelector: fixed}, others, []string{
			`BAI0038 hardware.instance_type: all pods of this platform run on nodes with node.kubernetes.io/instance-type=lab.huge (leave it out, or write "lab.huge")`,
			`BAI0038 hardware.availability_zone: all pods of this platform run on nodes with topology.kubernetes.io/zone=b (leave it out, or write "b")`,
			`BAI0038 hardware.node_selector.pool: all pods of this platform run on nodes with pool=benchmarks (leave it out, or write "benchmarks")`,
		}},
		"a label in place of the key": {
			parser.Parser{NodeSelector: fixed},
			"node_selector = { \"topology.kubernetes.io/zone\" = \"a\" }",
			[]string{`BAI0038 hardware.node_selector."topology.kubernetes.io/zone": all pods of this platform run on nodes with topology.kubernetes.io/zone=b (leave it out, or write "b")`},
		},
		"what was accepted is not judged again": {parser.Parser{NodeSelector: fixed, Accepted: true}, others, nil},
	} {
		if diff := cmp.Diff(tt.want, faultsOf(tt.parser, completeDescriptor("[hardware]\n"+tt.keys))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPullPolicyThatSettingsFixIsTheOnlyOne(t *testing.T) {
	text := completeDescriptor("[env]\ndocker_image = \"alpine:3\"\npull_policy = \"never\"\n")
	for name, tt := range map[string]struct {
		parser parser.Parser
		want   []string
	}{
		"a file alone may name any":             {parser.Parser{}, nil},
		"the settings' own":                     {parser.Parser{PullPolicy: "Never"}, nil},
		"another":                               {parser.Parser{PullPolicy: "Always"}, []string{"BAI0048 env.pull_policy: this platform pulls all images by the policy Always (leave it out)"}},
		"what was accepted is not judged again": {parser.Parser{PullPolicy: "Always", Accepted: true}, nil},
	} {
		if diff := cmp.Diff(tt.want, faultsOf(tt.parser, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPlacementIsOneThatSettingsLetDescriptorsName(t *testing.T) {
	text := completeDescriptor("[hardware]\ncpus = 1\nplacement = \"exclusive\"\n")
	some := []string{"spread", "pack"}
	for name, tt := range map[string]struct {
		parser parser.Parser
		want   []string
	}{
		"a file alone may name any":             {parser.Parser{}, nil},
		"one of the settings":                   {parser.Parser{Placements: []string{"exclusive"}}, nil},
		"another":                               {parser.Parser{Placements: some}, []string{"BAI0049 hardware.placement: this platform's descriptors may name spread, pack (use one of these, or leave it out)"}},
		"one machine does not read it":          {parser.Parser{Placements: some, OneMachine: true}, nil},
		"what was accepted is not judged again": {parser.Parser{Placements: some, Accepted: true}, nil},
	} {
		if diff := cmp.Diff(tt.want, faultsOf(tt.parser, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
