// Package tools_test writes the page about the suites of tools, and the tables of parameters in
// their READMEs, from the descriptors and the tables of the parsers.
package tools_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/values"
	"github.com/benchmark-ai/bai/services/parsers"
)

// Paths from the folder of this package.
const (
	suites = "../../../sample-benchmarks/suite/"
	page   = "../../../docs/tools.md"
	e2e    = "../e2e/suite_tools_test.go"
	bed    = "../real/suites_test.go"
)

// record is an entry of runs.toml.
type record struct {
	Descriptor, Local, Nodes, Tool, Never string
	Headlines                             []string // empty for all of the parser
	Long                                  bool
}

// records returns the entries of runs.toml.
func records(t *testing.T) []record {
	t.Helper()
	var file struct{ Run []record }
	meta, err := toml.DecodeFile(suites+"runs.toml", &file)
	if err != nil {
		t.Fatal(err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		t.Errorf("runs.toml has unknown keys: %v", unknown)
	}
	return file.Run
}

// parse returns a descriptor of a suite, and its text.
func parse(t *testing.T, name string) (*descriptors.Descriptor, string) {
	t.Helper()
	text, err := os.ReadFile(suites + name) //nolint:gosec // the project's
	if err != nil {
		t.Fatal(err)
	}
	d, faults := parser.Parse(name, text)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return d, string(text)
}

// parameterLine is the line of a parameter: its name, its value, and its meaning.
var parameterLine = regexp.MustCompile(`(?m)^(\w+) = \[(.*?)\] *# (.*)$`)

// parameters returns the table of the parameters of a descriptor, in Markdown.
func parameters(t *testing.T, text string) string {
	t.Helper()
	_, product, _ := strings.Cut(text, "[sweep.product]\n")
	lines := parameterLine.FindAllStringSubmatch(product, -1)
	if len(lines) != strings.Count(product, "\n") {
		t.Errorf("each line of [sweep.product] has one value and a comment:\n%s", product)
	}
	var table strings.Builder
	table.WriteString("| parameter | default | meaning |\n|---|---|---|\n")
	for _, line := range lines {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", line[1], line[2], line[3])
	}
	return table.String()
}

// headlines returns the headline metrics of the parsers of a descriptor, or the metrics that it
// declares itself: those that are named, if any are.
func headlines(d *descriptors.Descriptor, named []string) string {
	var names []string
	for _, m := range d.Output.Metrics {
		if len(named) > 0 && !slices.Contains(named, m.Name) {
			continue
		}
		names = append(names, fmt.Sprintf("`%s` (%s, %s is better)", m.Name, m.Units, m.Direction))
	}
	for _, k := range parsers.Kinds() {
		used := slices.ContainsFunc(d.Output.Parsers, func(p descriptors.Parser) bool { return p.Kind == k.Name })
		for _, m := range k.Metrics {
			if used && m.Headline && m.Name != "*" && (len(named) == 0 || slices.Contains(named, m.Name)) {
				names = append(names, fmt.Sprintf("`%s` (%s, %s is better)", m.Name, m.Unit, m.Direction))
			}
		}
	}
	return strings.Join(names, ", ")
}

// introduction begins the page.
const introduction = `<!-- Generated from sample-benchmarks/suite: change it there, then ` + "`make generate`" + `. -->

# Suites of tools

A suite of [sample-benchmarks/suite](../sample-benchmarks/suite) is a descriptor that runs a benchmark tool and stores the numbers that the tool itself prints.

` + "```" + `
baictl run sample-benchmarks/suite/iperf/descriptor.toml                          with the defaults
baictl run sample-benchmarks/suite/iperf/descriptor.toml --values my.toml         with other values
baictl run sample-benchmarks/suite/iperf/descriptor.toml --values sample-benchmarks/suite/iperf/sweep.toml
` + "```" + `

` + "```toml" + `
# my.toml
streams = 8                            # a parameter
roles.0.ready.port = 5002              # the port of a server, which has no other place
network.mtu = 9000                     # a key of any descriptor
image_prefix = "registry.example.org/bench/suite-"
` + "```" + `

* A parameter is a list of one value in ` + "`[sweep.product]`" + `; further values make a [sweep](sweeps.md). Each suite has an example, ` + "`sweep.toml`" + `.
* Networks, devices and MTU are those of [` + "`[network]`" + `](networks.md): suites of networks and of MPI have ` + "`hardware.apart = \"node\"`" + `, and all have
  ` + "`placement = \"exclusive\"`" + `. ` + "`--set hardware.apart=`" + ` and ` + "`--set hardware.placement=`" + ` take these away. With strategy ` + "`mpi`" + ` the launcher needs a node, too.
* **Images.** ` + "`make images`" + ` makes those of ` + "`deploy/images/suite`" + ` from Debian packages whose versions and digests are locked, without a container engine;
  ` + "`SUITE_PREFIX`" + ` and ` + "`SUITE_TAG`" + ` name them, and [images.toml](../sample-benchmarks/suite/images.toml) has the same two values for runs.
* ` + "`bai standalone`" + ` runs the programs of its machine, on the loopback of that machine: its numbers of networks are those of its memory.
* [Conversion](convert.md) turns the benchmarks of kube-perftest into the same commands: with its options as parameters a suite is what convert writes.

`

// write returns the page.
func write(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString(introduction + "| suite | headline metrics | image | really run | never run |\n|---|---|---|---|---|\n")
	var tables strings.Builder
	for _, r := range records(t) {
		d, source := parse(t, r.Descriptor)
		where := "–"
		if r.Local != "" {
			where = r.Tool + ", in `bai standalone`: " + map[bool]string{true: "long form of the check", false: "each check"}[r.Long]
		}
		if r.Nodes != "" {
			where += "; on two nodes of Kubernetes, in its image: long form"
		}
		folder := filepath.Dir(r.Descriptor)
		fmt.Fprintf(&text, "| [%s](../sample-benchmarks/suite/%s/README.md) | %s | `%s` | %s | %s |\n", title(r.Descriptor), folder, headlines(d, r.Headlines), d.Env.DockerImage, where, r.Never)
		fmt.Fprintf(&tables, "\n## %s\n\n%s. Parser `%s`.\n\n%s", title(r.Descriptor), d.Info.Description, d.Output.Parsers[0].Kind, parameters(t, source))
	}
	return text.String() + tables.String()
}

// title returns the name of a suite: its folder, and its file if the folder has several.
func title(descriptor string) string {
	return strings.TrimSuffix(strings.TrimSuffix(descriptor, ".toml"), "/descriptor")
}

// checkFile compares a file with what it has to be, and writes it where GOLDEN=write.
func checkFile(t *testing.T, file, want string) {
	t.Helper()
	if os.Getenv("GOLDEN") == "write" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // everybody may read what is in a repository
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file) //nolint:gosec // the project's
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is old, which make generate mends: %s", file, diff)
	}
}

