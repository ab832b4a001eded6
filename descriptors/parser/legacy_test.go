package parser_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// The descriptors of the system whose place this one takes have the verdicts
// that they had there, but for one: a metric may be one that the benchmark emits, which has no pattern.
func TestTheOriginalDescriptorsHaveTheirVerdicts(t *testing.T) {
	want := map[string][]string{ // the paths of the errors; none where it is valid
		"minimal_descriptor.toml":                                 nil,
		"cs_minimal_descriptor.toml":                              nil,
		"cs_with_optionals_descriptor.toml":                       nil,
		"cs_minimal_with_models_descriptor.toml":                  nil,
		"cs_customparameter_descriptor.toml":                      nil,
		"missing_keys_descriptor.toml":                            {"env.docker_image", "data.id", "data.sources[0].uri", "output.metrics[0].units"},
		"missing_section_descriptor.toml":                         {"output.metrics[0].units"},
		"cs_missing_server_section_descriptor.toml":               {"hardware.strategy"},
		"cs_missing_hardware_descriptor.toml":                     {"server.hardware"},
		"cs_missing_docker_image_descriptor.toml":                 {"server.env.docker_image"},
		"cs_missing_ports_descriptor.toml":                        {"server.env.ports"},
		"cs_missing_start_command_descriptor.toml":                {"server.env.start_command"},
		"cs_missing_server_model_path_descriptor.toml":            {"server.models[1].path"},
		"cs_missing_server_model_src_descriptor.toml":             {"server.models[0].src"},
		"cs_missing_server_output_metrics_descriptor.toml":        {"server.output"},
		"cs_missing_server_output_metric_name_descriptor.toml":    {"server.output.metrics[0].name"},
		"cs_missing_server_output_metric_units_descriptor.toml":   {"server.output.metrics[0].units"},
		"cs_missing_server_output_metric_pattern_descriptor.toml": nil,
		"cs_missing_readiness_probe_path.toml":                    {"server.env.readiness_probe.path"},
	}
	texts := files(t, "testdata/original/*.toml")
	for name, paths := range want {
		t.Run(name, func(t *testing.T) {
			_, faults := parser.Parse(name, texts[filepath.Join("testdata/original", name)])
			var got []string
			for _, f := range faults.Errors() {
				got = append(got, f.Path)
			}
			if diff := cmp.Diff(paths, got); diff != "" {
				t.Errorf("%s%v", diff, faults)
			}
		})
	}
	if len(texts) != len(want) {
		t.Errorf("%d files, %d verdicts", len(texts), len(want))
	}
}

func TestTheOriginalCustomParametersAreReadBack(t *testing.T) {
	const name = "testdata/original/cs_customparameter_descriptor.toml"
	d, faults := parser.Parse(name, files(t, name)[name])
	if d == nil {
		t.Fatal(faults.Err())
	}
	want := &descriptors.CustomParams{
		PythonVersion: "py2", SagemakerJobName: "testJob", Merge: true, Dashboard: "test_dashboard", Region: "us-east-1",
		HyperParams: map[string]any{"amp": true, "validation_frequency": int64(10)},
	}
	if diff := cmp.Diff(want, d.CustomParams); diff != "" {
		t.Error(diff)
	}
	if d.Hardware.Distributed.NumInstances != 4 {
		t.Errorf("%d instances", d.Hardware.Distributed.NumInstances)
	}
}

