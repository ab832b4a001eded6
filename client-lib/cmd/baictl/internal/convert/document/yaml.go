package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of a file: hostile ones are refused before they cost much.
const (
	MaxSize   = 1 << 20 // bytes
	maxDepth  = 64      // tables and lists in each other
	maxValues = 20_000  // with those that aliases repeat
	maxFiles  = 100     // documents
)

// Read returns the documents of a YAML file that are not empty. What cannot be read is a fault in notes.
func Read(text []byte, notes *Notes) []Value {
	if len(text) > MaxSize {
		notes.Fault("", "has %d bytes; %d at most are read", len(text), MaxSize)
		return nil
	}
	return reader{notes: notes, left: maxValues}.read(text, "", 0)
}

// Documents returns the documents of a YAML file that is the text of a value.
func (v Value) Documents() []Value {
	return reader{notes: v.notes, left: maxValues}.read([]byte(v.String()), v.path, v.line)
}

// read returns the documents of a text at a path, whose first line follows a line of the file.
func (r reader) read(text []byte, path string, line int) []Value {
	r.before = line
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var all []Value
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			f := syntaxFault(err)
			if f.Line > 0 || line > 0 {
				f.Line += line
			}
			f.Path = path
			r.notes.AddFault(f)
			return nil
		case len(all) == maxFiles:
			r.notes.Fault("split the file", "has more than %d documents", maxFiles)
			return nil
		}
		for _, root := range node.Content {
			if v := r.value(root, path, 0); v.Has() {
				all = append(all, v)
			}
		}
		if r.stopped {
			return nil
		}
	}
}

// syntaxFault returns the fault for an error of the YAML library, as
// "yaml: line 3: could not find expected ':'".
func syntaxFault(err error) Note {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if parts := regexp.MustCompile(`^line (\d+): (.*)$`).FindStringSubmatch(text); parts != nil {
		line, _ := strconv.Atoi(parts[1]) // digits
		return Note{Line: line, Column: 1, Message: "is not YAML: " + parts[2]}
	}
	return Note{Message: "is not YAML: " + strings.ReplaceAll(text, "\n", " ")}
}

// reader makes values of the nodes of the YAML library.
type reader struct {
	notes   *Notes
	before  int  // lines of the file before the text
	left    int  // values that may still be made
	stopped bool // a limit was reached
}

// value returns the value of a node, at a path and a depth.
func (r *reader) value(n *yaml.Node, path string, depth int) Value {
	v := Value{notes: r.notes, path: path, line: r.before + n.Line, column: n.Column, text: n.Value}
	if r.left--; r.left < 0 || depth > maxDepth {
		if !r.stopped {
			v.Fault("write a smaller file", "the file has more than %d values, or more than %d levels, with those that aliases repeat",
				maxValues, maxDepth)
		}
		r.stopped = true
		return Value{}
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias, path, depth+1)
	case yaml.MappingNode:
		return r.table(v, n, depth)
	case yaml.SequenceNode:
		v.kind = List
		for i := 0; i < len(n.Content) && !r.stopped; i++ {
			v.items = append(v.items, r.value(n.Content[i], fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
		return v
	case yaml.ScalarNode:
		v.kind = scalarKind(n)
		if strings.ContainsRune(n.Value, 0) {
			v.Fault("leave it out", "has a NUL character")
		}
		return v
	case yaml.DocumentNode:
	}
	return Value{}
}

// table fills a value with the entries of a mapping.
func (r *reader) table(v Value, n *yaml.Node, depth int) Value {
	v.kind, v.fields, v.read = Table, map[string]Value{}, map[string]bool{}
	for i := 0; i+1 < len(n.Content) && !r.stopped; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		r.left-- // a key that is given twice has no value
		at := Value{notes: r.notes, path: join(v.path, key.Value), line: r.before + key.Line, column: key.Column}
		switch {
		case key.Kind != yaml.ScalarNode:
			at.Fault("", "a key that is no text")
			continue
		case key.Tag == "!!merge":
			at.Fault("write the keys out", "merge keys are not read")
			continue
		case strings.ContainsRune(key.Value, 0):
			at.Fault("leave it out", "has a NUL character")
			continue
		}
		if _, twice := v.fields[key.Value]; twice {
			at.Fault("keep one of the two", "is given twice")
			continue
		}
		one := r.value(value, at.path, depth+1)
		one.line, one.column = r.before+key.Line, key.Column
		v.keys, v.fields[key.Value] = append(v.keys, key.Value), one
	}
	return v
}

// scalarKind returns the kind of a scalar, by the tag that the YAML library resolves.
func scalarKind(n *yaml.Node) Kind {
	switch n.ShortTag() {
	case "!!null":
		return Absent
	case "!!bool":
		return Bool
	case "!!int":
		if _, ok := parseInt(n.Value); ok {
			return Integer
		}
		return Float
	case "!!float":
		return Float
	}
	return Text
}

// parseInt reads a whole number of YAML.
func parseInt(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
	return n, err == nil
}
