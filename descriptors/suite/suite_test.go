package suite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	"github.com/benchmark-ai/bai/descriptors/sweep"
)

const (
	plain = `spec_version = "1.0"
[info]
description = "one"
[hardware]
cpus = 2
[env]
docker_image = "alpine:3"
[ml]
benchmark_code = "run"
`
	swept = plain + `args = "--size {{size}}"
[sweep]
repetitions = 4
[sweep.product]
size = ["1K", "1M"]
`
	head = "[suite]\nname = \"nightly\"\n"
)

func entry(name, descriptor string, more ...string) string {
	return fmt.Sprintf("[[suite.entries]]\nname = %q\ndescriptor = %q\n%s\n", name, descriptor, strings.Join(more, "\n"))
}

// complete is a suite with the texts of its descriptors.
func complete(t *testing.T, text string) []byte {
	t.Helper()
	all, faults := suite.Embed("suite.toml", []byte(text), []suite.Source{
		{Name: "plain.toml", File: "folder/plain.toml", Text: []byte(plain)}, {Name: "swept.toml", File: "folder/swept.toml", Text: []byte(swept)},
	})
	if all == nil {
		t.Fatal(faults)
	}
	return all
}

func parse(t *testing.T, text string) (*descriptors.Descriptor, *sweep.Plan) {
	t.Helper()
	d, p, faults := suite.Parse(parser.Parser{}, "suite.toml", complete(t, text))
	if p == nil {
		t.Fatal(faults)
	}
	return d, p
}