func TestThePageOfToolsIsCurrent(t *testing.T) {
	t.Parallel()
	checkFile(t, page, write(t))
}

func TestTheParametersInTheReadmesAreCurrent(t *testing.T) {
	t.Parallel()
	for _, r := range records(t) {
		_, source := parse(t, r.Descriptor)
		file := suites + filepath.Dir(r.Descriptor) + "/README.md"
		text, err := os.ReadFile(file) //nolint:gosec // the project's
		if err != nil {
			t.Fatal(err)
		}
		begin, end := "<!-- parameters of "+filepath.Base(r.Descriptor)+" -->\n", "<!-- end -->\n"
		before, rest, ok := strings.Cut(string(text), begin)
		_, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Errorf("%s has no place for the parameters: write %q and %q", file, begin, end)
			continue
		}
		checkFile(t, file, before+begin+parameters(t, source)+end+after)
	}
}

// find returns the files of a name in the folders of the suites.
func find(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob(suites + "*/" + name)
	inner, innerErr := filepath.Glob(suites + "*/*/" + name)
	if err != nil || innerErr != nil || len(files) < 7 || len(inner) < 1 {
		t.Fatal(files, inner, err, innerErr)
	}
	return append(files, inner...)
}

// readText returns the text of a file of the project.
func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // the project's
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEachSuiteIsInTheTable(t *testing.T) {
	t.Parallel()
	all := records(t)
	for _, file := range find(t, "descriptor.toml") {
		name, err := filepath.Rel(suites, file)
		if err != nil || !slices.ContainsFunc(all, func(r record) bool { return r.Descriptor == name }) {
			t.Errorf("runs.toml has no %s (%v)", name, err)
		}
	}
}

func TestTheTestsInTheTableExist(t *testing.T) {
	t.Parallel()
	local, onBed := readText(t, e2e), readText(t, bed)
	for _, r := range records(t) {
		if r.Local == "" && r.Never == "" {
			t.Errorf("%s was neither run nor never run", r.Descriptor)
		}
		if !strings.Contains(onBed, "func "+r.Nodes) {
			t.Errorf("%s: no test %s", r.Descriptor, r.Nodes)
		}
		_, body, ok := strings.Cut(local, "func "+r.Local+"(t *testing.T) {")
		body, _, _ = strings.Cut(body, "\n}\n")
		if r.Local != "" && (!ok || strings.Contains(body, "requireLong(t)") != r.Long) {
			t.Errorf("%s: no test %s, or it is of another form", r.Descriptor, r.Local)
		}
	}
}

func TestTheExamplesOfSweepsAreValid(t *testing.T) {
	t.Parallel()
	for _, file := range find(t, "sweep.toml") {
		example, err := os.ReadFile(file) //nolint:gosec // the project's
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "descriptor.toml"))
		if err != nil {
			t.Fatal(err)
		}
		given, faults := values.Read(file, example)
		if len(faults) > 0 {
			t.Error(faults)
		}
		d, _, faults := parser.ParseWith(file, text, values.Overrides(given))
		if len(faults) > 0 || d.Sweep == nil {
			t.Errorf("%s: %v", file, faults)
		}
	}
}
