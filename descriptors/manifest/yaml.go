package manifest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// maxDepth is how deep objects may be nested.
const maxDepth = 64

// node is a value with its place.
type node struct {
	line, column int
	value        any     // of a scalar
	keys         []*node // of a map, by the places of its values
	values       []*node // of a map or a list
	isMap        bool
	isList       bool
}

func (n *node) problem(code, message, remedy string) Problem {
	return Problem{Line: n.line, Column: n.column, Code: code, Message: message, Remedy: remedy}
}

// key returns the name of entry i of a map.
func (n *node) key(i int) string {
	s, _ := n.keys[i].value.(string)
	return s
}

// get returns the value of a key of a map, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.keys {
		if n.key(i) == name {
			return n.values[i]
		}
	}
	return nil
}

// text returns the string that a value is, or "".
func (n *node) text() string {
	if n == nil {
		return ""
	}
	s, _ := n.value.(string)
	return s
}

// isText reports whether a value is a scalar.
func (n *node) isText() bool { return !n.isMap && !n.isList }

// plain returns the value as JSON has it.
func (n *node) plain() any {
	switch {
	case n.isMap:
		m := make(map[string]any, len(n.keys))
		for i := range n.keys {
			m[n.key(i)] = n.values[i].plain()
		}
		return m
	case n.isList:
		list := make([]any, 0, len(n.values))
		for _, v := range n.values {
			list = append(list, v.plain())
		}
		return list
	}
	return n.value
}

// parse returns the documents of a text that are not empty.
func parse(text string) (roots []*node, problems []Problem) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return roots, problems
		}
		if err != nil {
			return roots, append(problems, syntaxProblem(err))
		}
		if len(document.Content) == 0 {
			continue
		}
		r := reader{}
		root := r.read(document.Content[0], 0)
		problems = append(problems, r.problems...)
		if root.isMap || root.isList || root.value != nil {
			roots = append(roots, root)
		}
	}
}

// linePattern matches the place in an error of the YAML parser.
var linePattern = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?((?s).*)$`)

func syntaxProblem(err error) Problem {
	found := linePattern.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(found[1]) // 0 if the error has no place
	return Problem{
		Line: max(1, line), Column: 1, Code: fault.BadManifest, Message: "is not YAML: " + found[2],
		Remedy: "check the indentation and the quotes",
	}
}

// reader reads one document.
type reader struct{ problems []Problem }

func (r *reader) fault(n *node, message, remedy string) {
	r.problems = append(r.problems, n.problem(fault.BadManifest, message, remedy))
}

func (r *reader) read(y *yaml.Node, depth int) *node {
	n := &node{line: y.Line, column: y.Column}
	switch {
	case depth > maxDepth:
		r.fault(n, fmt.Sprintf("is nested more than %d times", maxDepth), "flatten it")
	case y.Kind == yaml.AliasNode || y.Anchor != "":
		r.fault(n, "is an anchor or an alias", "write the value where it is used")
	case y.Kind == yaml.MappingNode:
		r.readMap(y, n, depth)
	case y.Kind == yaml.SequenceNode:
		n.isList = true
		for _, item := range y.Content {
			n.values = append(n.values, r.read(item, depth+1))
		}
	case y.Kind == yaml.ScalarNode:
		n.value = r.scalar(y, n)
	}
	return n
}

func (r *reader) readMap(y *yaml.Node, n *node, depth int) {
	n.isMap = true
	seen := map[string]bool{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := &node{line: y.Content[i].Line, column: y.Content[i].Column, value: y.Content[i].Value}
		switch {
		case y.Content[i].Kind != yaml.ScalarNode || y.Content[i].Tag == "!!merge":
			r.fault(key, "is not the name of a key", "write a text before the colon")
			continue
		case seen[y.Content[i].Value]:
			r.fault(key, fmt.Sprintf("%q is there twice", y.Content[i].Value), "keep one of the two")
			continue
		}
		seen[y.Content[i].Value] = true
		n.keys, n.values = append(n.keys, key), append(n.values, r.read(y.Content[i+1], depth+1))
	}
}

// scalar returns the value of a scalar. Times are texts, as in JSON.
func (r *reader) scalar(y *yaml.Node, n *node) any {
	switch y.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if y.Decode(&b) == nil {
			return b
		}
	case "!!int":
		var i int64
		if y.Decode(&i) == nil {
			return i
		}
		return r.float(y, n)
	case "!!float":
		return r.float(y, n)
	case "!!str", "!!timestamp":
		return y.Value
	}
	r.fault(n, fmt.Sprintf("has the tag %s, which JSON does not have", y.ShortTag()), "write a text, a number, true, false or null")
	return nil
}

func (r *reader) float(y *yaml.Node, n *node) any {
	var f float64
	if err := y.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		r.fault(n, fmt.Sprintf("%q is not a number that JSON has", y.Value), "write another number, or quotes around it")
		return nil
	}
	return f
}
