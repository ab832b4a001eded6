package reference

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// introduction is the beginning of the manual.
//
//go:embed introduction.md
var introduction string

// Manual is the manual of the language in Markdown: every key, with its example
// from a descriptor that has every key, and every fault.
func Manual(everyKey []byte) []byte {
	m := manual{keys: parser.Keys()}
	m.examples, _ = syntax.Parse(everyKey)
	m.text.WriteString(introduction)
	m.section("", "The outermost table", "What stands before the first header, and the tables.")
	for _, key := range m.keys {
		switch key.Type {
		case "table":
			m.section(key.Path, fmt.Sprintf("`[%s]`", key.Path), key.Doc)
		case "list of tables":
			m.section(key.Path+"[]", fmt.Sprintf("`[[%s]]`", key.Path), key.Doc)
		}
	}
	m.faults()
	return []byte(m.text.String())
}

type manual struct {
	text     strings.Builder
	keys     []parser.Key
	examples *syntax.Node
}

func (m *manual) printf(format string, args ...any) { fmt.Fprintf(&m.text, format, args...) }

// section describes the keys of the table at path.
func (m *manual) section(path, title, doc string) {
	m.printf("\n### %s\n\n%s\n\n", title, doc)
	m.text.WriteString("| key | type | default | what it must be | what it does | example |\n|---|---|---|---|---|---|\n")
	for _, key := range m.keys {
		parent, name := cut(key.Path)
		if parent != path {
			continue
		}
		columns := []string{"`" + name + "`", key.Type, preset(key), rule(key), key.Doc, code(m.example(key))}
		for i, c := range columns {
			columns[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		m.printf("| %s |\n", strings.Join(columns, " | "))
	}
}

func preset(key parser.Key) string {
	switch {
	case key.Required:
		return "**required**"
	case key.Default != "":
		return "`" + key.Default + "`"
	}
	return "–"
}

func rule(key parser.Key) string {
	quoted := func(words []string) string {
		all := make([]string, len(words))
		for i, word := range words {
			all[i] = "`" + word + "`"
		}
		return strings.Join(all, ", ")
	}
	switch {
	case key.Aliases != nil:
		return quoted(key.Values) + "; also " + quoted(key.Aliases)
	case key.Values != nil:
		return quoted(key.Values)
	}
	return key.Rule
}

func code(example string) string {
	if example == "" {
		return ""
	}
	return "`" + example + "`"
}

// example is a value of key as the file has it, else the one of the language. Tables have none here: their keys
// have.
func (m *manual) example(key parser.Key) string {
	if key.Type == "table" || key.Type == "list of tables" {
		return ""
	}
	if at := first(m.examples, key.Path); at != nil {
		return at.TOML()
	}
	return key.Example // no file has all keys: roles and a strategy, stop_when and repetitions exclude each other
}

// first is the first value at a path, in whichever items of lists; nil for none.
func first(at *syntax.Node, path string) *syntax.Node {
	name, rest, more := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	if at = at.Get(name); at == nil || !more {
		return at
	}
	if !list {
		return first(at, rest)
	}
	for _, item := range at.Items {
		if found := first(item, rest); found != nil {
			return found
		}
	}
	return nil
}

// faults describes every fault.
func (m *manual) faults() {
	m.text.WriteString(
		"\n## Faults\n\nEach has a code that keeps its meaning for ever; `baictl explain CODE` says what is said here. Those from `BAI0101` to `BAI0119` are warnings.\n")
	for _, c := range parser.Codes() {
		e, _ := parser.Explain(c)
		m.printf("\n### %s: %s\n\n%s\n\nWrong:\n\n%s\nRight:\n\n%s", e.Code, e.Title, e.Text, block(e.Example), block(e.Mended))
	}
}

// block is an example of a fault as a block of code.
func block(example string) string {
	language := "toml"
	if slices.ContainsFunc([]string{"$ ", "--set "}, func(begin string) bool { return strings.HasPrefix(example, begin) }) {
		language = "sh"
	}
	return fmt.Sprintf("```%s\n%s\n```\n", language, example)
}
