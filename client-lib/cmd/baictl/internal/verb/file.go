package verb

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/descriptors"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// stdin is how the standard input is called in faults.
const stdin = "<stdin>"

// A document is a descriptor as it was read.
type document struct {
	name string
	text []byte // no more than shows that it is too large
}

// read reads a descriptor; "-" is the standard input. A file that cannot be read
// has that as its fault.
func (s *session) read(name string) (document, []*baiv1.Fault) {
	in, as := s.env.In, stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return document{name: name}, unreadable(name, err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in, as = f, name
	}
	text, err := io.ReadAll(io.LimitReader(in, descriptors.MaxSize+1))
	if err != nil {
		return document{name: as}, unreadable(as, err)
	}
	return document{name: as, text: text}, nil
}

func unreadable(name string, err error) []*baiv1.Fault {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the rest is said already
	}
	return []*baiv1.Fault{{File: name, Message: "cannot be read: " + err.Error()}}
}

// tooLarge returns the faults of a descriptor that no platform would take.
func (d document) tooLarge() []*baiv1.Fault {
	if len(d.text) <= descriptors.MaxSize {
		return nil
	}
	return d.faults()
}

// faults returns all that is wrong with a descriptor, and its warnings.
func (d document) faults() []*baiv1.Fault {
	_, faults := descriptors.Parse(d.name, d.text)
	all := make([]*baiv1.Fault, len(faults))
	for i, f := range faults {
		all[i] = &baiv1.Fault{
			File: f.File, Line: int32(f.Line), Column: int32(f.Column), Path: f.Path,
			Code: f.Code, Message: f.Message, Remedy: f.Remedy, Warning: f.Warning,
		}
	}
	return all
}

// complain prints faults, one a line.
func (s *session) complain(faults []*baiv1.Fault) {
	for _, f := range faults {
		s.screen.Note(show.Fault(f))
	}
}

// errorsIn counts the faults that are not warnings.
func errorsIn(faults []*baiv1.Fault) int {
	n := 0
	for _, f := range faults {
		if !f.GetWarning() {
			n++
		}
	}
	return n
}
