package parsers_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// introduction begins the manual.
const introduction = `# Parsers

A parser reads what a benchmark tool prints, and returns its numbers: with names, in base units, with the direction that is better. ` + "`make generate`" + ` writes
this page from the tables of the parsers.

A descriptor names the parsers of its benchmark:

` + "```toml" + `
[[output.parsers]]
kind = "iperf3"                  # what the benchmark prints

[[output.parsers]]
kind = "json"
path = "/tmp/result.json"        # a file that it leaves
metrics = { rate = "results.rate" }

[[output.metrics]]
name = "bandwidth"               # of iperf3, in a unit of your own
units = "Gbit/s"
` + "```" + `

* Parsers run in the benchmark's container after the benchmark has ended, before its files are kept. They read output as it comes, and files at the end. The metrics
  are stored as those that a program emits.
* A file that was there before the benchmark and has not changed counts as missing, because it may be that of an earlier run: pods of the local cluster share
  the machine's ` + "`/tmp`" + `. If a pattern matches it and one other file, the parser reads the other.
* A benchmark that ends with exit code 0 and leaves no result has failed: class user, reason ` + "`NoResults`" + `, with the reason of the parser and the first lines that
  it read, and the container ends with exit code 65. So has one whose tool says that it failed, whatever its exit code was. With ` + "`required = false`" + ` a status of the run
  says it, and the run succeeds.
* If a part of the results is missing, the run succeeds, keeps the part, and a status says what is missing. A benchmark that fails keeps what it printed before.
* A metric is missing, too, if its name, its unit, or the name or value of one of its labels has more than 256 bytes, or if it has more than 32 labels.
* The version of the tool, as it prints it, is kept with the run (` + "`baictl get RUN -o json`" + `, ` + "`environment.tools`" + `).
* A parser of a document, such as JSON, reads standard output alone unless ` + "`stream`" + ` says otherwise; one of a log reads whole lines of both streams.
  That of fio reads the document from standard output and messages from standard error, which alone says that a server was not reached: a file that
  fio writes with ` + "`--output`" + ` has no such messages.
* The platform has to know the command: if it starts the entrypoint of an image of which no registry tells it, it refuses a descriptor with parsers.

` + "```" + `
baictl parser test result.txt --kind iperf2          the metrics in a file; auto guesses the kind
baictl parser test result.txt --kind auto -o json    the same for programs
` + "```" + `

` + "`-o json`" + ` prints ` + "`" + `{"kind", "state", "reason", "version", "metrics": [{"name", "value", "unit", "direction", "labels", "headline"}]}` + "`" + `. This does not change.

| state | meaning | exit code |
|---|---|---|
| ` + "`ok`" + ` | the tool has succeeded, and its output is complete | 0 |
| ` + "`partial`" + ` | some metrics are there, and ` + "`reason`" + ` says what is missing | 1 |
| ` + "`failed`" + ` | the tool says that it has failed, whatever its own exit code was | 1 |
| ` + "`empty`" + ` | the text has no output of the tool | 1 |

* A headline is a number that people quote, once for each direction of transfer.
* KiB, MiB, GiB and the like are powers of 1024; KB, Kbit, MB, Mbit and the like are powers of 1000, unless the tool means the other: then its section says so.
* If a text has the output of several runs of the tool, the last one counts.

## A parser of your own

Kind ` + "`command`" + ` runs a program of yours, in any language: one that the image has, that you send along, or a script in the descriptor.

` + "```toml" + `
[[output.parsers]]
kind = "command"
command = "python3 ${BAI_SCRIPTS_PATH}/parse.py"     # sent along with submit --script DIR
path = "/tmp/result.txt"                             # without it, what the benchmark prints
deadline = "1m"
memory = "1GiB"
` + "```" + `

The program runs in the benchmark's container once the benchmark has ended, in the same working directory and with the same variables, so it can read files that the
benchmark left. From standard input it reads the output (as ` + "`stream`" + ` says, 256 MiB at most), or the file at ` + "`path`" + `. ` + "`BAI_EXIT_CODE`" + ` is the exit code of the benchmark.
It prints a JSON object a line; [parser-lines.schema.json](parser-lines.schema.json) is the JSON Schema of a line.

` + "```json" + `
{"name": "bandwidth", "value": 72465125000, "unit": "bits/s", "direction": "higher", "labels": {"stream": "sum"}, "headline": true}
{"name": "retransmits", "value": 3}
{"state": "partial", "reason": "no second half", "version": "2.1.9"}
` + "```" + `

* A line is a metric, with the keys that ` + "`parser test -o json`" + ` prints, of which ` + "`name`" + ` and ` + "`value`" + ` are needed; or, at most once, what holds for the output as a whole:
  ` + "`state`" + ` with the ` + "`reason`" + ` if it is not ` + "`ok`" + `, and the ` + "`version`" + ` of the tool. Without a state, metrics are ` + "`ok`" + `, and no metric is ` + "`empty`" + `.
* The states mean what they mean for other parsers: ` + "`failed`" + ` and ` + "`empty`" + ` end the run with reason ` + "`NoResults`" + ` unless ` + "`required = false`" + `; of ` + "`partial`" + ` the metrics are kept.
* A program that takes longer than ` + "`deadline`" + `, prints a line that is none of the schema, a line of more than 64 KiB, more than 10,000 metrics or more than 4 MiB is
  killed. Then, or if it ends with another exit code than 0, none of its metrics is stored, and it counts as ` + "`failed`" + `: the reason has the line, or the end of its standard error.
* Each of its processes may have ` + "`memory`" + ` bytes of data. The program counts against the memory of the benchmark's container, too.
* A signal to end, of a cancel, of ` + "`limits.deadline`" + ` or to a server, leaves it the rest of the grace.

In Python:

` + "```python" + `
import json, re, sys

for line in sys.stdin:
    if m := re.match(r"latency of (\w+): ([0-9.]+) ms", line):
        print(json.dumps({"name": "latency", "value": float(m[2]) / 1000, "unit": "s", "direction": "lower", "labels": {"op": m[1]}, "headline": True}))
` + "```" + `

As a script for a shell:

` + "```toml" + `
[[output.parsers]]
kind = "command"
command = '''
#!/bin/sh -eu
sed -n 's/^requests: \([0-9.]*\)$/{"name": "requests", "value": \1, "direction": "higher"}/p'
'''
` + "```" + `

Try it on a file before you run a benchmark:

` + "```" + `
baictl parser test result.txt --with "python3 parse.py"
` + "```" + `
`

