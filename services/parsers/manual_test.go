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
* A benchmark that ends with exit code 0 and leaves no result has failed: class user, reason ` + "`NoResults`" + `, with the reason of the parser and the first lines that
  it read, and the container ends with exit code 65. So has one whose tool says that it failed, whatever its exit code was. With ` + "`required = false`" + ` a status of the run
  says it, and the run succeeds.
* If a part of the results is missing, the run succeeds, keeps the part, and a status says what is missing. A benchmark that fails keeps what it printed before.
* The version of the tool, as it prints it, is kept with the run (` + "`baictl get RUN -o json`" + `, ` + "`environment.tools`" + `).
* A parser of a document, such as JSON, reads standard output alone unless ` + "`stream`" + ` says otherwise; one of a log reads whole lines of both streams.
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
