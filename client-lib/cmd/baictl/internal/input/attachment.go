package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// withAttachment returns a descriptor with the text of the file that it names. The file is in the
// folder of the descriptor or below, and no link leads out of there. A descriptor with faults of
// its own stays as it is.
func withAttachment(doc Document) (Document, parser.Faults) {
	attachment, has := parser.AttachmentOf(doc.Text)
	if !has {
		return doc, nil
	}
	if doc.Origin != nil {
		fault := attachment.Fault(doc.Name, "is a file, and the descriptor is not", "write its text into manifest.objects")
		return doc, parser.Faults{fault}
	}
	content, problem := readBelow(folderOf(doc), attachment.Name)
	if problem != "" {
		return doc, parser.Faults{attachment.Fault(doc.Name, problem, "")}
	}
	text, faults := attachment.Attach(doc.Name, doc.Text, content)
	if len(faults) > 0 {
		return doc, faults
	}
	doc.Text = text
	return doc, nil
}

// readBelow reads a file of a folder, no more of it than shows that it is too large. The problem
// is the end of a sentence about its name.
func readBelow(folder, name string) (content []byte, problem string) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, cannotBeRead(err)
	}
	defer func() { _ = root.Close() }() // it was only read
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return nil, cannotBeRead(err)
	case !info.Mode().IsRegular():
		return nil, "is not a regular file"
	case info.Size() > parser.MaxSize:
		return nil, fmt.Sprintf("is larger than %d KiB, the most that is taken", parser.MaxSize>>10)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, cannotBeRead(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	content, err = io.ReadAll(io.LimitReader(f, parser.MaxSize+1))
	if err != nil {
		return nil, cannotBeRead(err)
	}
	return content, ""
}

func cannotBeRead(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the caller adds the path
	}
	return "cannot be read: " + err.Error()
}
