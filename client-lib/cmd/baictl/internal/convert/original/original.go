// Package original converts descriptors of the system that this one replaces: TOML files of
// version 0.1. What is valid there and here stays as it is, comments and all.
package original

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// Codes of faults that are mended by leaving a key out.
const (
	codeUnknownKey = "BAI0010"
	codePattern    = "BAI0070"
	codeLookAround = "BAI0071"
	codeLarge      = "BAI0072"
)

// How often keys are left out for the faults of a file, and how many values are put in or taken away.
const (
	maxRounds = 20
	maxEdits  = 500
)

// An edit collects the values that take the place of those of a file.
type edit struct {
	root document.Value
	set  []parser.Override
}

// Convert returns the text of a descriptor, and a name for its file. What cannot be converted is a fault in notes.
func Convert(text []byte, notes *document.Notes) (converted, name string) {
	version := []parser.Override{{Path: "spec_version", Value: draft.Literal("1.0")}}
	_, whole, faults := parser.ParseWith("", text, version)
	if whole == nil {
		refuse(faults, notes)
		return "", ""
	}
	e := &edit{root: document.ReadTOML(text, notes)}
	e.info()
	e.hardware()
	e.command()
	e.files()
	name = draft.Label(e.root.Peek("info", "task_name").Raw())
	return e.finish(text, version, notes), name
}

// refuse adds the errors of a text as faults.
func refuse(faults parser.Faults, notes *document.Notes) {
	for _, f := range faults.Errors() {
		one := document.Note{Path: f.Path, Line: f.Line, Column: f.Column, Message: f.Message, Remedy: f.Remedy}
		if f.File != "" { // in a value that was put in
			one.Line, one.Column = 0, 0
		}
		notes.AddFault(one)
	}
}

// finish puts the values in, and leaves out the keys that make the text invalid and can be left out.
func (e *edit) finish(text []byte, version []parser.Override, notes *document.Notes) string {
	set := append(version, e.set...)
	for range maxRounds {
		if len(set) > maxEdits {
			break
		}
		effective, faults, ok := apply(text, set)
		if !ok {
			refuse(faults, notes)
			return ""
		}
		more := e.leaveOut(faults)
		if len(more) == 0 {
			refuse(faults, notes)
			return string(effective)
		}
		set = append(set, more...)
	}
	notes.Fault("leave them out", "has too many keys that are not known or not valid")
	return ""
}

// apply puts values into a text, as many at a time as the parser takes.
func apply(text []byte, set []parser.Override) (effective []byte, faults parser.Faults, ok bool) {
	for batch := range slices.Chunk(set, parser.MaxOverrides) {
		_, effective, faults = parser.ParseWith("", text, batch)
		if effective == nil {
			return nil, faults, false
		}
		text = effective
	}
	return text, faults, true
}

// leaveOut returns the overrides that take away keys with faults, with a remark about each.
func (e *edit) leaveOut(faults parser.Faults) []parser.Override {
	var set []parser.Override
	for _, f := range faults.Errors() {
		if f.Path == "" || slices.ContainsFunc(set, func(o parser.Override) bool { return strings.HasPrefix(f.Path, o.Path) }) {
			continue
		}
		at := e.at(f.Path)
		switch f.Code {
		case codeUnknownKey:
			at.Remark("is not known to convert: left out")
		case codePattern, codeLookAround, codeLarge:
			at.Remark("%s: left out, so that the benchmark has to emit the metric", f.Message)
		default:
			continue
		}
		set = append(set, parser.Override{Path: f.Path})
	}
	return set
}

// at returns the value at the path of a fault, as data.sources[0].uri.
func (e *edit) at(path string) document.Value {
	v := e.root
	for part := range strings.SplitSeq(path, ".") {
		key, index, _ := strings.Cut(part, "[")
		v = v.Get(strings.Trim(key, `"`))
		var n int
		if _, err := fmt.Sscanf(index, "%d", &n); err == nil && n < len(v.Elements()) {
			v = v.Elements()[n]
		}
	}
	return v
}

// put gives a key another value.
func (e *edit) put(v document.Value, value any) {
	e.set = append(e.set, parser.Override{Path: v.Path(), Value: draft.Literal(value)})
}

// remove takes a key away.
func (e *edit) remove(v document.Value) {
	e.set = append(e.set, parser.Override{Path: v.Path()})
}

