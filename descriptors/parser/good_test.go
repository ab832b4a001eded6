package parser_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// Refused descriptors lie in testdata/bad; these are valid ones close to them.
func TestWhatIsGoodIsTaken(t *testing.T) {
	sha := strings.Repeat("0123456789abcdef", 4)
	source := func(s string) string { return `sources = [{ src = "` + s + `", path = "/d" }]` }
	metric := func(s string) string { return "metrics = [{ name = 'x', units = '', pattern = '" + s + "' }]" }
	tests := map[string]struct {
		table string
		keys  []string
	}{
		"images": {"env", []string{
			"docker_image = 'a'", "docker_image = 'alpine:3.20'", "docker_image = 'team/image'", "docker_image = 'localhost:5000/a/b/c:v1.0-rc_2'",
			"docker_image = 'a@sha256:" + sha + "'", "docker_image = 'a:1@sha256:" + sha + "'", "docker_image = 'Registry.example.org/a'",
			"docker_image = '763104351884.dkr.ecr.us-east-1.amazonaws.com/mxnet-inference:1.4.1-cpu-py36-ubuntu16.04'",
			"docker_image = '[::1]:5000/a__b/c--d'",
		}},
		"variables and secrets": {"env", []string{
			"vars = { A = '', a_b = 'x', 'a.b-c' = 'y', _1 = '' }", "secrets = { A = 'name/key', B = 'my.secret-2/.dockerconfigjson' }",
			"image_pull_secret = 'my.registry-2'",
		}},
		"sources": {"data", []string{
			source("s3://bucket/a/b c.tar"), source("s3://bucket"), source("gs://b/k"), source("azblob://c/k"), source("HTTPS://example.org/a"),
			source("http://10.0.0.1:8080/a?b=c&d=%20#e"), source("http://[::1]:80/a"), source("file:///home/me/a b"), "sources = []",
		}},
		"paths": {"data", []string{
			"sources = [{ src = 's3://b/1', path = '/a/b' }, { src = 's3://b/2', path = '/a/bc' }, { src = 's3://b/3', path = '/devices' }]",
			"sources = [{ src = 's3://b/1', path = '/tmp/a..b' }, { src = 's3://b/1', path = '/home/ü' }]",
		}},
		"data of roles": {"hardware", []string{
			"[data]\nsources = [{ src = 's3://b/1', path = '/a', role = 'benchmark' }, { src = 's3://b/2', path = '/b' }]",
			"strategy = 'mpi'\n[data]\nsources = [{ src = 's3://b/1', path = '/a', role = 'worker' }, { src = 's3://b/2', path = '/a', role = 'launcher' }, { src = 's3://b/3', path = '/b/c' }, { src = 's3://b/4', path = '/b', role = 'launcher' }]",
			"strategy = 'mpi'\n[data]\nsources = [{ src = 's3://b/1', path = '/a', role = 'launcher' }]\n[[volumes]]\npath = '/a'\nrole = 'worker'\nclaim = 'c'",
		}},
		"what is kept": {"limits", []string{
			"keep = 'failed'", "keep = '2d'", "keep = 'never'",
		}},
		"what is kept of several roles": {"hardware", []string{"strategy = 'mpi'\n[limits]\nkeep = 'never'", "strategy = 'mpi'\n[limits]\nkeep = 'failed'", "strategy = 'mpi'\n[limits]\nkeep = '2d'"}},
		"patterns": {"output", []string{
			metric("."), metric(`(?i)x=(\d+)`), metric(`(?P<value>[-+]?\d*\.?\d+([eE][-+]?\d+)?)`), metric(`(?<value>\d+) (?<unit>ms|s)`),
			metric(`response_time:([-+]?\d*\.\d+|\d+)`), metric(`x{1000}`), metric(`\p{Greek}+`), metric(`^\s*$`),
		}},
		"schedules": {"info", []string{
			"scheduling = '0 0 * * *'", "scheduling = '@hourly'", "scheduling = '0-5 1/2 * * *'", "scheduling = '1,2 * * JAN SUN'",
			"scheduling = '@daily'\ntimezone = 'America/Indiana/Knox'", "scheduling = '0 0 29 2 *'\ntimezone = 'UTC'",
		}},
		"labels": {"info", []string{
			"labels = { a = '', 'A.b_c-1' = '1', runner = 'x', bait = 'x', settings = 'x' }", "labels." + strings.Repeat("k", 63) + " = '" + strings.Repeat("v", 63) + "'",
			"task_name = 'a'\nlabels = { task_name = 'a' }", "task_name = ''", "execution_engine = 'local'",
		}},
		"networks": {"network", []string{
			"host_network = true\nrdma = { resource = 'rdma/hca_shared_devices_a' }", "attachment = 'fast'\nmtu = 576", "attachment = 'kube-system/a.b'\nmtu = 65535",
		}},
		"networks of MPI": {"hardware", []string{
			"strategy = 'horovod'\n[network]\ntransport = 'rdma'\nrdma = { resource = 'rdma/hca', count = 2 }\nssh_port = 1024",
		}},
		"resources": {"hardware", []string{
			"limits = { 'intel.com/sriov' = '2', cpu = 0.5 }", "requests = { cpu = '500m', memory = '1GiB' }\nlimits = { cpu = 1, memory = 1_073_741_824 }", "requests = { ephemeral-storage = '1G' }",
			"memory = '1GiB'\nlimits = { hugepages-2Mi = '4MiB', hugepages-1Gi = 0 }\nrequests = { hugepages-2Mi = '4096Ki' }", "gpus = 0\nlimits = { 'amd.com/gpu' = 0x1 }",
			"limits = { 'nvidia.com/gpu' = 1 }",
		}},
		"machines": {"hardware", []string{
			"gpus = 0", "cpus = 1", "cpus = '250m'", "memory = '1.5GiB'", "node_selector = { 'a.b/c' = 'd', e = '' }", "gpu_resource = 'amd.com/gpu'",
			"tolerations = []", "tolerations = [{ operator = 'Exists' }]", "tolerations = [{ key = 'a', effect = 'NoExecute', toleration_seconds = 0 }]",
			"strategy = 'mpi'\ndistributed = { num_instances = 1000, processes_per_instance = '16' }",
		}},
		"commands": {"ml", []string{
			"benchmark_code = '''sh -c 'make && ./run $HOME' '''", "benchmark_code = '$(BAI_SCRIPTS_PATH)/run.sh'", "args = '''-a \"b c\" \\' '''",
			"benchmark_code = '''\n#!/bin/bash\necho \"it's\n'''", "framework = ''\nframework_version = ''", "benchmark_code = '''\na \\\n b\n'''",
		}},
		"limits": {"limits", []string{
			"deadline = '1s'", "deadline = '365d'", "deadline = '1d2h3m4s'", "retries = 10", "max_log_size = 0", "max_log_size = '1.5 GB'",
		}},
		"versions": {"", []string{"spec_version = '0.1'", "spec_version = '0.1.0'", "spec_version = '1.0.3'"}},
	}
	for name, tt := range tests {
		for _, keys := range tt.keys {
			t.Run(name+"/"+keys, func(t *testing.T) {
				if _, faults := parser.Parse("f.toml", []byte(with(tt.table, keys))); len(faults) > 0 {
					t.Error(faults)
				}
			})
		}
	}
}

// with is the minimal descriptor with keys in table, in place of its own where
// both have one.
func with(table, keys string) string {
	switch {
	case table == "":
		return strings.Replace(minimal(nil), `spec_version = "0.1.0"`, keys, 1)
	case strings.HasPrefix(keys, "docker_image"):
		return strings.Replace(minimal(nil), `docker_image = "alpine:3"`, keys, 1)
	}
	return minimal(map[string]string{table: keys})
}

func TestTheLabelsOfThePlatformAreReserved(t *testing.T) {
	for key, want := range map[string]bool{"run": true, "Run": true, "bai": true, "bai.x": true, "bait": false, "task_name": false} {
		if got := descriptors.ReservedLabel(key); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}
