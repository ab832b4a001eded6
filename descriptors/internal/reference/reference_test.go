package reference_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/reference"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	"github.com/benchmark-ai/bai/descriptors/templates"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWhatIsGeneratedIsCurrent(t *testing.T) {
	schema, err := reference.Schema()
	if err != nil {
		t.Fatal(err)
	}
	everyKey := read(t, "../../examples/every-key.toml")
	for name, want := range map[string][]byte{"../../schema.json": schema, "../../../docs/descriptor.md": reference.Manual(everyKey)} {
		if os.Getenv("GOLDEN") == "write" {
			if err := os.WriteFile(name, want, 0o644); err != nil { //nolint:gosec // everybody may read what is in a repository
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(want), string(read(t, name))); diff != "" {
			t.Errorf("%s is old, which make generate mends: %s", name, diff)
		}
	}
}

func TestTheSchemaInTheProgramIsTheOneInTheRepository(t *testing.T) {
	if diff := cmp.Diff(string(read(t, "../../schema.json")), string(descriptors.Schema())); diff != "" {
		t.Error(diff)
	}
}

func TestTheManualHasEveryKeyWithAnExampleAndEveryCode(t *testing.T) {
	manual := string(reference.Manual(read(t, "../../examples/every-key.toml")))
	for _, key := range parser.Keys() {
		name := key.Path[strings.LastIndexByte(key.Path, '.')+1:]
		row := ""
		for line := range strings.Lines(manual) {
			if strings.HasPrefix(line, "| `"+name+"` | "+key.Type) {
				row = line
			}
		}
		isTable := key.Type == "table" || key.Type == "list of tables"
		if row == "" || !isTable && strings.HasSuffix(row, "|  |\n") {
			t.Errorf("%s: %q", key.Path, row)
		}
	}
	for _, code := range parser.Codes() {
		if !strings.Contains(manual, "### "+code+": ") {
			t.Errorf("%s is not described", code)
		}
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(descriptors.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(reference.ID, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(reference.ID)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// refused says why the schema refuses a text, and "" where it takes it. It is
// false for one that the reader of TOML here cannot read.
func refused(schema *jsonschema.Schema, text []byte) (why string, ok bool) {
	var tree map[string]any
	_, err := toml.Decode(string(text), &tree)
	ok = err == nil
	if err := schema.Validate(asJSON(tree)); ok && err != nil {
		why = err.Error()
	}
	return why, ok
}

// asJSON is a value of TOML as JSON has it.
func asJSON(value any) any {
	switch v := value.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, one := range v {
			all[name] = asJSON(one)
		}
		return all
	case []map[string]any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = asJSON(one)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = asJSON(one)
		}
		return all
	case time.Time:
		return v.Format(time.RFC3339)
	case int64:
		return json.Number(fmt.Sprint(v))
	}
	return value
}

func TestTheSchemaTakesEveryExampleAndEveryTemplate(t *testing.T) {
	schema := compiled(t)
	texts := map[string][]byte{}
	for _, kind := range templates.Kinds() {
		texts[kind], _ = templates.Text(kind)
	}
	for _, pattern := range []string{"../../examples/*.toml", "../../../sample-benchmarks/*/descriptor.toml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			texts[name] = read(t, name)
		}
	}
	for name, text := range texts {
		if why, ok := refused(schema, text); !ok || why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// expressible are the codes of the faults that the schema finds always.
func expressible() []string {
	return []string{
		"BAI0010", "BAI0011", "BAI0012", "BAI0013", "BAI0015", "BAI0020", "BAI0021", "BAI0022", "BAI0026",
		"BAI0030", "BAI0033", "BAI0034", "BAI0035", "BAI0036", "BAI0041", "BAI0042", "BAI0043", "BAI0052", "BAI0053",
		"BAI0060", "BAI0062", "BAI0067", "BAI0074", "BAI0080", "BAI0081", "BAI0121", "BAI0126", "BAI0128", "BAI0141", "BAI0145",
	}
}

// agree says where the schema and the parser disagree, and "" where they do not.
func agree(schema *jsonschema.Schema, text []byte) string {
	why, ok := refused(schema, text)
	if !ok {
		return ""
	}
	_, faults := parser.Parse("f.toml", text)
	mended := slices.ContainsFunc(faults, func(f parser.Fault) bool { return f.Code == "BAI0109" }) // for which the schema knows better values only
	faults = faults.Errors()
	if why != "" && len(faults) == 0 && !mended {
		if plan, _ := sweep.Read(parser.Parser{}, "f.toml", text); plan != nil { // each cell has the keys that the file lacks
			why, _ = refused(schema, plan.Descriptor(0))
		}
		if why != "" {
			return "the schema alone refuses: " + why
		}
	}
	for _, f := range faults {
		if why == "" && slices.Contains(expressible(), f.Code) && !beyond(f) {
			return fmt.Sprintf("the schema takes %s %v", f.Code, f)
		}
	}
	return ""
}

// beyond reports whether a schema cannot find f: for it a whole number may have a
// fraction of zero, and it measures neither parts of a value nor numbers in texts.
func beyond(f parser.Fault) bool {
	return f.Code == "BAI0011" && strings.Contains(f.Message, "not a decimal number") ||
		f.Code == "BAI0011" && strings.Contains(f.Message, "not a date or time") ||
		f.Code == "BAI0034" && len(f.Message) > len(`"4096" is no number of processes`)
}

func TestTheSchemaRefusesEveryBadFileWithAFaultThatASchemaCanTell(t *testing.T) {
	schema := compiled(t)
	reported := map[string]bool{}
	for name, text := range bad(t) {
		if why := agree(schema, text); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		why, _ := refused(schema, text)
		_, faults := parser.Parse(name, text)
		for _, f := range faults {
			reported[f.Code] = reported[f.Code] || why != ""
		}
	}
	for _, code := range expressible() {
		if !reported[code] {
			t.Errorf("no file has %s", code)
		}
	}
}

// bad are the descriptors with faults.
func bad(t *testing.T) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{}
	for _, pattern := range []string{"../../parser/testdata/bad/*.toml", "../../parser/testdata/original/*.toml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			texts[name] = read(t, name)
		}
	}
	return texts
}

func TestTheSchemaAgreesWithTheParserOnEveryExampleOfAFault(t *testing.T) {
	schema := compiled(t)
	for _, code := range parser.Codes() {
		e, _ := parser.Explain(code)
		for _, text := range []string{e.Example, e.Mended} {
			if why := agree(schema, []byte(text)); why != "" {
				t.Errorf("%s: %s", code, why)
			}
		}
	}
}

func TestTheSchemaTakesTheCellsOfASweepThatGivesAKeyThatItsFileLacks(t *testing.T) {
	text, _ := templates.Text("sweep")
	head, tail, _ := strings.Cut(string(text), "[hardware]\n")
	_, tail, _ = strings.Cut(tail, "[env]\n")
	lacking := []byte(head + "[env]\n" + tail)
	schema := compiled(t)
	if why, _ := refused(schema, lacking); !strings.Contains(why, "hardware") {
		t.Errorf("the schema says %q, want that hardware is missing", why)
	}
	if why := agree(schema, lacking); why != "" {
		t.Error(why)
	}
}

func TestTheSchemaAgreesWithTheParserOnGeneratedDescriptors(t *testing.T) {
	schema := compiled(t)
	var texts []string
	for _, kind := range templates.Kinds() {
		text, _ := templates.Text(kind)
		texts = append(texts, string(text))
	}
	texts = append(texts, string(read(t, "../../examples/every-key.toml")), string(read(t, "../../examples/minimal.toml")), string(read(t, "../../examples/roles.toml")), string(read(t, "../../examples/steps.toml")), string(read(t, "../../examples/manifest.toml")))
	rapid.Check(t, func(t *rapid.T) {
		lines := strings.SplitAfter(rapid.SampledFrom(texts).Draw(t, "text"), "\n")
		for range rapid.IntRange(0, 2).Draw(t, "lines less") {
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
			lines = slices.Delete(slices.Clone(lines), i, i+1)
		}
		set := rapid.SliceOfN(rapid.Custom(override), 0, 3).Draw(t, "set")
		_, text, _ := parser.ParseWith("f.toml", []byte(strings.Join(lines, "")), set)
		if text == nil {
			t.Skip("no TOML")
		}
		if why := agree(schema, text); why != "" {
			t.Fatalf("%s\n%s", why, text)
		}
	})
}

// override gives a key a value that may be good, or nearly.
func override(t *rapid.T) parser.Override {
	key := rapid.SampledFrom(parser.Keys()).Draw(t, "key")
	path := strings.ReplaceAll(key.Path, "[]", ".0")
	switch {
	case key.Type == "table of strings" || key.Type == "table of any":
		path += rapid.SampledFrom([]string{"", ".A", ".run", ".'a b'", ".bai-x", "._x", ".'a/b'", ".'-'", ".9", ".Run", ".bait", ".'A.B'"}).Draw(t, "name")
	case rapid.IntRange(0, 9).Draw(t, "unknown") == 0:
		path += "s"
	}
	return parser.Override{Path: path, Value: value(key).Draw(t, "value")}
}

func value(key parser.Key) *rapid.Generator[string] {
	some := append(slices.Concat(key.Values, key.Aliases), key.Default, key.Example)
	return rapid.OneOf(
		rapid.SampledFrom(some),
		rapid.SampledFrom([]string{
			"0", "1", "-1", "2", "4096", "4097", "65535", "65536", "1073741825", "100001", "10", "11", "1.5", "2.0", "true", `"1"`, `"0"`, `"4"`, "[]", "{}", "[1]", "[1, 1]", "[0]",
			`["a"]`, "[{}]", "1979-05-27", "''", "x", "x_", "a/b", "a/.", "a/..x", "A/b", "a.b/c", "nvidia.com/gpu", "/a", "/a/../b", "a", "/a:b", "/a/..b",
			"s3://b/k", "S3://b", "s3://", "ftp://x/y", "https://a@b/c", "https://a/b@c", "file:///a", "file://a", "http://h", "x.tar", ".tar", "x.zip",
			"12", "12x", "0.5", "500m", "16Gi", "16GiB", "1k", "1 KB", "1ki", "90s", "1d", "1d12h", "1h1h", "5", "1.5h", ".5h", "1ms", "never", "failed", "always",
			"1.0", `"1.0"`, `"0.1"`, `"0.1.0"`, `"2.0"`, `"1.0.7"`, `"01.00"`, `"1."`, "UTC", "Europe/Berlin", "Berlin", "single_run", "@daily", "@reboot", "0 0 * * *", "* * * *",
			"0123456789abcdef0123456789ABCDEF", "gpus", "mpi", "horovod", "inference", "Exists", "Equal", "NoExecute", "NoSchedule", "pytorch", "HTTP", "https",
			strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 129), "ü", "a b", " a", "a:1", "A:1", "(", "(?=x)", "x",
		}),
		rapid.StringMatching(`[-A-Za-z0-9_./: ]{0,12}`),
	)
}