// manual returns the page about all kinds, in Markdown. The kinds are in the order of their names.
func manual() []byte {
	all := parsers.Kinds()
	slices.SortFunc(all, func(a, b report.Kind) int { return strings.Compare(a.Name, b.Name) })
	var page strings.Builder
	page.WriteString(introduction)
	for _, k := range all {
		fmt.Fprintf(&page, "\n## %s\n\nOutput of %s.\n\n| metric | unit | better | headline | labels | meaning |\n|---|---|---|---|---|---|\n", k.Name, k.Tool)
		for _, m := range k.Metrics {
			headline := ""
			if m.Headline {
				headline = "yes"
			}
			fmt.Fprintf(&page, "| %s | %s | %s | %s | %s | %s |\n", named(m.Name), named(m.Unit), m.Direction, headline, strings.Join(m.Labels, ", "), m.Meaning)
		}
	}
	return []byte(page.String())
}

// table returns the kinds, metrics and units that descriptors are checked by: a line a metric, tabs between its columns.
func table() []byte {
	all := parsers.Kinds()
	slices.SortFunc(all, func(a, b report.Kind) int { return strings.Compare(a.Name, b.Name) })
	var lines strings.Builder
	for _, k := range all {
		for _, m := range k.Metrics {
			fmt.Fprintf(&lines, "%s\t%s\t%s\n", k.Name, m.Name, m.Unit)
		}
	}
	return []byte(lines.String())
}

// named returns a name of a definition, for people.
func named(name string) string {
	if name == "*" {
		return "any"
	}
	return "`" + name + "`"
}