// minimal is a descriptor with one addition: tables, and keys for the tables that exist.
// With strategy mpi it has the command that this needs.
func minimal(added map[string]string) string {
	tables := map[string]string{
		"info": `description = "x"`, "hardware": `instance_type = "t3.small"`, "env": `docker_image = "alpine:3"`,
	}
	if h := added["hardware"]; strings.Contains(h, "mpi") || strings.Contains(h, "horovod") {
		tables["ml"] = `benchmark_code = "train"`
	}
	text := "spec_version = \"0.1.0\"\n"
	var names []string
	for name := range tables {
		names = append(names, name)
	}
	for name := range added {
		if _, ok := tables[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		keys := tables[name]
		if more, ok := added[name]; ok {
			if strings.HasPrefix(more, "instance_type") || strings.HasPrefix(more, "benchmark_code") {
				keys = ""
			}
			keys += "\n" + more
		}
		text += "[" + name + "]\n" + keys + "\n"
	}
	return text
}

// The cases that the original's tests make in memory.
func TestTheOriginalCasesHaveTheirVerdicts(t *testing.T) {
	long := strings.Repeat("a", 66)
	tests := map[string]struct {
		added map[string]string
		want  string // the code of the only error; "" where it is valid
	}{
		"four fields of a schedule":          {map[string]string{"info": `scheduling = "0 0 0 0"`}, "BAI0024"},
		"a question mark in a schedule":      {map[string]string{"info": `scheduling = "* * ? * *"`}, "BAI0024"},
		"a word for a schedule":              {map[string]string{"info": `scheduling = "single"`}, "BAI0024"},
		"a schedule":                         {map[string]string{"info": `scheduling = "0 0 * * *"`}, ""},
		"a run that is not scheduled":        {map[string]string{"info": `scheduling = "single_run"`}, ""},
		"a label that begins with a hyphen":  {map[string]string{"info": `labels = { "-invalid" = "x" }`}, "BAI0021"},
		"a label that ends in an underscore": {map[string]string{"info": `labels = { "invalid_" = "x" }`}, "BAI0021"},
		"a value that begins with one":       {map[string]string{"info": `labels = { x = "_invalid" }`}, "BAI0021"},
		"an empty label":                     {map[string]string{"info": `labels = { "" = "x" }`}, "BAI0021"},
		"a label of 66 characters":           {map[string]string{"info": `labels = { ` + long + ` = "x" }`}, "BAI0021"},
		"a value of 66 characters":           {map[string]string{"info": `labels = { x = "` + long + `" }`}, "BAI0021"},
		"an empty value":                     {map[string]string{"info": `labels = { x = "" }`}, ""},
		"arguments that are a number":        {map[string]string{"ml": `args = 4`}, "BAI0011"},
		"a framework":                        {map[string]string{"ml": `framework = "mxnet"`}, ""},
		"a framework that it did not know":   {map[string]string{"ml": `framework = "PaddlePaddle 2"`}, ""},
		"no framework":                       {map[string]string{"ml": `framework = ""`}, ""},
		"a version with a framework":         {map[string]string{"ml": "framework = 'mxnet'\nframework_version = '1'"}, ""},
		"a version without a framework":      {map[string]string{"ml": "framework_version = '1'"}, "BAI0052"},
		"an empty script":                    {map[string]string{"ml.script": `script = ""`}, "BAI0053"},
		"a script that is no archive":        {map[string]string{"ml.script": `script = "_invalid"`}, "BAI0053"},
		"a script":                           {map[string]string{"ml.script": `script = "code.tar"`}, ""},
		"an unknown strategy":                {map[string]string{"hardware": `strategy = "foo"`}, "BAI0013"},
		"horovod":                            {map[string]string{"hardware": `strategy = "horovod"`}, ""},
		"horovod with arguments alone":       {map[string]string{"hardware": `strategy = "horovod"`, "ml": `benchmark_code = ""`}, "BAI0054"},
		"client_server":                      {map[string]string{"hardware": `strategy = "client_server"`}, "BAI0080"},
		"processes on GPUs that are not there": {
			map[string]string{"hardware": "instance_type = 't2.small'\nstrategy = 'horovod'\ndistributed.processes_per_instance = 'gpus'"}, "BAI0032",
		},
		"processes on GPUs": {
			map[string]string{"hardware": "instance_type = 'p3.8xlarge'\nstrategy = 'horovod'\ndistributed.processes_per_instance = 'gpus'"}, "",
		},
		"one instance of a strategy that has several": {map[string]string{"hardware": "strategy = 'horovod'\ndistributed.num_instances = 1"}, "BAI0033"},
		"one instance of a strategy that has one":     {map[string]string{"hardware": "distributed.num_instances = 1"}, ""},
		"no number of processes where it is not read": {map[string]string{"hardware": "distributed.processes_per_instance = 'abc'"}, ""},
		"a bool for a port": {map[string]string{
			"hardware": "strategy = 'inference'", "server.hardware": "instance_type = 't3.small'",
			"server.env": "docker_image = 'a'\nports = [true]\nstart_command = ''",
		}, "BAI0011"},
		"metrics that are texts":      {map[string]string{"output": `metrics = ["a"]`}, "BAI0011"},
		"an empty list of metrics":    {map[string]string{"output": `metrics = []`}, ""},
		"no md5":                      {map[string]string{"data": `sources = [{ src = "s3://b/k", path = "/d", md5 = "" }]`}, "BAI0067"},
		"a task's name":               {map[string]string{"info": `task_name = "t"`}, ""},
		"another engine":              {map[string]string{"info": `execution_engine = "aws.sagemaker"`}, ""},
		"a type that nobody knows":    {map[string]string{"hardware": `instance_type = "zzz"`}, ""},
		"an engine's type":            {map[string]string{"hardware": `instance_type = "ml.p3.2xlarge"`}, ""},
		"a variable that is a number": {map[string]string{"env": `vars = { A = 1 }`}, "BAI0011"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := parser.Parse("f.toml", []byte(minimal(tt.added)))
			var codes []string
			for _, f := range faults.Errors() {
				codes = append(codes, f.Code)
			}
			if got := strings.Join(codes, " "); got != tt.want {
				t.Errorf("want %q, got %v", tt.want, faults)
			}
		})
	}
}