func TestTheCellsOfASuiteAreThoseOfItsEntries(t *testing.T) {
	_, p := parse(t, head+"repetitions = 3\nwarmup = 1\n"+
		entry("one", "plain.toml", "[suite.entries.values]", "\"hardware.cpus\" = 4")+
		entry("two", "swept.toml")+
		entry("three", "swept.toml", "repetitions = 5", "warmup = 0", "[suite.entries.values]", "size = '8M'"))
	var got []string
	for i := range p.Cells() {
		c := p.Cell(i)
		got = append(got, fmt.Sprintf("%s %d+%d %s %v", c.Name, p.Warmup(i), p.Repetitions(i), p.File(i), c.Parameters[0].Value))
	}
	want := []string{
		"one 1+3 folder/plain.toml one", "two/size=1K 1+4 folder/swept.toml two", "two/size=1M 1+4 folder/swept.toml two",
		"three/size=8M 0+5 folder/swept.toml three",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p.Runs() != 4+5+5+5 || p.Entries() != 3 {
		t.Errorf("%d runs of %d entries", p.Runs(), p.Entries())
	}
	if text := string(p.Descriptor(0)); !strings.Contains(text, "cpus = 4") {
		t.Errorf("the text of an entry:\n%s", text)
	}
	if text := string(p.Descriptor(3)); !strings.Contains(text, "--size 8M") || strings.Contains(text, "[sweep]") {
		t.Errorf("the text of a cell:\n%s", text)
	}
}

// TestCellsHaveStableIDs has the IDs that other programs may have stored.
func TestCellsHaveStableIDs(t *testing.T) {
	_, p := parse(t, head+entry("one", "plain.toml")+entry("two", "swept.toml"))
	_, q := parse(t, head+"repetitions = 9\n"+entry("two", "swept.toml")+entry("zero", "plain.toml")+entry("one", "plain.toml"))
	for i, j := range map[int]int{0: 3, 1: 0, 2: 1} {
		if p.Cell(i).ID != q.Cell(j).ID {
			t.Errorf("cell %d has ID %s, and %s in another suite", i, p.Cell(i).ID, q.Cell(j).ID)
		}
	}
	if diff := cmp.Diff("6163a4e8bb90", p.Cell(0).ID); diff != "" { // printf one/ | sha256sum
		t.Error(diff)
	}
}

func TestTheOrderOfASuiteMeetsAllCellsAlike(t *testing.T) {
	entries := entry("a", "plain.toml", "repetitions = 1", "warmup = 1") + entry("b", "plain.toml", "repetitions = 3") + entry("c", "plain.toml", "repetitions = 2", "warmup = 2")
	for order, want := range map[string]string{
		"sequential":  "a.w1 a.1 b.1 b.2 b.3 c.w1 c.w2 c.1 c.2",
		"interleaved": "a.w1 c.w1 c.w2 a.1 b.1 c.1 b.2 c.2 b.3",
	} {
		_, p := parse(t, head+"order = '"+order+"'\n"+entries)
		var got []string
		for i := range p.Runs() {
			r := p.Run(i)
			if p.Ordinal(r) != i {
				t.Errorf("%s: run %d has ordinal %d", order, i, p.Ordinal(r))
			}
			got = append(got, fmt.Sprintf("%s.%s%d", p.Cell(r.Cell).Name, map[bool]string{true: "w"}[r.Warmup], r.Repetition))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", order, diff)
		}
	}
}

func TestEachRunOfARandomSuiteHasOneOrdinal(t *testing.T) {
	text := head + "order = 'random'\nseed = 7\n"
	for i := range 20 {
		text += entry(fmt.Sprintf("e%d", i), []string{"plain.toml", "swept.toml"}[i%2], fmt.Sprintf("repetitions = %d\nwarmup = %d", 1+i*7%5, i%3))
	}
	_, p := parse(t, text)
	seen := make(map[sweep.Run]bool)
	for i := range p.Runs() {
		r := p.Run(i)
		if seen[r] || p.Ordinal(r) != i || r.Repetition < 1 || r.Warmup && r.Repetition > p.Warmup(r.Cell) || !r.Warmup && r.Repetition > p.Repetitions(r.Cell) {
			t.Errorf("run %d is %+v, which has ordinal %d", i, r, p.Ordinal(r))
		}
		seen[r] = true
	}
}

func TestASuiteIsADescriptorWithASchedule(t *testing.T) {
	d, _ := parse(t, head+"description = 'all'\nscheduling = '0 3 * * *'\ntimezone = 'Europe/Berlin'\nmax_parallel = 2\non_failure = 'stop'\n"+
		"[suite.schedule]\nconcurrency = 'forbid'\n[suite.labels]\nteam = 'a'\n"+entry("one", "plain.toml"))
	if !d.Info.Scheduled() || d.Info.Timezone != "Europe/Berlin" || d.Schedule.Concurrency != "forbid" || d.Info.Description != "all" {
		t.Errorf("%+v %+v", d.Info, d.Schedule)
	}
	if diff := cmp.Diff(map[string]string{"suite": "nightly", "team": "a"}, d.Info.Labels); diff != "" {
		t.Error(diff)
	}
	if d.Sweep.MaxParallel != 2 || d.Sweep.OnFailure != "stop" {
		t.Errorf("%+v", d.Sweep)
	}
}

func TestBadSuites(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"no name and no entries": {"[suite]\n", []string{"BAI0012 suite.toml:1:2: suite.name: ", "BAI0012 suite.toml:1:2: suite.entries: "}},
		"a key that there is not": {
			head + "repetition = 3\n" + entry("one", "plain.toml"), []string{"BAI0010 suite.toml:3:1: suite.repetition: "},
		},
		"an empty list of entries":       {head + "entries = []\n", []string{"BAI0098 suite.toml:3:11: suite.entries: "}},
		"an entry without a descriptor":  {head + "[[suite.entries]]\nname = 'a'\n", []string{"BAI0012 suite.toml:3:9: suite.entries[0]"}},
		"two entries with one name":      {head + entry("a", "plain.toml") + entry("a", "swept.toml"), []string{"BAI0150 suite.toml:8:8: suite.entries[1].name: "}},
		"a name that is none":            {head + entry("a/b", "plain.toml"), []string{"BAI0043 suite.toml:4:8: suite.entries[0].name: "}},
		"a descriptor that nothing has":  {head + entry("a", "none.toml"), []string{"BAI0151 suite.toml:5:14: suite.entries[0].descriptor: "}},
		"a value for a key that is none": {head + entry("a", "plain.toml", "[suite.entries.values]", "hardware.speed = 3"), []string{"BAI0010 suite.toml:7:10: hardware.speed: in entry a: "}},
		"a value of the wrong type":      {head + entry("a", "plain.toml", "[suite.entries.values]", "\"hardware.cpus\" = \"many\""), []string{"BAI0016 suite.toml:7:19: hardware.cpus: in entry a: "}},
		"an entry that stops": {
			head + entry("a", "swept.toml", "[suite.entries.values]", "\"sweep.repetitions\" = 1", "\"sweep.stop_when\" = { metric = 'x', half_width = '2%', max = 30 }"),
			[]string{"BAI0100 suite.toml:7:23: sweep.repetitions: in entry a: "},
		},
		"more runs than a set may have": {
			head + "repetitions = 10000\n" + manyEntries(11), []string{"BAI0099 suite.toml:4:9: suite.entries: "},
		},
		"more entries than are taken": {head + manyEntries(1001), []string{"BAI0152 suite.toml:3:9: suite.entries: "}},
		"no TOML":                     {"[suite\n", []string{"BAI0001 suite.toml:1:"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(tt.text)
			if name != "no TOML" {
				text = complete(t, tt.text)
			}
			d, p, faults := suite.Parse(parser.Parser{}, "suite.toml", text)
			if d != nil || p != nil || len(faults) != len(tt.want) {
				t.Fatalf("%v", faults)
			}
			for i, f := range faults {
				if got := f.Code + " " + f.String(); !strings.HasPrefix(got, tt.want[i]) {
					t.Errorf("got %s\nwant %s", got, tt.want[i])
				}
			}
		})
	}
}

