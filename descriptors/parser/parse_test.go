package parser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// parse gives the descriptor that text is.
func parse(t *testing.T, text string) *descriptors.Descriptor {
	t.Helper()
	d, faults := parser.Parse("f.toml", []byte(text))
	if d == nil {
		t.Fatal(faults.Err())
	}
	return d
}

func TestWhatAFileDoesNotSayHasItsDefault(t *testing.T) {
	want := &descriptors.Descriptor{
		SpecVersion: "0.1.0",
		Info:        descriptors.Info{Description: "x", ExecutionEngine: "default", Scheduling: "single_run", Timezone: "UTC"},
		Hardware: descriptors.Hardware{
			InstanceType: "t3.small", Strategy: descriptors.SingleNode, GPUResource: "nvidia.com/gpu", AvoidControlPlane: true,
			Distributed: descriptors.Distributed{NumInstances: 2, ProcessesPerInstance: descriptors.Processes{Number: 1}},
		},
		Network:  descriptors.Network{SSHPort: 2222},
		Env:      descriptors.Env{DockerImage: "alpine:3", ExtendedShm: true},
		Schedule: descriptors.Schedule{Concurrency: descriptors.Allow, Missed: descriptors.LatestMissed, MissedWindow: time.Hour, History: 20},
		Cost:     descriptors.Cost{Count: descriptors.LastSample},
	}
	if diff := cmp.Diff(want, parse(t, minimal(nil))); diff != "" {
		t.Error(diff)
	}
}

