package parser

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// Keys of a file that came with its text.
const (
	fileName = "name"
	fileText = "text"
)

// An Attachment is a file beside a descriptor that this names, and whose text it does not have.
type Attachment struct {
	// Name is a path from the folder of the descriptor, with slashes. It does not leave the
	// folder, unless a link on the way does.
	Name string

	at   syntax.Position
	span syntax.Span // in the text without its byte order mark
}

// AttachmentOf returns the file that a descriptor names without its text. It is false for a text
// that is not TOML, and for a name that is at fault: Parse has those faults.
func AttachmentOf(text []byte) (Attachment, bool) {
	if len(text) > MaxSize || !bytes.Contains(text, []byte("manifest")) {
		return Attachment{}, false
	}
	tree, broken := syntax.Parse(bytes.TrimPrefix(text, []byte(byteOrderMark)))
	file := fileNode(tree)
	if len(broken) > 0 || file == nil || file.Kind != syntax.String {
		return Attachment{}, false
	}
	if message, _ := fileNameFault(file.Text); message != "" {
		return Attachment{}, false
	}
	return Attachment{Name: file.Text, at: file.At, span: file.Span}, true
}

// fileNode is the value of manifest.file, or nil.
func fileNode(tree *syntax.Node) *syntax.Node {
	table := tree.Get("manifest")
	if table == nil {
		return nil
	}
	return table.Get("file")
}

// Fault is the fault of a file that cannot be read. The message goes on after its name. File is
// the descriptor.
func (a Attachment) Fault(file, message, remedy string) Fault {
	return Fault{
		File: file, Line: a.at.Line, Column: a.at.Column, Path: descriptors.ManifestFileKey, Code: fault.NoFileText,
		Message: fmt.Sprintf("%q %s", a.Name, message), Remedy: remedy,
	}
}

// Attach returns a descriptor, which was read from file, with the content of the attachment in
// place of its name. All lines of the descriptor stay what they are. The fault is that of a
// content that is no text, or of a descriptor that is too large with it.
func (a Attachment) Attach(file string, descriptor, content []byte) ([]byte, Faults) {
	tooLarge := a.Fault(file, fmt.Sprintf("makes the descriptor larger than %d KiB, the most that is taken", MaxSize>>10),
		"make the file smaller, or make several runs")
	if len(content) > MaxSize {
		return nil, Faults{tooLarge}
	}
	if f, bad := decode.Unreadable(content, MaxSize); bad && f.Code != fault.Empty {
		found := collect(beside(file, a.Name), []decode.Fault{f})
		found[0].Path, found[0].Remedy = descriptors.ManifestFileKey, "write it as YAML, in UTF-8"
		return nil, found
	}
	content = bytes.TrimPrefix(content, []byte(byteOrderMark))
	mark := len(descriptor) - len(bytes.TrimPrefix(descriptor, []byte(byteOrderMark)))
	table := fmt.Sprintf("{%s = %s, %s = %s}", fileName, syntax.Quote(a.Name), fileText, syntax.Quote(string(content)))
	whole := slices.Concat(descriptor[:mark+a.span.From], []byte(table), descriptor[mark+a.span.To:])
	if len(whole) > MaxSize {
		return nil, Faults{tooLarge}
	}
	return whole, nil
}

// beside is the path of a file that the descriptor read from file names.
func beside(file, name string) string { return file[:strings.LastIndexAny(file, `/\`)+1] + name }

// ofAttachment gives faults in the text of a file that came with the descriptor their places there.
func ofAttachment(name string, tree *syntax.Node, faults Faults) Faults {
	file := fileNode(tree)
	if file == nil || file.Kind != syntax.Table || file.Get(fileName) == nil || file.Get(fileText) == nil {
		return faults
	}
	text, title := file.Get(fileText), file.Get(fileName).Text
	if message, _ := fileNameFault(title); message != "" {
		return faults
	}
	for i, f := range faults {
		if at, ok := text.Within(syntax.Position{Line: f.Line, Column: f.Column}); ok {
			faults[i] = f.at(at)
			faults[i].File = beside(name, title)
		}
	}
	return faults
}

// fileNameFault says what is wrong with a path from the folder of a descriptor; empty for nothing.
func fileNameFault(name string) (message, remedy string) {
	const longest = 1024
	clean := path.Clean(name)
	switch {
	case name == "" || clean == "." || strings.HasSuffix(name, "/"):
		return fmt.Sprintf("%q is not the path of a file", name), `write file = "objects.yaml"`
	case len(name) > longest || strings.ContainsFunc(name, unicode.IsControl):
		return "is not the path of a file", `write file = "objects.yaml"`
	case strings.ContainsAny(name, `\:`):
		return fmt.Sprintf("%q holds \"\\\" or \":\"", name), `write slashes, as in file = "objects/job.yaml"`
	case path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../"):
		return fmt.Sprintf("%q leaves the folder of the descriptor", name), "name a file in that folder or below"
	}
	return "", ""
}

// manifestFile reads the name of a file, or the file with its text.
func manifestFile(v decode.Value) any {
	name, file := v.Node, descriptors.ManifestFile{}
	if v.Kind == syntax.Table {
		for _, e := range v.Node.Entries {
			if e.Name != fileName && e.Name != fileText {
				v.FaultAt(e.At, fault.UnknownKey, fmt.Sprintf("%q is not a key of a file", e.Name), "its keys are name and text")
				return nil
			}
		}
		text := v.Get(fileText)
		if name = v.Get(fileName); name == nil || text == nil || text.Kind != syntax.String {
			v.Fault(fault.NoFileText, "has no name, or no text", `write file = {name = "objects.yaml", text = "…"}`)
			return nil
		}
		file.Text, file.Attached = text.Text, true
	}
	if name.Kind != syntax.String {
		v.WrongType("a string, or a table with name and text")
		return nil
	}
	if message, remedy := fileNameFault(name.Text); message != "" {
		v.FaultAt(name.At, fault.BadFileName, message, remedy)
		return nil
	}
	file.Name = name.Text
	return file
}