func manyEntries(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(entry(fmt.Sprintf("e%d", i), "plain.toml"))
	}
	return all.String()
}

func TestFaultsOfADescriptorAreInItsFileOnce(t *testing.T) {
	text, _ := suite.Embed("suite.toml", []byte(head+entry("a", "bad.toml")+entry("b", "bad.toml")), []suite.Source{
		{Name: "bad.toml", File: "there/bad.toml", Text: []byte(plain + "speed = 3\n")},
	})
	_, _, faults := suite.Parse(parser.Parser{}, "suite.toml", text)
	if len(faults) != 1 || !strings.HasPrefix(faults[0].String(), "there/bad.toml:10:1: ml.speed: ") {
		t.Error(faults)
	}
}

func TestASuiteTakesNoOverrides(t *testing.T) {
	d, text, faults := suite.ParseWith(parser.Parser{}, "suite.toml", complete(t, head+entry("a", "plain.toml")), []parser.Override{{Path: "hardware.cpus", Value: "1"}})
	if d != nil || text != nil || len(faults) != 1 || faults[0].Code != "BAI0008" {
		t.Errorf("%v", faults)
	}
}

func TestWhatIsASuite(t *testing.T) {
	for text, want := range map[string]bool{
		head: true, "\ufeff" + head: true, "[suite]\nname = \n": true, plain: false, "suite": false, "# [suite]\n[info]\n": false,
		"[[suite.entries]]\n": true,
	} {
		if got := suite.Is([]byte(text)); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

func TestASuiteNamesTheDescriptorsThatItLacksOnce(t *testing.T) {
	text := head + entry("a", "x.toml") + entry("b", "y.toml") + entry("c", "x.toml") + "[[suite.descriptors]]\nname = 'y.toml'\ntext = 'x'\n"
	all, faults := suite.References("suite.toml", []byte(text))
	if len(faults) > 0 || len(all) != 1 || all[0].Name != "x.toml" {
		t.Fatalf("%v %v", all, faults)
	}
	want := `suite.toml:5:14: suite.entries[0].descriptor: "x.toml" cannot be read: no such file or directory`
	if diff := cmp.Diff(want, all[0].Fault("cannot be read: no such file or directory").String()); diff != "" {
		t.Error(diff)
	}
	if _, faults := suite.References("suite.toml", []byte("[suite]\n")); len(faults) == 0 {
		t.Error("no faults")
	}
}

func TestASuiteThatIsTooLargeIsRefused(t *testing.T) {
	large := suite.Source{Name: "a", File: "a", Text: []byte(strings.Repeat("# x\n", parser.MaxSize/4))}
	for name, tt := range map[string]struct {
		sources []suite.Source
		want    string
	}{
		"with all texts":  {[]suite.Source{large, large, large}, "suite.toml:1:1: with the texts of its descriptors"},
		"a text of noise": {[]suite.Source{{Name: "b", File: "b", Text: []byte("\x00")}}, "b:1:1: the file holds a NUL byte"},
	} {
		text, faults := suite.Embed("suite.toml", []byte(head), tt.sources)
		if text != nil || len(faults) != 1 || !strings.HasPrefix(faults[0].String(), tt.want) {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

func TestASuiteToWhichNoTextCanBeAddedIsRefused(t *testing.T) {
	const inline = "suite = { name = 'a', entries = [{ name = 'b', descriptor = 'plain.toml' }] }\n"
	source := []suite.Source{{Name: "plain.toml", File: "plain.toml", Text: []byte(plain)}}
	for name, tt := range map[string]struct{ text, want string }{
		"a table on one line": {inline, "suite.toml:1:9: suite: has no header, so that the texts of its descriptors cannot be added to it (write [suite], and its keys on lines below)"},
		"a list of texts": {
			head + "descriptors = [{ name = 'x.toml', text = 'x' }]\n" + entry("one", "plain.toml"),
			"suite.toml:3:15: suite.descriptors: is a list in brackets, to which no text can be added (write [[suite.descriptors]] for each of its tables)",
		},
		"dotted keys":        {"suite.name = 'a'\nsuite.entries = [{ name = 'b', descriptor = 'plain.toml' }]\n", ""},
		"headers":            {head + entry("one", "plain.toml"), ""},
		"a text of its own":  {head + entry("one", "plain.toml") + "[[suite.descriptors]]\nname = 'x.toml'\ntext = 'x'\n", ""},
		"what is TOML never": {"[suite\n", ""},
	} {
		text, faults := suite.Embed("suite.toml", []byte(tt.text), source)
		got := ""
		for _, f := range faults {
			got += f.String()
		}
		if got != tt.want || (text == nil) != (tt.want != "") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if text, faults := suite.Embed("suite.toml", []byte(inline), nil); text == nil {
		t.Errorf("without texts: %v", faults)
	}
}

func TestTheExampleIsASuite(t *testing.T) {
	const file = "../examples/suite/suite.toml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, faults := suite.References(file, text)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var sources []suite.Source
	for _, r := range all {
		path := filepath.Join(filepath.Dir(file), r.Name)
		one, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, suite.Source{Name: r.Name, File: path, Text: one})
	}
	if text, faults = suite.Embed(file, text, sources); len(faults) > 0 {
		t.Fatal(faults)
	}
	d, p, faults := suite.Parse(parser.Parser{}, file, text)
	if len(faults) > 0 || !d.Info.Scheduled() || p.Entries() != 3 {
		t.Fatal(faults)
	}
}

func TestASuiteNotifiesTheReceiversThatThePlatformHas(t *testing.T) {
	text := complete(t, head+"notify = [\"submitter\", \"perf\"]\n"+entry("a", "plain.toml"))
	d, _, faults := suite.Parse(parser.Parser{Receivers: map[string][]string{"perf": nil}}, "suite.toml", text)
	if d == nil || fmt.Sprint(d.Info.Notify) != "[submitter perf]" {
		t.Errorf("%+v, %v", d, faults)
	}
	_, _, faults = suite.Parse(parser.Parser{Receivers: map[string][]string{"perf": {"other"}}}, "suite.toml", text)
	if len(faults.Errors()) != 1 || faults[0].Path != "suite.notify[1]" || faults[0].Code != "BAI0198" {
		t.Errorf("faults are %v", faults)
	}
}
