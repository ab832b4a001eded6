// Package input reads descriptors from where they are: files, folders, the
// standard input, and places that the platform reaches.
package input

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Stdin is how the standard input is called in faults.
const Stdin = "<stdin>"

// Stored is the prefix of the name of a descriptor that the platform stores.
const Stored = "stored:"

// A Document is a descriptor as it was read.
type Document struct {
	Name   string             // for faults
	Text   []byte             // no more than shows that it is too large
	Origin *baiv1.Origination // nil for a file and the standard input
}

// A Reader reads descriptors.
type Reader struct {
	In io.Reader // the standard input
	// Fetch returns the text of a descriptor that is not this machine's, and
	// where it came from.
	Fetch func(ctx context.Context, uri string) ([]byte, *baiv1.Origination, error)
}

// Remote says whether a name is one that the platform resolves.
func Remote(name string) bool {
	return strings.HasPrefix(name, Stored) || strings.Contains(name, "://")
}

// Read reads a descriptor: stored:NAME[@VERSION], https://…, s3://…, "-" for the
// standard input, or a file. A file that cannot be read has that as its fault; an
// error is the platform's. A suite is read with the texts of its descriptors, and a descriptor
// with that of the file that it names.
func (r Reader) Read(ctx context.Context, name string) (Document, []*baiv1.Fault, error) {
	doc, faults, err := r.read(ctx, name)
	switch {
	case err != nil || len(faults) > 0:
		return doc, faults, err
	case suite.Is(doc.Text):
		return r.withDescriptors(ctx, doc)
	}
	doc, found := withAttachment(doc)
	return doc, Faults(found, false), nil
}

func (r Reader) read(ctx context.Context, name string) (Document, []*baiv1.Fault, error) {
	if Remote(name) {
		text, origin, err := r.Fetch(ctx, name)
		if err != nil {
			return Document{}, nil, err
		}
		if origin.GetUri() != "" {
			name = origin.GetUri()
		}
		return Document{Name: name, Text: text, Origin: origin}, nil, nil
	}
	doc, faults := r.local(name)
	return doc, faults, nil
}

func (r Reader) local(name string) (Document, []*baiv1.Fault) {
	in, as := r.In, Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return Document{Name: name}, unreadable(name, err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in, as = f, name
	}
	text, err := io.ReadAll(io.LimitReader(in, parser.MaxSize+1))
	if err != nil {
		return Document{Name: as}, unreadable(as, err)
	}
	return Document{Name: as, Text: text}, nil
}

func unreadable(name string, err error) []*baiv1.Fault {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the caller adds the path
	}
	return []*baiv1.Fault{{File: name, Message: "cannot be read: " + err.Error()}}
}
