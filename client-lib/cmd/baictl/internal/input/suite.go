package input

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// withDescriptors returns a suite with the texts of the descriptors that it names. Files are
// named by their paths from its folder. A suite with faults of its own stays as it is.
func (r Reader) withDescriptors(ctx context.Context, doc Document) (Document, []*baiv1.Fault, error) {
	references, faults := suite.References(doc.Name, doc.Text)
	if len(faults) > 0 || len(references) == 0 {
		return doc, nil, nil // Check has the faults
	}
	var sources []suite.Source
	for _, ref := range references {
		one, problem, err := r.entry(ctx, doc, ref.Name)
		if err != nil {
			return doc, nil, fmt.Errorf("read the descriptors of %s: %w", doc.Name, err)
		}
		if problem != "" {
			faults = append(faults, ref.Fault(problem))
			continue
		}
		one, ofFile := withAttachment(one)
		if faults = append(faults, ofFile...); len(ofFile) > 0 {
			continue
		}
		sources = append(sources, suite.Source{Name: ref.Name, File: one.Name, Text: one.Text})
	}
	if len(faults) == 0 {
		var text []byte
		if text, faults = suite.Embed(doc.Name, doc.Text, sources); len(faults) == 0 {
			return Document{Name: doc.Name, Text: text}, nil, nil
		}
	}
	return doc, Faults(faults, false), nil
}

// entry reads a descriptor that a suite names. The problem is the reason why it cannot, as
// the end of a sentence about the name.
func (r Reader) entry(ctx context.Context, of Document, name string) (doc Document, problem string, err error) {
	if !Remote(name) && of.Origin != nil {
		return Document{}, "is a file, and the suite is not: name https://… or stored:NAME", nil
	}
	if !Remote(name) && !filepath.IsAbs(name) {
		name = filepath.Join(folderOf(of), name)
	}
	if name == "-" {
		return Document{}, "is the standard input, and not a file", nil
	}
	doc, faults, err := r.read(ctx, name)
	switch {
	case err != nil:
		return Document{}, "", err
	case len(faults) > 0:
		return Document{}, faults[0].GetMessage(), nil
	case suite.Is(doc.Text):
		return Document{}, "is a suite, and an entry is a descriptor", nil
	case len(doc.Text) > parser.MaxSize:
		return Document{}, fmt.Sprintf("is larger than %d KiB, the most that is taken", parser.MaxSize>>10), nil
	}
	return doc, "", nil
}

// folderOf is the folder that the paths in a suite begin at.
func folderOf(doc Document) string {
	if doc.Name == Stdin {
		return "."
	}
	return filepath.Dir(doc.Name)
}
