package parser_test

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// values are values of overrides: of TOML, and any text.
func values() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"4", `"4"`, "true", "2h", "", "[80, 81]", "[]", "{}", `{ a = "b", c.d = 1 }`, "[{ name = 'n' }]", "1.5", "it's \"x\"", "a\nb", "[", "ü",
			"1979-05-27", "\"\"\"\na\n\"\"\"", "[[1], [2]]", "x # y", "1 # y", `"#"`, `\`,
		}),
		rapid.String(),
	)
}

// paths are those of keys of the language, and others.
func paths() *rapid.Generator[string] {
	var all []string
	for _, key := range parser.Keys() {
		for _, number := range []string{".0", ".1", "[0]", ".2"} {
			all = append(all, strings.ReplaceAll(key.Path, "[]", number))
		}
	}
	all = append(all, "info.labels.x", `env.vars."A.B"`, "env.vars.'ü'", "custom_params.hyper_params.a.b.0.c", "info.nothing", "a.b.c", "a.b", "a",
		"data.sources.0", "output.metrics.1", "output", "server.env.ports.0", "x.0.y")
	return rapid.SampledFrom(all)
}

func sets() *rapid.Generator[[]parser.Override] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) parser.Override {
		return parser.Override{Path: paths().Draw(t, "path"), Value: values().Draw(t, "value")}
	}), 1, 4)
}

// textsOf are descriptors, each as a whole and without some of its lines.
func textsOf(t *testing.T) *rapid.Generator[string] {
	t.Helper()
	all := []string{overridden, "a = { b.c = 1, b.d = 2 }\n[x]\ny.z = 1\n[[x.l]]\n[x.l.m.n]\n[[x.l]]\n[x.y.w]\n"}
	for _, pattern := range []string{"../examples/*.toml", "testdata/original/*.toml"} {
		for _, text := range files(t, pattern) {
			all = append(all, string(text))
		}
	}
	return rapid.Custom(func(t *rapid.T) string {
		lines := strings.SplitAfter(rapid.SampledFrom(all).Draw(t, "text"), "\n")
		for range rapid.IntRange(0, 3).Draw(t, "lines less") {
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
			lines = append(lines[:i:i], lines[i+1:]...)
			if len(lines) == 0 {
				return ""
			}
		}
		return strings.Join(lines, "")
	})
}

func TestWhatIsReadWithOverridesIsReadFromTheTextThatIsRun(t *testing.T) {
	texts := textsOf(t)
	rapid.Check(t, func(t *rapid.T) {
		text, set := texts.Draw(t, "text"), sets().Draw(t, "set")
		d, effective, faults := parser.ParseWith("f.toml", []byte(text), set)
		sameAsEffective(t, d, effective, faults)
		if effective != nil {
			oracle(t, text, string(effective), set)
		}
	})
}

// fataler is the common interface of both kinds of tests.
type fataler interface {
	Fatalf(format string, args ...any)
}

func sameAsEffective(t fataler, d *descriptors.Descriptor, effective []byte, faults parser.Faults) {
	if effective == nil {
		if d != nil || faults.Err() == nil {
			t.Fatalf("no text, but %v and %v", d, faults)
		}
		return
	}
	again, found := parser.Parse("f.toml", effective)
	if diff := cmp.Diff(d, again); diff != "" && !bytes.Contains(effective, []byte("nan")) {
		t.Fatalf("%s\nof %s", diff, effective)
	}
	count := map[string]int{}
	for _, f := range faults {
		count[f.Code+f.Path+f.Message]++
	}
	for _, f := range found {
		count[f.Code+f.Path+f.Message]--
	}
	for what, n := range count {
		if n != 0 {
			t.Fatalf("%d more of %s\nin %s", n, what, effective)
		}
	}
}

// oracle applies set to the values of text, as another reader of TOML has them, and
// compares the result with that reader's values of the effective text.
func oracle(t fataler, text, effective string, set []parser.Override) {
	var want, got map[string]any
	if _, err := toml.Decode(text, &want); err != nil {
		return // it is stricter than the language
	}
	if _, err := toml.Decode(effective, &got); err != nil {
		t.Fatalf("another reader: %v\nin %s", err, effective)
	}
	var root any = want
	for _, o := range set {
		if o.Value == "" {
			root = without(root, steps(o.Path))
			continue
		}
		root = putInto(root, steps(o.Path), decoded(o.Value), isList(o.Path))
	}
	// A table that exists only by the headers below it is removed with the last of them.
	if diff := cmp.Diff(pruned(general(root)), pruned(general(got)), cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b })); diff != "" { //nolint:gocritic // NaN is not itself
		t.Fatalf("%s\nof %s", diff, effective)
	}
}

// general is a value without the types that the reader gives to lists.
func general(value any) any {
	switch v := reflect.ValueOf(value); v.Kind() { //nolint:exhaustive // the others are scalars
	case reflect.Slice:
		all := make([]any, v.Len())
		for i := range all {
			all[i] = general(v.Index(i).Interface())
		}
		return all
	case reflect.Map:
		all := map[string]any{}
		for _, key := range v.MapKeys() {
			all[key.String()] = general(v.MapIndex(key).Interface())
		}
		return all
	}
	return value
}

// decoded is a value as the other reader has it: of TOML where it is one as a whole,
// so that something may follow it on its line, else the text.
func decoded(value string) any {
	var alone, followed map[string]any
	text := strings.Trim(value, " \t")
	if _, err := toml.Decode("x = "+text, &alone); err != nil || len(alone) != 1 || strings.HasSuffix(value, "\n") {
		return value
	}
	if _, err := toml.Decode("x = ["+text+", 7]", &followed); err != nil {
		return value // it ends with a comment
	}
	return alone["x"]
}

func steps(path string) []string {
	path = strings.ReplaceAll(path, `"A.B"`, "A B")
	path = strings.NewReplacer("[", ".", "]", "", "'", "").Replace(path)
	all := strings.Split(path, ".")
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "A B", "A.B")
	}
	return all
}

// isList reports how many missing steps of a path are followed by the number of an
// element.
func isList(path string) func(names []string) bool {
	return func(names []string) bool {
		joined := strings.Join(names, ".")
		if strings.Contains(path, "[0]") && strings.HasPrefix(path, joined+"[0]") {
			return true
		}
		for _, key := range parser.Keys() {
			if strings.ReplaceAll(key.Path, "[]", "") == joined {
				return strings.HasPrefix(key.Type, "list")
			}
		}
		return false
	}
}

// without is a value without the key at a path.
func without(at any, path []string) any {
	at = general(at)
	switch v := at.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
		} else if below, ok := v[path[0]]; ok {
			v[path[0]] = without(below, path[1:])
		}
	case []any:
		if n, err := strconv.Atoi(path[0]); err == nil && n < len(v) && len(path) > 1 {
			v[n] = without(v[n], path[1:])
		}
	}
	return at
}

// pruned is a value without the empty tables in tables.
func pruned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		all := map[string]any{}
		for key, below := range v {
			below = pruned(below)
			if table, ok := below.(map[string]any); !ok || len(table) > 0 {
				all[key] = below
			}
		}
		return all
	case []any:
		for i := range v {
			v[i] = pruned(v[i])
		}
	}
	return value
}

func putInto(root any, path []string, value any, isList func([]string) bool) any {
	return putAt(root, nil, path, value, isList)
}

func putAt(at any, above, path []string, value any, isList func([]string) bool) any {
	if len(path) == 0 {
		return value
	}
	at = general(at)
	number, err := strconv.Atoi(path[0])
	switch v := at.(type) {
	case map[string]any:
		v[path[0]] = putAt(v[path[0]], append(above, path[0]), path[1:], value, isList)
		return v
	case []any:
		if err != nil || number > len(v) {
			return "a number was expected"
		}
		if number == len(v) {
			v = append(v, nil)
		}
		v[number] = putAt(v[number], above, path[1:], value, isList)
		return v
	case nil:
		if err == nil && number == 0 && isList(above) {
			return []any{putAt(nil, above, path[1:], value, isList)}
		}
		return map[string]any{path[0]: putAt(nil, append(above, path[0]), path[1:], value, isList)}
	}
	return "a table was expected"
}
