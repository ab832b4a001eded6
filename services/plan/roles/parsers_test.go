package roles_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/roles"
)

func TestAParserOfKindCommandIsAProgramOrAScript(t *testing.T) {
	t.Parallel()
	d, faults := parser.Parse("f.toml", []byte(`spec_version = "0.1.0"
[info]
description = "d"
[hardware]
cpus = "1"
strategy = "single_node"
[env]
docker_image = "debian:12"
[ml]
benchmark_code = "true"
[[output.parsers]]
kind = "iperf3"
[[output.parsers]]
kind = "command"
command = "python3 ${BAI_SCRIPTS_PATH}/p.py 'a b' $(HOME)"
deadline = "2m"
memory = "64MiB"
[[output.parsers]]
kind = "command"
required = false
command = '''
#!/bin/sh -eu
cat
'''
`))
	if d == nil {
		t.Fatal(faults)
	}
	all, err := roles.Of(roles.Input{Descriptor: d})
	if err != nil {
		t.Fatal(err)
	}
	want := []pod.Parser{
		{Kind: "iperf3"},
		{Kind: "command", Command: []string{"python3", "$(BAI_SCRIPTS_PATH)/p.py", "a b", "$(HOME)"}, Deadline: 2 * time.Minute, Memory: 64 << 20},
		{Kind: "command", Command: []string{"/bin/sh", "-eu", "/bai/script/parser-2"}, Deadline: time.Minute, Memory: 1 << 30, Optional: true},
	}
	if diff := cmp.Diff(want, all[0].Parsers) + cmp.Diff(map[string]string{"parser-2": "#!/bin/sh -eu\ncat\n"}, all[0].Scripts()); diff != "" {
		t.Error(diff)
	}
}