// info mends the names and labels, which were any text.
func (e *edit) info() {
	info := e.root.Peek("info")
	labels, task := info.Peek("labels"), info.Peek("task_name")
	if task.Kind() == document.Text {
		e.task(info, task, labels.Peek("task_name"))
	}
	if labels.Kind() == document.Table {
		for _, key := range labels.Keys() {
			e.label(key, labels.Peek(key))
		}
	}
	if engine := info.Peek("execution_engine"); engine.Raw() == "aws.sagemaker" {
		engine.Remark("no platform has this engine: left out, so that the run is one on the cluster")
		e.remove(engine)
	}
}

// task makes a valid name of the free text of a task. The description keeps the text.
func (e *edit) task(info, task, label document.Value) {
	text := task.Raw()
	name := draft.Label(text)
	switch {
	case label.Has() && label.Raw() != text:
		task.Remark("info.labels.task_name is %q: left out, as both name the task", label.Raw())
		e.remove(task)
	case name == text:
	case name == "":
		task.Remark("%q has nothing that a name can have: left out", text)
		e.remove(task)
	default:
		task.Remark("%q becomes %q: names have 1 to 63 letters, digits, - _ and .; info.description keeps the text", text, name)
		e.put(task, name)
		if d := info.Peek("description"); d.Kind() == document.Text {
			e.put(d, strings.TrimSpace(d.Raw()+" (task: "+strings.TrimSpace(text)+")"))
		}
	}
}

// label mends a label.
func (e *edit) label(key string, v document.Value) {
	value := v.Raw()
	switch {
	case v.Kind() != document.Text: // a fault
	case !draft.IsLabel(key) || descriptors.ReservedLabel(key):
		v.Remark("runs cannot have this label: left out")
		e.remove(v)
	case value != "" && !draft.IsLabel(value):
		v.Remark("%q becomes %q: values have 1 to 63 letters, digits, - _ and .", value, draft.Label(value))
		e.put(v, draft.Label(value))
	}
}

// hardware writes strategies by their present names, and machines by their own.
func (e *edit) hardware() {
	strategy := e.root.Peek("hardware", "strategy")
	switch strategy.Raw() {
	case "horovod":
		e.put(strategy, "mpi")
	case "client_server":
		e.put(strategy, "inference")
	}
	for _, at := range []document.Value{e.root.Peek("hardware", "instance_type"), e.root.Peek("server", "hardware", "instance_type")} {
		if machine, ok := strings.CutPrefix(at.Raw(), "ml."); ok {
			at.Remark("%q is SageMaker's name of %q, which is carried over", at.Raw(), machine)
			e.put(at, machine)
		}
	}
}

// command makes a script of the lines of a horovod benchmark, which the original ran as one,
// with the arguments directly behind them.
func (e *edit) command() {
	strategy := e.root.Peek("hardware", "strategy").Raw()
	code, args := e.root.Peek("ml", "benchmark_code"), e.root.Peek("ml", "args")
	text := strings.TrimSpace(code.Raw())
	if strategy != "horovod" && strategy != "mpi" || strings.HasPrefix(text, "#!") || !strings.Contains(text, "\n") {
		return
	}
	if args.Kind() == document.Text {
		text += args.Raw()
		args.Remark("is at the end of the script, where the original put it")
		e.remove(args)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	code.Remark("several lines of strategy horovod were a script: begins with #!/bin/sh now")
	e.put(code, draft.Script("#!/bin/sh\n"+strings.Join(lines, "\n")))
}

// files mends the paths and digests of data sets and models.
func (e *edit) files() {
	for _, source := range slices.Concat(e.root.Peek("data", "sources").Elements(), e.root.Peek("server", "models").Elements()) {
		if at := source.Peek("path"); at.Kind() == document.Text {
			e.path(at)
		}
		if uri := source.Peek("uri"); uri.Kind() == document.Text && !source.Peek("src").Has() {
			uri.Remark("is carried over as src")
			e.put(source.Get("src"), uri.Raw())
			e.remove(uri)
		}
		e.digest(source.Peek("md5"))
	}
}

// path writes the home of root in place of ~.
func (e *edit) path(v document.Value) {
	rest, ok := strings.CutPrefix(v.Raw(), "~")
	if !ok || rest != "" && rest[0] != '/' {
		return
	}
	v.Remark("containers have no ~: %q becomes %q", v.Raw(), "/root"+rest)
	e.put(v, "/root"+rest)
}

// digest leaves out an empty digest, and the name of the algorithm before one.
func (e *edit) digest(v document.Value) {
	if v.Kind() != document.Text {
		return
	}
	if v.Raw() == "" {
		v.Remark("is empty: left out")
		e.remove(v)
	} else if _, digest, ok := strings.Cut(v.Raw(), ":"); ok {
		v.Remark("%q becomes %q", v.Raw(), digest)
		e.put(v, digest)
	}
}
