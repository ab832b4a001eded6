package syntax_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	gotoml "github.com/pelletier/go-toml/v2"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// show writes a tree as one line per key, with places.
func show(n *syntax.Node, path string, out *[]string) {
	switch n.Kind {
	case syntax.Table:
		for _, e := range n.Entries {
			key := strings.TrimPrefix(path+"."+e.Name, ".")
			*out = append(*out, fmt.Sprintf("%d:%d %s", e.At.Line, e.At.Column, key))
			show(e.Value, key, out)
		}
	case syntax.List:
		for i, item := range n.Items {
			show(item, fmt.Sprintf("%s[%d]", path, i), out)
		}
	case syntax.String, syntax.Integer, syntax.Float, syntax.Bool, syntax.Time:
		*out = append(*out, fmt.Sprintf("%d:%d   = %s", n.At.Line, n.At.Column, n.Text))
	}
}

func TestEveryKeyAndEveryValueKnowsItsPlace(t *testing.T) {
	root, faults := syntax.Parse([]byte(`# a comment
a = "x"
[b.c]
  d.e = 0x1F  # more
  f = [1, { g = true }]
[[h]]
i = 'ä'
"j k" = 1.5
[[h]]
i = """
two
lines"""
`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var got []string
	show(root, "", &got)
	want := []string{
		"2:1 a", "2:5   = x",
		"3:2 b", "3:4 b.c", "4:3 b.c.d", "4:5 b.c.d.e", "4:9   = 0x1F",
		"5:3 b.c.f", "5:8   = 1", "5:13 b.c.f[1].g", "5:17   = true",
		"6:3 h", "7:1 h[0].i", "7:5   = ä", "8:1 h[0].j k", "8:9   = 1.5",
		"10:1 h[1].i", "10:5   = two\nlines",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestColumnsCountCharacters(t *testing.T) {
	root, _ := syntax.Parse([]byte(`a = { "ключ" = 1, b = "äöü$x" }`))
	b := root.Get("a").Get("b")
	if diff := cmp.Diff(syntax.Position{Line: 1, Column: 23}, b.At); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(syntax.Position{Line: 1, Column: 27}, b.Inside(len("äöü"))); diff != "" {
		t.Error(diff)
	}
}

func TestAPlaceInsideATextIsThatOfTheTextWhereTheFileSaysItOtherwise(t *testing.T) {
	root, _ := syntax.Parse([]byte(`a = "x\ty"`))
	a := root.Get("a")
	if diff := cmp.Diff(a.At, a.Inside(2)); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfSyntaxAreFoundAllAndTheRestIsRead(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string // faults, then keys that were read
	}{
		"text without quotes": {
			"a = hello\nb = 1\n",
			[]string{`1:5 this is no value: "hello"`, "b"},
		},
		"a text that is not closed": {
			"a = \"x\nb = 1\nc = 'y\nd = 2",
			[]string{
				"1:7 the text in quotes has no end on its line",
				"3:7 the text in quotes has no end on its line", "b", "d",
			},
		},
		"a list that is not closed": {
			"a = [1,\n 2\nb = 1\n",
			[]string{"1:1 what begins here is not closed before line 3, or lacks a comma", "b"},
		},
		"a list that the file ends in": {
			"b = 1\n# c\n\na = [1,\n 2\n",
			[]string{"4:1 what begins here is not closed before line 5, or lacks a comma", "b"},
		},
		"a long text that is not closed": {
			"a = \"\"\"\nsome words\n[b]\nc = 1\n",
			[]string{"1:1 what begins here is not closed before line 4, or lacks a comma", "b", "b.c"},
		},
		"a header that is not closed": {
			"[a\nb = 1\n[c]\nd = 1\n",
			[]string{`1:3 the header of the table is not closed`, "c", "c.d"},
		},
		"a comma too few in a list of tables": {
			"a = [\n  { b = 1 c = 2 },\n  { b = 2 },\n]\nd = 1\n",
			[]string{`2:11 a comma is missing in the table, or its end: "c"`, "d"},
		},
		"a key twice": {
			"a = 1\nb.c = 1\na = 2\nb.c = 3\nd = 1",
			[]string{
				`3:1 "a" is defined already, on line 1`,
				`4:3 "c" is defined already, on line 2`, "a", "b", "b.c", "d",
			},
		},
		"a table twice": {
			"[a]\nb = 1\n[c]\n[a]\nb = 1\nd = 2\n",
			[]string{
				`4:2 "a" is defined already, on line 1`,
				`5:1 "b" is defined already, on line 2`, "a", "a.b", "a.d", "c",
			},
		},
		"a table and a list of one name": {
			"[[a]]\nb = 1\n[a]\nb = 2\n",
			[]string{`3:2 "a" is a list of tables, begun on line 1`, "a", "a[0].b"},
		},
		"a list and a table of one name": {
			"[a]\nb = 1\n[[a]]\nb = 2\n",
			[]string{`3:3 "a" is defined already, on line 1`, "a", "a.b"},
		},
		"a header through a value": {
			"a = 1\n[a.b]\nc = 2\n",
			[]string{`2:2 "a" is defined already, on line 1`, "a"},
		},
		"a header into a complete table": {
			"a = { b = 1 }\n[a.c]\nd = 2\n",
			[]string{`2:2 "a" is defined already, on line 1`, "a", "a.b"},
		},
		"a number that is too large": {
			"a = 9223372036854775808\n",
			[]string{"1:5 the number 9223372036854775808 does not fit into 64 bits", "a"},
		},
		"a date that is none": {
			"a = 2020-13-01\n",
			[]string{"1:5 2020-13-01 is not a date or time", "a"},
		},
		"a backslash in double quotes": {
			`a = "\d+"` + "\nb = 1\n",
			[]string{`1:6 a backslash that stands for nothing: "\\d+\""`, "b"},
		},
		"lists without end": {
			"a = " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\nb = 1\n",
			[]string{"1:70 more than 64 lists and tables in one another", "a", "b"},
		},
		"a key of very many parts": {
			"a" + strings.Repeat(".a", 100) + " = 1\n",
			[]string{"1:1 a key of 101 parts"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root, faults := syntax.Parse([]byte(tt.text))
			var got []string
			for _, f := range faults {
				got = append(got, fmt.Sprintf("%d:%d %s", f.At.Line, f.At.Column, f.Message))
			}
			var lines []string
			show(root, "", &lines)
			for _, line := range lines {
				if _, key, _ := strings.Cut(line, " "); !strings.HasPrefix(key, "  = ") {
					got = append(got, key)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestATableThatLostAKeyIsDamaged(t *testing.T) {
	root, _ := syntax.Parse([]byte("[a]\nb = x\n[c]\nd = 1\n"))
	if !root.Get("a").Damaged || root.Get("c").Damaged || root.Damaged {
		t.Error("want a damaged, and nothing else")
	}
	root, _ = syntax.Parse([]byte("[a]\nb = 1\n[c\nd = 1\n"))
	if !root.Damaged || !root.Get("a").Damaged {
		t.Error("want all damaged where a header is")
	}
}

// FuzzParse compares the result with those of two other readers of TOML, which do not
// always agree with each other.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"../../examples/*.toml", "../../parser/testdata/*/*.toml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	for _, s := range []string{
		"a.b = 1\na.c = 2\n[a]\n", "[a.b.c]\n[a]\nb.d = 1\n", "[[a]]\n[a.b]\n[[a]]\n[a.b]\n",
		"a = [[1], {b = [2]}]\n[[a]]\n", "a = {b.c = 1, b.d = 2}\n", "[a]\nb.c = 1\n[a.b.d]\n",
		"a = 1979-05-27 07:32:00Z\r\n", "a = nan\nb = -inf\nc = 1e5\nd = 0o7\n", "a = 1e8100\nb = 1e-8100\nc = +nan\nd = -1_0.5_0e+0_1\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root, faults := syntax.Parse([]byte(text))
		if root == nil {
			t.Fatal("no tree")
		}
		var one, two map[string]any
		_, err1 := toml.Decode(text, &one)
		err2 := gotoml.Unmarshal([]byte(text), &two)
		agrees := func(err error) bool { return (err == nil) == (len(faults) == 0) }
		if !agrees(err1) && !agrees(err2) && !disputed(text) {
			t.Errorf("we say %v, the others %v and %v", faults, err1, err2)
		}
	})
}

// disputed reports whether text may have something that only we refuse, because
// it is over a limit, or only we take.
func disputed(text string) bool {
	return strings.Count(text, ".") > 30 || strings.Count(text, "[")+strings.Count(text, "{") > 60 ||
		strings.ContainsAny(text, "\x00\ufeff") || strings.Contains(text, "0000-")
}
