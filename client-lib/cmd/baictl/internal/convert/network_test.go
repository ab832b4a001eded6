package convert_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert"
)

// Rules about single options, with the lines that the descriptor has for them.
func TestOptionsOfNetworksHaveTheirKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		spec string
		want []string
		not  string
	}{
		"the network of the node":       {"hostNetwork: true", []string{"[network]", "host_network = true"}, "attachment"},
		"not the network of the node":   {"hostNetwork: false", nil, "host_network"},
		"another network":               {"networkName: a/b", []string{`attachment = "a/b"`}, "host_network"},
		"none beside that of the node":  {"{hostNetwork: true, networkName: a/b, mtu: 9000}", []string{"host_network = true"}, "attachment"},
		"large packets":                 {"mtu: 9000", []string{"mtu = 9000"}, "attachment"},
		"a device of RDMA":              {"resources: {limits: {rdma/a: 2}}", []string{`rdma = { resource = "rdma/a", count = 2 }`}, "[hardware.limits]"},
		"a second device of RDMA":       {"resources: {limits: {rdma/a: 2, rdma/b: 1}}", []string{`rdma = { resource = "rdma/a", count = 2 }`}, "rdma/b"},
		"a function of a network card":  {"resources: {limits: {example.com/vf: 1}}", []string{"[hardware.limits]", `"example.com/vf" = 1`}, "rdma"},
		"memory in large pages":         {"resources: {limits: {cpu: 1, hugepages-2Mi: 4Mi}}", []string{"[hardware.limits]", `hugepages-2Mi = "4Mi"`}, "[hardware.requests]"},
		"a resource that is none":       {"resources: {limits: {disk: 1}}", nil, "[hardware.limits]"},
		"space on the node's disk":      {"resources: {requests: {ephemeral-storage: 5Gi}}", []string{"[hardware.requests]", `ephemeral-storage = "5Gi"`}, "[hardware.limits]"},
		"GPUs of another maker":         {"resources: {limits: {amd.com/gpu: 1}}", []string{"gpus = 1", `gpu_resource = "amd.com/gpu"`}, "[hardware.limits]"},
		"GPUs in limits and requests":   {"resources: {limits: {nvidia.com/gpu: 1}, requests: {nvidia.com/gpu: 1}}", []string{"gpus = 1"}, "[hardware.limits]"},
		"CPUs that are only asked for":  {"resources: {requests: {cpu: 2}}", []string{`cpus = "2"`}, "[hardware.requests]"},
		"a transport that is not given": {"{}", []string{`transport = "tcp"`}, "host_network"},
		"a transport":                   {"transport: RDMA", []string{`transport = "rdma"`, `rdma = { resource = "example.org/replace-this-device", count = 1 }`}, "host_network"},
		"a transport with its device":   {"{transport: RDMA, resources: {limits: {a.b/vf: 2}, requests: {a.b/vf: 2}}}", []string{`rdma = { resource = "a.b/vf", count = 2 }`}, "[hardware.limits]"},
		"a transport with two devices":  {"{transport: RDMA, resources: {limits: {a.b/c: 1, a.b/d: 1}}}", []string{`"a.b/c" = 1`, `rdma = { resource = "example.org/replace-this-device", count = 1 }`}, "host_network"},
		"a port of sshd":                {"sshPort: 2022", []string{"ssh_port = 2022"}, "host_network"},
		"the highest port of sshd":      {"sshPort: 65535", []string{"ssh_port = 65535"}, "host_network"},
		"the standard port of sshd":     {"sshPort: 2222", nil, "ssh_port"},
		"a port that only root has":     {"sshPort: 22", nil, "ssh_port"},
		"a port that is none":           {"sshPort: 65536", nil, "ssh_port"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: perftest.stackhpc.com/v1alpha1\nkind: MPIPingPong\nmetadata: {name: a}\nspec:\n  " + tt.spec + "\n"
			r := convert.Convert(convert.KubePerftest, []byte(text))
			if len(r.Faults) > 0 {
				t.Fatal(r.Faults)
			}
			checkLines(t, r.Files[0].Text, tt.want, tt.not)
		})
	}
}

// checkLines checks that a text has some lines, and nothing of another text.
func checkLines(t *testing.T, text string, want []string, not string) {
	t.Helper()
	for _, line := range want {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, not) {
		t.Errorf("%s in\n%s", not, text)
	}
}