func TestEveryKeyIsReadBack(t *testing.T) {
	const name = "../examples/every-key.toml"
	seconds := func(n int) *int { return &n }
	limit := func(v float64) *float64 { return &v }
	sha := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	want := &descriptors.Descriptor{
		SpecVersion: "1.0",
		Info: descriptors.Info{
			Description: "Every key of the language", TaskName: "every-key", ExecutionEngine: "kubernetes",
			Scheduling: "*/30 6-18 * * 1-5", Timezone: "America/New_York",
			Labels: map[string]string{"task_name": "every-key", "team": ""},
			Notify: []string{"submitter", "perf-team"},
		},
		Hardware: descriptors.Hardware{
			InstanceType: "p3.8xlarge", PricePerHour: "12.24 USD", Strategy: descriptors.Inference, AWSZoneID: "use1-az1", AvailabilityZone: "us-east-1a",
			Distributed: descriptors.Distributed{NumInstances: 4, ProcessesPerInstance: descriptors.Processes{Number: 2}},
			GPUs:        seconds(2), CPUs: "3500m", Memory: "24Gi", GPUResource: "nvidia.com/gpu",
			Requests:     map[string]string{"ephemeral-storage": "5Gi"},
			Limits:       map[string]string{"ephemeral-storage": "10Gi", "vpc.amazonaws.com/efa": "1", "hugepages-2Mi": "256Mi"},
			NodeSelector: map[string]string{"node.kubernetes.io/lifecycle": "spot"},
			Tolerations: []descriptors.Toleration{
				{Key: "dedicated", Operator: "Equal", Value: "benchmarks", Effect: "NoExecute", Seconds: seconds(600)},
			},
			Apart: "node", Together: "zone", Placement: "exclusive", Priority: "nightly", Queue: "benchmarks",
		},
		Network: descriptors.Network{
			Attachment: "kube-system/sriov-fast", MTU: 9000, SSHPort: 2022,
			RDMA: &descriptors.RDMA{Resource: "rdma/hca_shared_devices_a", Count: 2},
		},
		Env: descriptors.Env{
			DockerImage:     "registry.example.org:5000/team/benchmark@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			ExtendedShm:     true,
			Vars:            map[string]string{"OMP_NUM_THREADS": "4", "TARGET": "http://$(INFERENCE_SERVER_HOST)/"},
			VarOrder:        []string{"OMP_NUM_THREADS", "TARGET"},
			Secrets:         map[string]descriptors.SecretRef{"TOKEN": {Name: "registry", Key: "token"}},
			SecretFiles:     map[string]descriptors.SecretRef{"/root/.aws/credentials": {Name: "aws", Key: "credentials"}},
			ImagePullSecret: "registry-login", PullPolicy: descriptors.PullIfNotPresent,
		},
		ML: &descriptors.ML{
			BenchmarkCode: "python3 $(BAI_SCRIPTS_PATH)/bench.py", Args: "--questions 1000",
			Framework: "tensorflow", FrameworkVersion: "2.16", Script: &descriptors.Script{Archive: "bench.tar"},
		},
		Data: descriptors.Data{Sources: []descriptors.Source{{
			Src: "gs://bucket/questions.tar.gz", Path: "/data/questions", ID: "questions",
			MD5: "d41d8cd98f00b204e9800998ecf8427e", SHA256: sha, Unpack: true, ReadOnly: true, Mount: descriptors.MountShared, Role: "client",
		}}},
		Volumes: []descriptors.Volume{
			{Path: "/scratch", Role: "client", Ephemeral: &descriptors.Ephemeral{Size: "20Gi", StorageClass: "fast"}},
			{Path: "/exchange", Template: &descriptors.ClaimTemplate{Size: "1Ti", StorageClass: "nfs", Access: "ReadWriteMany"}},
			{Path: "/mnt/claim", Role: "server", ReadOnly: true, Claim: "models"},
			{Path: "/mnt/nfs", NFS: &descriptors.NFS{Server: "nfs.example.org", Path: "/export/data"}},
		},
		Output: &descriptors.Output{
			Metrics: []descriptors.Metric{{
				Name: "latency", Units: "ms", Pattern: "latency=(?P<value>[0-9.]+)(?P<unit>us|ms|s)", Parser: "lines", Direction: descriptors.Lower,
				BlockLines: 1000, BlockTime: time.Minute,
			}, {
				Name: "loss", Units: "1", Pattern: `(?m)^loss (?P<value>\S+)$`, Parser: "blocks",
				Block: `^epoch (\d+)`, BlockLines: 20, BlockTime: 5 * time.Minute,
			}},
			Parsers: []descriptors.Parser{
				{Kind: "gnu-time", Stream: "stderr", Deadline: time.Minute, Memory: 1 << 30},
				{Kind: "json", Path: "/tmp/result.json", Metrics: map[string]string{"rate": "results.rate"}, Required: true, Role: "benchmark", Deadline: time.Minute, Memory: 1 << 30},
				{Kind: "command", Command: "python3 parse.py", Deadline: 5 * time.Minute, Memory: 2 << 30, Required: true},
			},
			Artifacts: []descriptors.Artifact{{Path: "/tmp/profile", MaxSize: 3 << 29}},
			System:    new(5 * time.Second), OTLP: true,
			Prometheus:         []string{"http://127.0.0.1:9090/metrics", "http://localhost:8000"},
			PrometheusInterval: 2 * time.Second, PrometheusNames: "^train_",
			Destinations: []descriptors.Destination{{
				Name: "warehouse", Rows: descriptors.SampleRows,
				Columns: map[string]string{"run": "run.id", "at": "sample.time", "value": "sample.value"},
			}},
		},
		Server: &descriptors.Server{
			Hardware: descriptors.Hardware{
				InstanceType: "c5.xlarge", PricePerHour: "0.17 USD", AWSZoneID: "use1-az1", AvailabilityZone: "us-east-1a",
				GPUs: seconds(0), CPUs: "4", Memory: "8Gi", GPUResource: "amd.com/gpu",
				Requests: map[string]string{"ephemeral-storage": "1Gi"}, Limits: map[string]string{"intel.com/sriov": "1"},
				NodeSelector: map[string]string{"disk": "ssd"}, AvoidControlPlane: true,
				Tolerations: []descriptors.Toleration{{Key: "dedicated", Operator: "Exists", Effect: "NoExecute", Seconds: seconds(60)}},
			},
			Env: descriptors.ServerEnv{
				Env: descriptors.Env{
					DockerImage: "docker.io/library/nginx@sha256:0b970013351304af46f322da1263516b188318682b2ab1091862497591189ff1", Vars: map[string]string{"WORKERS": "2"}, VarOrder: []string{"WORKERS"},
					Secrets:     map[string]descriptors.SecretRef{"CERT": {Name: "tls", Key: "cert.pem"}},
					SecretFiles: map[string]descriptors.SecretRef{"/etc/nginx/tls.key": {Name: "tls", Key: "key.pem"}}, ImagePullSecret: "registry-login", PullPolicy: descriptors.PullIfNotPresent,
				},
				Ports: []int{80, 8080}, StartCommand: "nginx", StartCommandArgs: "-g 'daemon off;'",
				ReadinessProbe: &descriptors.Probe{
					Path: "/health", Port: seconds(80), Scheme: "http", InitialDelaySeconds: 1, PeriodSeconds: 2,
					TimeoutSeconds: 3, SuccessThreshold: 1, FailureThreshold: 10,
				},
			},
			Models: []descriptors.Source{{
				Src: "azblob://models/one.bin", Path: "/models/one.bin", ID: "one",
				MD5: "d41d8cd98f00b204e9800998ecf8427e", SHA256: sha, Mount: descriptors.MountCopy,
			}},
			Output: &descriptors.Output{
				Metrics: []descriptors.Metric{{
					Name: "requests", Units: "count", Pattern: `requests (\d+)`, Parser: "blocks", Direction: descriptors.Higher,
					Block: "^interval", BlockLines: 1, BlockTime: time.Second,
				}},
				Parsers: []descriptors.Parser{{
					Kind: "command", Command: "/usr/bin/parse-log", Deadline: 30 * time.Second, Memory: 256 << 20, Required: true,
				}, {
					Kind: "csv", Path: "/var/log/rates.csv", Stream: "stdout", Metrics: map[string]string{"rate": "Requests/s"}, Required: true, Role: "server",
					Deadline: time.Minute, Memory: 1 << 30,
				}},
				Artifacts:  []descriptors.Artifact{{Path: "/var/log/nginx", MaxSize: 1 << 20}},
				System:     new(time.Duration(0)),
				Prometheus: []string{"http://127.0.0.1/metrics"}, PrometheusInterval: 10 * time.Second, PrometheusNames: "requests",
				Destinations: []descriptors.Destination{{
					Name: "warehouse", Rows: descriptors.SummaryRows, Columns: map[string]string{"run": "run.id"},
				}},
			},
		},
		CustomParams: &descriptors.CustomParams{
			PythonVersion: "py3", SagemakerJobName: "every-key", Merge: true, Dashboard: "benchmarks", Region: "us-east-1",
			HyperParams: map[string]any{"amp": true, "validation_frequency": int64(10), "rate": 1e-3, "layers": []any{int64(64), int64(32)}},
		},
		Limits: descriptors.Limits{Deadline: 90 * time.Minute, PendingDeadline: 48 * time.Hour, Retries: 1, MaxLogSize: 64 << 20, Keep: descriptors.Keep{Rule: "for", For: 24 * time.Hour}},
		Schedule: descriptors.Schedule{
			Concurrency: descriptors.Forbid, Missed: descriptors.AllMissed, MissedWindow: 6 * time.Hour, Jitter: 5 * time.Minute,
			Suspend: new(false), History: 50, Start: "2026-12-01", End: "2027-12-01T03:00:00Z",
		},
		Cost: descriptors.Cost{Per: []string{"questions"}, Count: descriptors.SumOfSamples},
		Alarms: []descriptors.Alarm{
			{Metric: "latency", When: descriptors.OnRegression, MinChange: 0.02, Statistic: "p95", Notify: []string{"perf-team", "submitter"}, Confirm: &descriptors.Confirm{Pairs: 8, MaxRuns: seconds(20), MaxCost: "20 USD", Deadline: 6 * time.Hour}},
			{Metric: "latency", When: descriptors.OnAbove, Above: limit(0.25), Unit: "s", For: seconds(3), Statistic: descriptors.Median},
			{Metric: "latency", When: descriptors.OnBelow, Below: limit(0.001), Unit: "s", Statistic: descriptors.Median},
			{Metric: "latency", When: descriptors.OnBeyond, Beyond: 0.05, Baseline: "main", Statistic: descriptors.Median},
			{Metric: "latency", When: descriptors.OnMissing, Within: 26 * time.Hour, Statistic: descriptors.Median},
		},
		Sweep: &descriptors.Sweep{
			Repetitions: 5, Warmup: 1, Order: descriptors.Random, Seed: 7, MaxParallel: 4, OnFailure: descriptors.Stop,
			Product:  map[string][]any{"questions": {int64(1000), int64(2000)}, "hardware.gpus": {int64(2), int64(4)}},
			Zip:      map[string][]any{"hardware.cpus": {"3500m", "7"}, "hardware.memory": {"24GiB", "48GiB"}},
			Explicit: []map[string]any{{"questions": int64(10), "limits.retries": int64(0)}},
			Exclude:  []map[string]any{{"questions": int64(2000), "hardware.gpus": int64(2)}},
		},
	}
	if diff := cmp.Diff(want, parse(t, string(files(t, name)[name]))); diff != "" {
		t.Error(diff)
	}
}

