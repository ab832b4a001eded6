package parser_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// overrides are those that path=value says.
func overrides(set ...string) []parser.Override {
	var all []parser.Override
	for _, s := range set {
		path, value, _ := strings.Cut(s, "=")
		all = append(all, parser.Override{Path: path, Value: value})
	}
	return all
}

const overridden = `# a benchmark
spec_version = "1.0" # of the language

[info]
description = "x"
labels = { team = "a" }

[hardware]
  instance_type = "p3.8xlarge"  # what we have
  strategy = "single_node"

[env]
docker_image = "alpine:3"
vars.A = "1"

[env.secrets]
TOKEN = "s/t"

# latency
[[output.metrics]]
name = "latency" # ü
units = "ms"
pattern = 'l=(\d+)'

[[output.metrics]]
name = "rate"
units = "1/s"
pattern = 'r=(\d+)'
`

func TestAnOverrideIsPutInPlaceAndTheRestIsKept(t *testing.T) {
	tests := map[string]struct {
		set      []string // path=value
		old, new string   // text, and its replacement
	}{
		"a value that is there": {
			[]string{"hardware.instance_type=t3.small"},
			`instance_type = "p3.8xlarge"  # what`, `instance_type = "t3.small"  # what`,
		},
		"a value of another type": {
			[]string{"env.docker_image=4"}, `docker_image = "alpine:3"`, `docker_image = 4`,
		},
		"a number in quotes is a text": {
			[]string{`env.vars.A="4"`}, `vars.A = "1"`, `vars.A = "4"`,
		},
		"a key that is missing": {
			[]string{"hardware.gpus=2"},
			"  strategy = \"single_node\"\n", "  strategy = \"single_node\"\n  gpus = 2\n",
		},
		"a key in a table that is missing": {
			[]string{"limits.deadline=2h"}, "r=(\\d+)'\n", "r=(\\d+)'\n\n[limits]\ndeadline = \"2h\"\n",
		},
		"two keys in a table that is missing": {
			[]string{"limits.deadline=2h", "limits.retries=1"},
			"r=(\\d+)'\n", "r=(\\d+)'\n\n[limits]\ndeadline = \"2h\"\nretries = 1\n",
		},
		"a key in a table in a table that is missing": {
			[]string{"server.env.readiness_probe.path=/ping"},
			"r=(\\d+)'\n", "r=(\\d+)'\n\n[server.env.readiness_probe]\npath = \"/ping\"\n",
		},
		"an element by its number": {
			[]string{"output.metrics.1.units=Hz"}, `"1/s"`, `"Hz"`,
		},
		"an element by its number in brackets": {
			[]string{"output.metrics[0].direction=lower"},
			"l=(\\d+)'\n", "l=(\\d+)'\ndirection = \"lower\"\n",
		},
		"an element to be added": {
			[]string{"output.metrics.2.name=n", `output.metrics.2.units=""`},
			"r=(\\d+)'\n", "r=(\\d+)'\n\n[[output.metrics]]\nname = \"n\"\nunits = \"\"\n",
		},
		"a whole element to be added": {
			[]string{"output.metrics.2={ name = 'n', units = '' }"},
			"r=(\\d+)'\n", "r=(\\d+)'\n\n[[output.metrics]]\nname = 'n'\nunits = ''\n",
		},
		"a whole element": {
			[]string{"output.metrics.1={ name = 'n', units = '' }"},
			"name = \"rate\"\nunits = \"1/s\"\npattern = 'r=(\\d+)'\n", "name = 'n'\nunits = ''\n",
		},
		"an element of a list that is missing": {
			[]string{"data.sources.0.src=s3://b/k", "data.sources.0.path=/d"},
			"r=(\\d+)'\n", "r=(\\d+)'\n\n[data]\nsources = [{ src = \"s3://b/k\", path = \"/d\" }]\n",
		},
		"a number of a list that is missing": {
			[]string{"server.env.ports[0]=80", "server.env.ports.1=81", "server.env.ports.0=82"},
			"r=(\\d+)'\n", "r=(\\d+)'\n\n[server.env]\nports = [82, 81]\n",
		},
		"a key of a table in one line": {
			[]string{"info.labels.team=b", "info.labels.x=c"},
			`{ team = "a" }`, `{ team = "b", x = "c" }`,
		},
		"a key with a dot": {
			[]string{`env.vars."A.B"=x`}, "vars.A = \"1\"\n", "vars.A = \"1\"\nvars.\"A.B\" = \"x\"\n",
		},
		"a key that is a number": {
			[]string{"info.labels.0=x"}, `team = "a" }`, `team = "a", 0 = "x" }`,
		},
		"a whole table in one line": {
			[]string{"info.labels={}"}, `{ team = "a" }`, `{}`,
		},
		"a whole table with a header": {
			[]string{`env.secrets={ A = "a/b" }`},
			"vars.A = \"1\"\n\n[env.secrets]\nTOKEN = \"s/t\"\n", "vars.A = \"1\"\nsecrets = { A = \"a/b\" }\n\n",
		},
		"a whole table of dotted keys": {
			[]string{`env.vars={}`}, "vars.A = \"1\"\n", "vars = {}\n",
		},
		"a text with quotes": {
			[]string{`env.vars.A=say "x"`}, `"1"`, `'say "x"'`,
		},
		"a text with all quotes and lines": {
			[]string{"env.vars.A=it's\n\"x\" \\"}, `"1"`, `"it's\n\"x\" \\"`,
		},
		"the last of two for one key": {
			[]string{"env.vars.A=x", "env.vars.A=y"}, `"1"`, `"y"`,
		},
		"a key before all tables": {
			[]string{`spec_version="0.1.0"`}, `"1.0" # of`, `"0.1.0" # of`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, effective, _ := parser.ParseWith("f.toml", []byte(overridden), overrides(tt.set...))
			if !strings.Contains(overridden, tt.old) {
				t.Fatal("the test's text is not there")
			}
			if diff := cmp.Diff(strings.Replace(overridden, tt.old, tt.new, 1), string(effective)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnOverrideWithoutAValueTakesTheKeyAway(t *testing.T) {
	tests := map[string]struct {
		text string
		set  []string // path=value
		want string
	}{
		"a line with its comment":                  {"[a]\nb = 1 # one\n# two\nc = 2\n", []string{"a.b="}, "[a]\n# two\nc = 2\n"},
		"a value of several lines":                 {"[a]\nb = [\n  1, # one\n]\nc = 2\n", []string{"a.b="}, "[a]\nc = 2\n"},
		"the last line, which has no end":          {"[a]\nc = 2\nb = 1", []string{"a.b="}, "[a]\nc = 2\n"},
		"a dotted key":                             {"a.b = 1\na.c = 2\n", []string{"a.b="}, "a.c = 2\n"},
		"a key with a dot in it":                   {"a.\"b.c\" = 1\nd = 2\n", []string{`a."b.c"=`}, "d = 2\n"},
		"the first key of a table in one line":     {"a = { b = 1, c = 2 }\n", []string{"a.b="}, "a = { c = 2 }\n"},
		"the last key of a table in one line":      {"a = { b = 1, c = 2 }\n", []string{"a.c="}, "a = { b = 1 }\n"},
		"the only key of a table in one line":      {"a = { b = 1 }\n", []string{"a.b="}, "a = {  }\n"},
		"a dotted key of a table in one line":      {"a = { b.c = 1, b.d = 2 }\n", []string{"a.b.c="}, "a = { b.d = 2 }\n"},
		"all dotted keys of a table in one line":   {"a = { b.c = 1, b.d = 2 }\n", []string{"a.b="}, "a = {  }\n"},
		"the last two of a table in one line":      {"a = { z = 0, b.c = 1, b.d = 2 }\n", []string{"a.b="}, "a = { z = 0 }\n"},
		"two dotted keys around another":           {"a = { b.c = 1, z = 0, b.d = 2 }\n", []string{"a.b="}, "a = { z = 0 }\n"},
		"three dotted keys before another":         {"a = { b.c = 1, b.d = 2, b.e = 3, z = 0 }\n", []string{"a.b="}, "a = { z = 0 }\n"},
		"three dotted keys behind another":         {"a = { z = 0, b.c = 1, b.d = 2, b.e = 3 }\n", []string{"a.b="}, "a = { z = 0 }\n"},
		"a table with a header":                    {"[a]\nb = 1\n[a.c]\nd = 1\n[e]\n", []string{"a.c="}, "[a]\nb = 1\n[e]\n"},
		"a table of dotted keys":                   {"a.b = 1\nc = 1\na.d = 2\n", []string{"a="}, "c = 1\n"},
		"a table in one line":                      {"a = { b = 1 }\nc = 1\n", []string{"a="}, "c = 1\n"},
		"a list of tables":                         {"[[a]]\nx = 1\n[a.b]\ny = 1\n[[a]]\n[d]\n", []string{"a="}, "[d]\n"},
		"a key of an element":                      {"[[a]]\nx = 1\ny = 2\n", []string{"a.0.x="}, "[[a]]\ny = 2\n"},
		"lines of another system":                  {"[a]\r\nb = 1\r\nc = 2\r\n", []string{"a.b="}, "[a]\r\nc = 2\r\n"},
		"what is not there":                        {"[a]\nb = 1\n", []string{"a.c=", "d.e=", "a.l.0.x="}, "[a]\nb = 1\n"},
		"what an override before it has put there": {"[a]\nb = 1\n", []string{"a.c=2", "a.c="}, "[a]\nb = 1\n"},
		"what an override behind it puts there":    {"[a]\nb = 1\n", []string{"a.b=", "a.b=2"}, "[a]\nb = 2\n"},
		"an empty text is a value":                 {"[a]\nb = 1\n", []string{`a.b=""`}, "[a]\nb = \"\"\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, got, _ := parser.ParseWith("f.toml", []byte(tt.text), overrides(tt.set...))
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnOverrideGoesToWhereTheTextCanHaveIt(t *testing.T) {
	tests := map[string]struct {
		text, path, value, want string
	}{
		"an empty table in one line":                          {"a = {}", "a.b", "1", "a = { b = 1 }"},
		"a list in one line":                                  {"a = [ 1, 2, ]", "a.2", "3", "a = [ 1, 2, 3, ]"},
		"an empty list":                                       {"a = []", "a.0", "3", "a = [3]"},
		"a list of lists":                                     {"a = [[1], [2, # two\n 3]]", "a.1.1", "x", "a = [[1], [2, # two\n \"x\"]]"},
		"a list over several lines":                           {"a = [\n  1, # one\n  2  # two\n]", "a.2", "3", "a = [\n  1, # one\n  2, 3  # two\n]"},
		"a table that a header implies":                       {"[a.b.c]\nd = 1\n[e]\n", "a.b.x", "1", "[a.b.c]\nd = 1\n\n[a.b]\nx = 1\n[e]\n"},
		"its table":                                           {"[a.b.c]\nd = 1\n[e]\n", "a.x.y", "1", "[a.b.c]\nd = 1\n\n[a.x]\ny = 1\n[e]\n"},
		"a header with nothing below":                         {"[a] # c\n[b]\n", "a.x", "1", "[a] # c\nx = 1\n[b]\n"},
		"no line's end":                                       {"[a]", "a.x", "1", "[a]\nx = 1\n"},
		"lines of another system":                             {"[a]\r\nb = 1\r\n", "a.x", "1", "[a]\r\nb = 1\r\nx = 1\r\n"},
		"no key before the first header":                      {"# c\n\n# d\n[a]\n", "x", "1", "# c\n\nx = 1\n# d\n[a]\n"},
		"a comment and a header":                              {"#:schema x\n[a]\n", "x", "1", "#:schema x\nx = 1\n[a]\n"},
		"a comment":                                           {"# c", "a", "1", "# c\na = 1\n"},
		"an element that is not the last":                     {"[[a]]\n[a.b.c]\n[[a]]\n", "a.0.b.x", "1", "[[a]]\n[a.b.c]\n\n[a.b]\nx = 1\n[[a]]\n"},
		"a table of an element":                               {"[[a]]\nx = 1\n[[a]]\n", "a.0.b.x", "1", "[[a]]\nx = 1\nb.x = 1\n[[a]]\n"},
		"a list in an element":                                {"[[a]]\n[[a.b]]\nc = 1\n[[a]]\n", "a.0.b.1.c", "2", "[[a]]\n[[a.b]]\nc = 1\n\n[[a.b]]\nc = 2\n[[a]]\n"},
		"a list of tables":                                    {"[[a]]\nx = 1\n[a.b]\ny = 1\n# c\n[[a]]\n[d]\n", "a", "[]", "# c\na = []\n[d]\n"},
		"dotted keys in one line":                             {"x = { a.b = 1, a.c = 2, d = 3 }", "x.a", "4", "x = { d = 3, a = 4 }"},
		"dotted keys at the end":                              {"x = { d = 3, a.b = 1 }", "x.a", "4", "x = { d = 3, a = 4 }"},
		"a key beside dotted ones":                            {"x = { a.b.c = 1 }", "x.a.b.d", "4", "x = { a.b.c = 1, a.b.d = 4 }"},
		"dotted keys and their tables":                        {"[x]\na.b = 1\n[x.a.c]\nd = 1\n", "x.a", "4", "[x]\na = 4\n"},
		"a table whose header is the only word of its parent": {"[a.b]\nc = 1\n", "a.b", "4", "[a]\nb = 4\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, got, _ := parser.ParseWith("f.toml", []byte(tt.text), overrides(tt.path+"="+tt.value))
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFaultOfAnOverrideIsInTheOverrideAndOthersAreInTheText(t *testing.T) {
	tests := map[string]struct {
		old, new string // replaced in the text first
		set      []string
		want     []string
	}{
		"a value that is none": {
			set:  []string{"hardware.strategy=singlenode"},
			want: []string{`BAI0013 --set hardware.strategy:1:1: hardware.strategy: "singlenode" is not one of its values (did you mean "single_node"?)`},
		},
		"a key that is none": {
			set:  []string{"hardware.gpu=2"},
			want: []string{`BAI0010 --set hardware.gpu:1:1: hardware.gpu: unknown key (did you mean gpus?)`},
		},
		"a key of an element": {
			set:  []string{"output.metrics.0.unit=s"},
			want: []string{`BAI0010 --set output.metrics.0.unit:1:1: output.metrics[0].unit: unknown key (did you mean units?)`},
		},
		"a table that is none": {
			set:  []string{"hardwar.gpus=2"},
			want: []string{`BAI0010 --set hardwar.gpus:1:1: hardwar: unknown key (did you mean hardware?)`},
		},
		"a place inside the value": {
			set:  []string{`output.metrics.1.pattern=ü(?=x)`},
			want: []string{`BAI0071 --set output.metrics.1.pattern:1:2: output.metrics[1].pattern: (?= is a look-ahead, which Go's regular expressions do not have (match what follows, and put the number into a group called value: (?P<value>…))`},
		},
		"a place inside a value of TOML": {
			set:  []string{`env.vars={ A = "x", B = 2 }`},
			want: []string{`BAI0011 --set env.vars:1:16: env.vars.B: must be a string, not a whole number (write "2")`},
		},
		"a number for a text says how to write it": {
			set:  []string{"env.vars.A=4"},
			want: []string{`BAI0011 --set env.vars.A:1:1: env.vars.A: must be a string, not a whole number (write --set 'env.vars.A="4"')`},
		},
		"a fault of the text behind a longer value on its line": {
			old: `labels = { team = "a" }`, new: `labels = { team = "a", "-x" = "y" }`,
			set:  []string{"info.labels.team=a-much-longer-value", "info.labels.more=x"},
			want: []string{`BAI0021 f.toml:6:24: info.labels.-x: the key "-x" has a character where it may not: "-" (begin and end with a letter or digit; between them also - _ and .)`},
		},
		"a fault of the text below a new line": {
			old: `name = "rate"`, new: `nam = "rate"`,
			set:  []string{"hardware.cpus=2", "hardware.memory=1Gi"},
			want: []string{`BAI0010 f.toml:26:1: output.metrics[1].nam: unknown key (did you mean name?)`},
		},
		"a fault of the text that the override mends": {
			old: `strategy = "single_node"`, new: `strategy = "x"`, set: []string{"hardware.strategy=single_node"},
		},
		"what is missing in a table that it makes": {
			set: []string{"server.env.ports=[80]"},
			want: []string{
				"BAI0012 --set server.env.ports:1:1: server.hardware: is missing (add the table [server.hardware])",
				"BAI0101 --set server.env.ports:1:1: server: warning: strategy single_node does not read it (write strategy = \"inference\" in [hardware], or leave it out)",
				"BAI0012 --set server.env.ports:1:1: server.env.docker_image: is missing (add docker_image = \"python:3.12\")",
				"BAI0012 --set server.env.ports:1:1: server.env.start_command: is missing (add start_command = \"serve\")",
			},
		},
		"a table that is missing": {
			old: "[env]\ndocker_image = \"alpine:3\"\nvars.A = \"1\"\n\n[env.secrets]\nTOKEN = \"s/t\"\n", set: []string{"hardware.cpus=1"},
			want: []string{`BAI0012 f.toml:1:1: env: is missing (add the table [env])`},
		},
		"a key before all others": {
			old: overridden, new: "[info]\ndescription = 1\n", set: []string{"spec=1"},
			want: []string{
				`BAI0012 f.toml:1:1: spec_version: is missing (add spec_version = "1.0")`,
				`BAI0012 f.toml:1:1: hardware: is missing (add the table [hardware])`,
				`BAI0012 f.toml:1:1: env: is missing (add the table [env])`,
				`BAI0011 f.toml:2:15: info.description: must be a string, not a whole number (write "1")`,
				`BAI0010 --set spec:1:1: spec: unknown key (its keys are spec_version, info, hardware, network, env, ml, roles, steps, manifest, data, volumes, output, server, custom_params, limits, schedule, alarms, cost or sweep)`,
			},
		},
		"faults of both": {
			old: `units = "ms"`, new: `units = 1`,
			set: []string{"limits.retries=x", "info.description=4"},
			want: []string{
				`BAI0011 f.toml:22:9: output.metrics[0].units: must be a string, not a whole number (write "1")`,
				`BAI0011 --set limits.retries:1:1: limits.retries: must be a whole number, not a string`,
				`BAI0011 --set info.description:1:1: info.description: must be a string, not a whole number (write --set 'info.description="4"')`,
			},
		},
		"a path that is none": {
			set: []string{"info..x=1", "=1", "a[x]=1", `a."b=1`, "a b.c=1"},
			want: []string{
				`BAI0010 --set a b.c:1:1: "a b": unknown key (its keys are spec_version, info, hardware, network, env, ml, roles, steps, manifest, data, volumes, output, server, custom_params, limits, schedule, alarms, cost or sweep)`,
				`BAI0008 --set info..x:1:1: "info..x" is not the path of a key (write a key here, as in info.labels.team)`,
				`BAI0008 --set :1:1: "" is not the path of a key (write a key here, as in info.labels.team)`,
				`BAI0008 --set a[x]:1:1: "a[x]" is not the path of a key (write the number of an element, from 0, as in output.metrics[0].units)`,
				`BAI0008 --set a."b:1:1: "a.\"b" is not the path of a key (close the quotes)`,
			},
		},
		"a path that leads nowhere": {
			set: []string{"info.description.x=1", "output.metrics.5.name=x", "output.metrics.name=x", "info[0]=x", "output.metrics.0=x", "output.metrics.2=3"},
			want: []string{
				`BAI0008 --set info.description.x:1:1: info.description.x: info.description is no table and has no keys`,
				`BAI0008 --set output.metrics.5.name:1:1: output.metrics.5.name: output.metrics has 2 elements; the next to be added is 2`,
				`BAI0008 --set output.metrics.name:1:1: output.metrics.name: output.metrics is a list; its elements have numbers, from 0`,
				`BAI0008 --set info[0]:1:1: info[0]: info is a table and has no numbers`,
				`BAI0008 --set output.metrics.0:1:1: output.metrics.0: output.metrics has tables as its elements; write one as {key = value}, or name one of its keys`,
				`BAI0008 --set output.metrics.2:1:1: output.metrics.2: output.metrics has tables as its elements; write one as {key = value}, or name one of its keys`,
			},
		},
		"a key that must be there is taken away": {
			set:  []string{"env.docker_image="},
			want: []string{`BAI0012 f.toml:12:2: env.docker_image: is missing (add docker_image = "python:3.12")`},
		},
		"an element is taken away": {
			set: []string{"output.metrics.0=", "info.description.x="},
			want: []string{
				`BAI0008 --set output.metrics.0:1:1: output.metrics.0: output.metrics is a list, and no element is taken out of it; write the list without it`,
				`BAI0008 --set info.description.x:1:1: info.description.x: info.description is no table and has no keys`,
			},
		},
		"what is no text": {
			set: []string{"info.description=\xff", "info.labels.\x00=1", "ml.args=\x00"},
			want: []string{
				`BAI0014 --set ml.args:1:1: ml.args: holds a NUL character (leave it out)`,
				"BAI0006 --set info.description:1:1: info.description: the override is not UTF-8 (write it as UTF-8)",
				"BAI0008 --set info.labels.\x00:1:1: info.labels.\x00: the path holds a NUL character (leave it out)",
			},
		},
		"a text that is no TOML": {
			old: `units = "ms"`, new: `units = ms`,
			set: []string{"limits.retries=x", "hardware.gpu=1", "hardware.strategy=inference", "info..=1"},
			want: []string{
				`BAI0001 f.toml:22:9: this is no value: "ms" (put text into quotes)`,
				`BAI0011 --set limits.retries:1:1: limits.retries: must be a whole number, not a string`,
				`BAI0010 --set hardware.gpu:1:1: hardware.gpu: unknown key (did you mean gpus?)`,
				`BAI0008 --set info..:1:1: "info.." is not the path of a key (write a key here, as in info.labels.team)`,
			},
		},
		"nested without end": {
			set: []string{"custom_params.hyper_params.x=" + strings.Repeat("[", 60) + strings.Repeat("]", 60), "custom_params.hyper_params.x" + strings.Repeat("[0]", 61) + "=" + strings.Repeat("[", 60) + strings.Repeat("]", 60), "a" + strings.Repeat(".a", 30) + "=1"},
			want: []string{
				`BAI0101 --set custom_params.hyper_params.x:1:1: custom_params: warning: is kept, but only an engine of kind exec reads it`,
				`BAI0007 --set custom_params.hyper_params.x` + strings.Repeat("[0]", 61) + `:1:1: custom_params.hyper_params.x` + strings.Repeat("[0]", 61) + `: a path of 64 parts`,
				`BAI0007 --set a` + strings.Repeat(".a", 30) + `:1:1: a` + strings.Repeat(".a", 30) + `: a path of 31 parts`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, faults := parser.ParseWith("f.toml", []byte(strings.Replace(overridden, tt.old, tt.new, 1)), overrides(tt.set...))
			var got []string
			for _, f := range faults {
				got = append(got, f.Code+" "+f.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithoutOverridesTheTextIsWhatIsRun(t *testing.T) {
	for _, text := range []string{overridden, "a = b", "", "\xff"} {
		d, effective, faults := parser.ParseWith("f.toml", []byte(text), nil)
		alone, found := parser.Parse("f.toml", []byte(text))
		if diff := cmp.Diff([]any{alone, text, found}, []any{d, string(effective), faults}); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTheLimitOfSizeHoldsForTheTextWithItsOverrides(t *testing.T) {
	full := append([]byte(overridden), bytes.Repeat([]byte("#"), parser.MaxSize-len(overridden)-20)...)
	tests := map[string]struct {
		text []byte
		set  []parser.Override
		want []string
	}{
		"just not too large": {full, overrides("ml.args=x"), nil},
		"too large": {
			full, overrides("ml.args=x", "info.description="+strings.Repeat("x", 40), "ml.framework=jax"),
			[]string{"BAI0004 --set info.description:1:1"},
		},
		"a large value": {
			[]byte(overridden), overrides("info.description=" + strings.Repeat("x", parser.MaxSize)), []string{"BAI0004 --set info.description:1:1"},
		},
		"too many": {
			[]byte(overridden), slices.Repeat(overrides("ml.args=x"), parser.MaxOverrides+1), []string{"BAI0008 --set ml.args:1:1"},
		},
		"as many as there may be": {
			[]byte(overridden), slices.Repeat(overrides("ml.args=x"), parser.MaxOverrides), nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, effective, faults := parser.ParseWith("f.toml", tt.text, tt.set)
			var got []string
			for _, f := range faults {
				got = append(got, fmt.Sprintf("%s %s:%d:%d", f.Code, f.File, f.Line, f.Column))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if (d == nil) != (effective == nil) {
				t.Errorf("descriptor %v, text of %d bytes", d, len(effective))
			}
		})
	}
}
