package parser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

func TestADescriptorNamesOnlySecretsAndClaimsThatItsNamespaceMayName(t *testing.T) {
	type lists = descriptors.Allowlists
	secret := func(namespace, name, at string) string {
		return fmt.Sprintf(`BAI0046 %s: descriptors of the namespace %q may not name the Secret %q (the platform's settings have to allow it: [executor.pods.allow.%q] secrets = [%q])`, at, namespace, name, namespace, name)
	}
	claim := `BAI0046 volumes[0].claim: descriptors of the namespace "default" may not name the PersistentVolumeClaim "models" (the platform's settings have to allow it: [executor.pods.allow."default"] claims = ["models"])`
	all := func(namespace string) []string {
		return []string{secret(namespace, "login", "env.image_pull_secret"), secret(namespace, "registry", "env.secrets.TOKEN")}
	}
	tests := map[string]struct {
		parser parser.Parser
		want   []string
	}{
		"a file alone may name any":               {parser.Parser{}, nil},
		"without an entry none":                   {parser.Parser{Allow: lists{}}, append(all("default"), claim)},
		"those of any namespace":                  {parser.Parser{Allow: lists{"*": {Secrets: []string{"registry", "login"}, Claims: []string{"models"}}}}, nil},
		"patterns":                                {parser.Parser{Allow: lists{"default": {Secrets: []string{"reg*", "log*n"}, Claims: []string{"*"}}}}, nil},
		"a name in full is no beginning":          {parser.Parser{Allow: lists{"*": {Secrets: []string{"regis", "login"}, Claims: []string{"models"}}}}, all("default")[1:]},
		"another namespace's":                     {parser.Parser{Allow: lists{"vision": {Secrets: []string{"*"}}, "*": {Claims: []string{"models"}}}}, all("default")},
		"its own namespace's":                     {parser.Parser{Namespace: "vision", Allow: lists{"vision": {Secrets: []string{"*"}, Claims: []string{"*"}}}}, nil},
		"claims are no secrets":                   {parser.Parser{Allow: lists{"*": {Secrets: []string{"*"}}}}, []string{claim}},
		"labels are looked at when it starts":     {parser.Parser{Allow: lists{"default": {Labels: []string{"allow=runs"}}}}, nil},
		"labels of another namespace":             {parser.Parser{Allow: lists{"vision": {Labels: []string{"allow=runs"}}, "*": {Claims: []string{"*"}}}}, all("default")},
		"one machine reads claims and pulls none": {parser.Parser{Allow: lists{}, OneMachine: true}, all("default")[1:]},
		"it was accepted before":                  {parser.Parser{Allow: lists{}, Accepted: true}, nil},
	}
	text := "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\nimage_pull_secret = \"login\"\nsecrets = { TOKEN = \"registry/token\" }\n[[volumes]]\npath = \"/models\"\nclaim = \"models\"\n"
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, faultsOf(tt.parser, text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// faultsOf are the faults of a text, without their places in it.
func faultsOf(p parser.Parser, text string) []string {
	_, faults := p.Parse("f.toml", []byte(text))
	var got []string
	for _, f := range faults {
		f.File, f.Line, f.Column = "", 0, 0
		got = append(got, fmt.Sprintf("%s %s", f.Code, f.String()[len(":0:0: "):]))
	}
	return got
}

func TestAFileWithASecretIsHeldAgainstTheListsAsAVariableIs(t *testing.T) {
	t.Parallel()
	text := completeDescriptor("[env]\ndocker_image = \"alpine:3\"\nsecret_files = { \"/root/key\" = \"aws/key\" }\n")
	for name, tt := range map[string]struct {
		parser parser.Parser
		want   []string
	}{
		"a file alone may name any": {parser.Parser{}, nil},
		"without an entry none":     {parser.Parser{Allow: descriptors.Allowlists{}}, []string{`BAI0046 env.secret_files."/root/key": descriptors of the namespace "default" may not name the Secret "aws" (the platform's settings have to allow it: [executor.pods.allow."default"] secrets = ["aws"])`}},
		"one that is listed":        {parser.Parser{OneMachine: true, Allow: descriptors.Allowlists{"*": {Secrets: []string{"aws"}}}}, nil},
	} {
		if diff := cmp.Diff(tt.want, faultsOf(tt.parser, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNoSettingAllowsAnObjectOfThePlatform(t *testing.T) {
	t.Parallel()
	everything := parser.Parser{Allow: descriptors.Allowlists{"*": {Secrets: []string{"*"}, Claims: []string{"*"}, Labels: []string{"a=b"}}}}
	for _, p := range []parser.Parser{{}, everything, {OneMachine: true, Allow: everything.Allow}} {
		_, faults := p.Parse("f.toml", []byte(completeDescriptor("[hardware]\ncpus = 1\n[[volumes]]\npath = \"/x\"\nclaim = \"bai-r-1-data\"\n")))
		if len(faults.Errors()) != 1 || faults[0].Code != "BAI0045" {
			t.Errorf("%+v: %v", p, faults)
		}
	}
}

func TestADescriptorNamesOnlyPrioritiesAndQueuesThatItsNamespaceMayName(t *testing.T) {
	t.Parallel()
	type lists = descriptors.Allowlists
	text := completeDescriptor("[hardware]\ncpus = 1\npriority = \"nightly\"\nqueue = \"team-a\"\n")
	const (
		priority = `BAI0160 hardware.priority: descriptors of the namespace "default" may not name the PriorityClass "nightly" (the platform's settings have to allow it: [executor.pods.allow."default"] priorities = ["nightly"])`
		queue    = `BAI0161 hardware.queue: descriptors of the namespace "default" may not name the queue "team-a" (the platform's settings have to allow it: [executor.pods.allow."default"] queues = ["team-a"])`
	)
	for name, tt := range map[string]struct {
		parser parser.Parser
		want   []string
	}{
		"a file alone may name any":             {parser.Parser{}, nil},
		"without an entry none":                 {parser.Parser{Allow: lists{}}, []string{priority, queue}},
		"those of any namespace":                {parser.Parser{Allow: lists{"*": {Priorities: []string{"nightly"}, Queues: []string{"team-*"}}}}, nil},
		"another namespace's":                   {parser.Parser{Allow: lists{"vision": {Priorities: []string{"*"}, Queues: []string{"*"}}}}, []string{priority, queue}},
		"labels of objects allow neither":       {parser.Parser{Allow: lists{"*": {Labels: []string{"a=b"}, Queues: []string{"*"}}}}, []string{priority}},
		"one machine has neither":               {parser.Parser{Allow: lists{}, OneMachine: true}, nil},
		"what was accepted is not judged again": {parser.Parser{Allow: lists{}, Accepted: true}, nil},
	} {
		if diff := cmp.Diff(tt.want, faultsOf(tt.parser, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPatternAllowsNoPriorityClassOfTheClusterItself(t *testing.T) {
	t.Parallel()
	text := completeDescriptor("[hardware]\ncpus = 1\npriority = \"system-node-critical\"\n")
	for pattern, allowed := range map[string]bool{"*": false, "system-*": false, "system-node-critical": true} {
		p := parser.Parser{Allow: descriptors.Allowlists{"*": {Priorities: []string{pattern}}}}
		if got := faultsOf(p, text); (len(got) == 0) != allowed {
			t.Errorf("%s: %q", pattern, got)
		}
	}
}

func TestPodsHaveOnlyTheRightsOfTheirNamespace(t *testing.T) {
	t.Parallel()
	type lists = descriptors.Allowlists
	text := completeDescriptor("[hardware]\ncpus = 1\n[network]\nmtu = 9000\nrdma = { resource = \"rdma/hca\" }\n[env]\ndocker_image = \"alpine:3\"\nprivileged = true\n")
	refused := func(key, right string) string {
		return fmt.Sprintf(`BAI0162 %s: pods of the namespace "default" may not have the right %s (the platform's settings have to allow it: [executor.pods.allow."default"] rights = [%q])`, key, right, right)
	}
	mtu, rdma, privileged := refused("network.mtu", "mtu"), refused("network.rdma", "rdma"), refused("env.privileged", "privileged")
	for name, tt := range map[string]struct {
		parser parser.Parser
		want   []string
	}{
		"a file alone may want any": {parser.Parser{}, nil},
		"without an entry none":     {parser.Parser{Allow: lists{}}, []string{mtu, rdma, privileged}},
		"those that are listed":     {parser.Parser{Allow: lists{"*": {Rights: []string{"mtu"}}, "default": {Rights: []string{"rdma", "privileged"}}}}, nil},
		"one is not another":        {parser.Parser{Allow: lists{"*": {Rights: []string{"host_network", "rdma"}}}}, []string{mtu, privileged}},
		"another namespace's":       {parser.Parser{Allow: lists{"vision": {Rights: descriptors.Rights()}}}, []string{mtu, rdma, privileged}},
		"its own namespace's":       {parser.Parser{Namespace: "vision", Allow: lists{"vision": {Rights: descriptors.Rights()}}}, nil},
		"it was accepted before":    {parser.Parser{Allow: lists{}, Accepted: true}, nil},
	} {
		if diff := cmp.Diff(tt.want, faultsOf(tt.parser, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	host := completeDescriptor("[network]\nhost_network = true\n")
	if diff := cmp.Diff([]string{refused("network.host_network", "host_network")}, faultsOf(parser.Parser{Allow: lists{"*": {Rights: []string{"mtu", "rdma"}}}}, host)); diff != "" {
		t.Error(diff)
	}
}

func TestOneMachineWarnsOfTheNetworkThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	const mpi = "[hardware]\ncpus = 1\nstrategy = \"mpi\"\n[ml]\nbenchmark_code = \"a\"\n"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a network of Multus":             {"[network]\nattachment = \"fast\"\n", []string{"BAI0101 network.attachment: warning: the local cluster has no Multus"}},
		"the MTU of the machine":          {"[network]\nmtu = 9000\n", []string{"BAI0101 network.mtu: warning: on the local cluster a run of one pod is in the network of the machine, which keeps its MTU"}},
		"the MTU of pods' own networks":   {mpi + "[network]\nmtu = 9000\n", nil},
		"the network of the machine":      {"[network]\nhost_network = true\n", nil},
		"that of the machine, of several": {mpi + "[network]\nhost_network = true\n", []string{"BAI0101 network.host_network: warning: on the local cluster the pods of a run with several have networks of their own"}},
	} {
		if diff := cmp.Diff(tt.want, faultsOf(parser.Parser{OneMachine: true, Allow: descriptors.Allowlists{}}, completeDescriptor(tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEntriesThatAllowNothingAreFaultsOfTheSettings(t *testing.T) {
	t.Parallel()
	bad := descriptors.Allowlists{"*": {Secrets: []string{"bai-*", "", "A"}, Claims: []string{"a/b"}, Labels: []string{"allow"}, Priorities: []string{"High"}, Queues: []string{"a b"}, Rights: []string{"root"}}}
	err := bad.Check()
	if err == nil {
		t.Fatal("no fault")
	}
	for _, what := range []string{`"bai-*"`, `""`, `"A"`, `"a/b"`, `"allow"`, `"High"`, `"a b"`, `"root"`} {
		if !strings.Contains(err.Error(), what) {
			t.Errorf("nothing about %s: %v", what, err)
		}
	}
	good := descriptors.Allowlists{"default": {Secrets: []string{"*", "a-*.b"}, Claims: []string{"models"}, Labels: []string{"example.org/allow=runs"}}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}