func TestOnePartOfAFileSaysAnother(t *testing.T) {
	tests := map[string]struct {
		added map[string]string
		want  any
		got   func(*descriptors.Descriptor) any
	}{
		"a task's name is a label": {
			map[string]string{"info": `task_name = "t"`},
			map[string]string{"task_name": "t"},
			func(d *descriptors.Descriptor) any { return d.Info.Labels },
		},
		"the label is the task's name": {
			map[string]string{"info": `labels = { task_name = "t" }`},
			"t",
			func(d *descriptors.Descriptor) any { return d.Info.TaskName },
		},
		"horovod is mpi": {
			map[string]string{"hardware": `strategy = "horovod"`},
			descriptors.MPI,
			func(d *descriptors.Descriptor) any { return d.Hardware.Strategy },
		},
		"a number of processes may be a text": {
			map[string]string{"hardware": "strategy = 'mpi'\ndistributed.processes_per_instance = '4'"},
			4,
			func(d *descriptors.Descriptor) any { return d.Hardware.Processes() },
		},
		"a number of processes may be a number": {
			map[string]string{"hardware": "strategy = 'mpi'\ndistributed.processes_per_instance = 4"},
			4,
			func(d *descriptors.Descriptor) any { return d.Hardware.Processes() },
		},
		"a process on each GPU of the type": {
			map[string]string{"hardware": "instance_type = 'p3.8xlarge'\nstrategy = 'mpi'\ndistributed.processes_per_instance = 'gpus'"},
			4,
			func(d *descriptors.Descriptor) any { return d.Hardware.Processes() },
		},
		"a process on each GPU that the file says": {
			map[string]string{"hardware": "instance_type = 'x9'\ngpus = 3\nstrategy = 'mpi'\ndistributed.processes_per_instance = 'gpus'"},
			3,
			func(d *descriptors.Descriptor) any { return d.Hardware.Processes() },
		},
		"a process on each GPU of the type where nothing is said": {
			map[string]string{"hardware": "instance_type = 'p3.8xlarge'\nstrategy = 'horovod'"},
			4,
			func(d *descriptors.Descriptor) any { return d.Hardware.Processes() },
		},
		"a process on each GPU that the file says where nothing is said": {
			map[string]string{"hardware": "instance_type = 'x9'\ngpus = 3\nstrategy = 'mpi'"},
			3,
			func(d *descriptors.Descriptor) any { return d.Hardware.Processes() },
		},
		"one process where nothing is said and there are no GPUs": {
			map[string]string{"hardware": "instance_type = 't3.small'\nstrategy = 'mpi'"},
			1,
			func(d *descriptors.Descriptor) any { return d.Hardware.Processes() },
		},
		"one process where nothing is said and nobody knows the type": {
			map[string]string{"hardware": "instance_type = 'x9.huge'\nstrategy = 'mpi'"},
			1,
			func(d *descriptors.Descriptor) any { return d.Hardware.Processes() },
		},
		"the first port is the probe's": {
			map[string]string{
				"hardware": "strategy = 'inference'", "server.hardware": "cpus = 1",
				"server.env": "docker_image = 'a'\nports = [8080, 81]\nstart_command = ''\nreadiness_probe.path = 'ping'",
			},
			"http 8080 /ping",
			func(d *descriptors.Descriptor) any {
				p := d.Server.Env.ReadinessProbe
				return fmt.Sprint(p.Scheme, " ", *p.Port, " ", p.Path)
			},
		},
		"the order of the variables is that of the file": {
			map[string]string{"env": "vars = { Z = '1', A = '$(Z)', M = '' }"},
			[]string{"Z", "A", "M"},
			func(d *descriptors.Descriptor) any { return d.Env.VarOrder },
		},
		"a path is without needless parts": {
			map[string]string{"data": "sources = [{ src = 's3://b/k', path = '/data//a/./b/' }]"},
			"/data/a/b",
			func(d *descriptors.Descriptor) any { return d.Data.Sources[0].Path },
		},
		"a digest is lower case": {
			map[string]string{"data": "sources = [{ src = 's3://b/k', path = '/d', md5 = '" + strings.Repeat("AB", 16) + "' }]"},
			strings.Repeat("ab", 16), func(d *descriptors.Descriptor) any { return d.Data.Sources[0].MD5 },
		},
		"an at sign behind the host is no password": {
			map[string]string{"data": "sources = [{ src = 'https://example.org?user=me@home', path = '/d' }]"},
			1, func(d *descriptors.Descriptor) any { return len(d.Data.Sources) },
		},
		"CPUs may be a decimal number": {
			map[string]string{"hardware": "cpus = 2.5"}, "2.5", func(d *descriptors.Descriptor) any { return d.Hardware.CPUs },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got(parse(t, minimal(tt.added)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGPUsAreThoseThatTheFileSaysElseThoseOfTheType(t *testing.T) {
	two := 2
	tests := map[string]struct {
		hardware descriptors.Hardware
		want     int
		known    bool
	}{
		"the file says it":                {descriptors.Hardware{InstanceType: "p3.8xlarge", GPUs: &two}, 2, true},
		"the type says it":                {descriptors.Hardware{InstanceType: "p3.8xlarge"}, 4, true},
		"the type has none":               {descriptors.Hardware{InstanceType: "t3.small"}, 0, true},
		"the type is one of SageMaker":    {descriptors.Hardware{InstanceType: "ml.p3.2xlarge"}, 1, true},
		"a type since the first system's": {descriptors.Hardware{InstanceType: "p4d.24xlarge"}, 8, true},
		"the type is unknown":             {descriptors.Hardware{InstanceType: "zzz"}, 0, false},
		"there is no type":                {descriptors.Hardware{CPUs: "1"}, 0, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := descriptors.Descriptor{Hardware: tt.hardware}
			if got, known := d.GPUCount(); got != tt.want || known != tt.known {
				t.Errorf("want %d %v, got %d %v", tt.want, tt.known, got, known)
			}
		})
	}
}

func TestAParserKnowsTheInstancesOfItsSettings(t *testing.T) {
	p := parser.Parser{Instances: "# ours\nlab.* 0\nlab.big 6\n\np3.8xlarge 3\n"}
	if err := p.Instances.Check(); err != nil {
		t.Fatal(err)
	}
	for instance, want := range map[string]int{"lab.big": 6, "lab.small": 0, "p3.8xlarge": 3, "p3.2xlarge": 1} {
		text := minimal(map[string]string{"hardware": "instance_type = '" + instance + "'"})
		d, faults := p.Parse("f.toml", []byte(text))
		if len(faults) > 0 {
			t.Errorf("%s: %v", instance, faults)
			continue
		}
		if got, _ := d.GPUCount(); got != want {
			t.Errorf("%s: want %d, got %d", instance, want, got)
		}
	}
	if err := descriptors.Instances("a 1\nb many\n").Check(); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line that says nothing: %v", err)
	}
}

func TestTheCommandIsTheWordsOfCodeAndArguments(t *testing.T) {
	tests := map[string]struct {
		ml         string
		argv, args []string
	}{
		"code and arguments":                        {"benchmark_code = 'cmd'\nargs = 'arg1 arg2'", []string{"cmd", "arg1", "arg2"}, nil},
		"arguments alone are the entrypoint's":      {"args = 'arg1 arg2=abc'", nil, []string{"arg1", "arg2=abc"}},
		"an empty code is none":                     {"benchmark_code = ''\nargs = 'a'", nil, []string{"a"}},
		"nothing is the entrypoint":                 {"", nil, nil},
		"quotes hold blanks":                        {"benchmark_code = '''sh -c 'echo \"$A\"' '''", []string{"sh", "-c", `echo "$A"`}, nil},
		"a command over several lines":              {"benchmark_code = '''\na \\\n  b\n'''", []string{"a", "b"}, nil},
		"a script has an interpreter and arguments": {"benchmark_code = '''\n#!/usr/bin/env -S python3 -u\nprint()\n'''\nargs = 'x y'", []string{"/usr/bin/env", "-S", "python3", "-u"}, []string{"x", "y"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			argv, args, err := parse(t, minimal(map[string]string{"ml": tt.ml})).Command()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.argv, argv); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.args, args); diff != "" {
				t.Error(diff)
			}
		})
	}
	if argv, args, err := (&descriptors.Descriptor{}).Command(); argv != nil || args != nil || err != nil {
		t.Errorf("without ml: %v %v %v", argv, args, err)
	}
	if _, _, err := (&descriptors.Descriptor{ML: &descriptors.ML{Args: "'"}}).Command(); err == nil {
		t.Error("a quote without its partner, in a descriptor that was not parsed")
	}
}

func TestAScriptHasLostItsIndentation(t *testing.T) {
	tests := map[string]struct {
		code              string
		interpreter, text string
		ok                bool
	}{
		"without any":              {"#!/bin/sh -e\necho 1\n", "/bin/sh -e", "#!/bin/sh -e\necho 1\n", true},
		"one that all lines share": {"\n  #!/bin/sh\n  if a; then\n\n    b\n  fi\n  ", "/bin/sh", "#!/bin/sh\nif a; then\n\n  b\nfi\n", true},
		"of tabs":                  {"\t#!/bin/sh\n\techo\n", "/bin/sh", "#!/bin/sh\necho\n", true},
		"lines of another system":  {"#!/bin/sh\r\necho\r\n", "/bin/sh", "#!/bin/sh\necho\n", true},
		"one line":                 {"#!/bin/true", "/bin/true", "#!/bin/true\n", true},
		"no script":                {"python a.py\n", "", "", false},
		"nothing":                  {"", "", "", false},
		"a comment in the middle":  {"echo\n#!/bin/sh\n", "", "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := descriptors.Descriptor{ML: &descriptors.ML{BenchmarkCode: tt.code}}
			interpreter, text, ok := d.Script()
			if diff := cmp.Diff([]any{tt.interpreter, tt.text, tt.ok}, []any{interpreter, text, ok}); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, _, ok := (&descriptors.Descriptor{}).Script(); ok {
		t.Error("a script without ml")
	}
}

func TestAServersCommandIsAsTheBenchmarks(t *testing.T) {
	argv, args, err := descriptors.ServerEnv{StartCommand: "serve -p 80", StartCommandArgs: "'a b'"}.Command()
	if diff := cmp.Diff([]any{[]string{"serve", "-p", "80", "a b"}, []string(nil), nil}, []any{argv, args, err}); diff != "" {
		t.Error(diff)
	}
}

func TestAPatternThatWasTakenCompiles(t *testing.T) {
	d := parse(t, minimal(map[string]string{"output": "metrics = [{ name = 'x', units = 's', pattern = 'x=(?<value>\\d+)' }]"}))
	if got := d.Output.Metrics[0].Regexp().FindStringSubmatch("x=5"); len(got) != 2 || got[1] != "5" {
		t.Errorf("%v", got)
	}
	if re := (descriptors.Metric{Pattern: "("}).Regexp(); re != nil {
		t.Error("compiled what is no pattern")
	}
}

// Each zone that the language takes loads here, and so it does everywhere: the
// database is in the program.
func TestATimeZoneThatWasTakenLoads(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "Asia/Kathmandu"} {
		d := parse(t, minimal(map[string]string{"info": "scheduling = '@daily'\ntimezone = '" + zone + "'"}))
		if _, err := time.LoadLocation(d.Info.Timezone); err != nil {
			t.Error(err)
		}
	}
}

func TestWarningsComeWithTheDescriptor(t *testing.T) {
	d, faults := parser.Parse("f.toml", []byte(minimal(map[string]string{"custom_params": "region = 'x'"})))
	if d == nil || len(faults) != 1 || !faults[0].Warning || faults.Err() != nil {
		t.Errorf("%v, %v", d, faults)
	}
}

func TestNoFaultTellsAPassword(t *testing.T) {
	_, faults := parser.Parse("f.toml", []byte(minimal(map[string]string{
		"env":  "secrets = { TOKEN = 'hunter2', B = 'hunter2/' }",
		"data": "sources = [{ src = 'https://me:hunter2@example.org/a', path = '/d' }, { src = 's3://me:hunter2@b/a', path = '/e' }]",
	})))
	if len(faults) != 4 {
		t.Errorf("%v", faults)
	}
	if strings.Contains(faults.Err().Error(), "hunter2") {
		t.Error(faults.Err())
	}
}

func TestLimitsAreReadWhateverElseIsUnknown(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"[limits]\npending_deadline = \"7s\"\n":                               7 * time.Second,
		"tomorrow = 1\n[limits]\npending_deadline = \"7s\"\nnever_seen = 2\n": 7 * time.Second,
		"[limits]\npending_deadline = 7\n":                                    0,
		"spec_version = ":                                                     0,
		"":                                                                    0,
	} {
		if got := parser.LimitsOf([]byte(text)).PendingDeadline; got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
