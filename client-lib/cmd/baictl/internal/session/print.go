package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
)

// An Entry is a field of an object that baictl itself makes.
type Entry struct {
	Name  string
	Value any // a value for encoding/json, or a json.RawMessage
}

// Object is JSON with fields in the order given.
func Object(fields ...Entry) (json.RawMessage, error) {
	var b bytes.Buffer
	for i, f := range fields {
		text, err := marshal(f.Value)
		if err != nil {
			return nil, err
		}
		b.WriteString([]string{"{", ","}[min(i, 1)])
		fmt.Fprintf(&b, "%q:%s", f.Name, text)
	}
	if len(fields) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Array is JSON of many messages.
func Array[M proto.Message](all []M) json.RawMessage {
	b := []byte{'['}
	for i, m := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, printer.JSON(m)...)
	}
	return append(b, ']')
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("make JSON: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// Print writes one object as -o says: json or yaml.
func (s *Session) Print(text json.RawMessage) error {
	form := printer.Indent
	if s.Output == "yaml" {
		form = printer.YAML
	}
	formed, err := form(text)
	if err != nil {
		return err
	}
	return WriteText(s.Env.Out, formed)
}

// PrintOne writes one object of a stream as -o says: a line of JSON, or a
// document of YAML.
func (s *Session) PrintOne(w io.Writer, text json.RawMessage) error {
	if s.Output != "yaml" {
		return WriteText(w, string(text)+"\n")
	}
	formed, err := printer.YAML(text)
	if err != nil {
		return err
	}
	return WriteText(w, "---\n"+formed)
}

// PrintTable writes a table that fits the terminal, unless it was asked to be
// wide.
func (s *Session) PrintTable(t printer.Table) error {
	width := s.Screen.Width()
	if s.Output == "wide" {
		width = printer.Unbound
	}
	return WriteText(s.Env.Out, t.Render(width))
}

// WriteText writes a text.
func WriteText(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// Structured says whether -o asks for json or yaml.
func (s *Session) Structured() bool { return s.Output == "json" || s.Output == "yaml" }

// Merge is an object with fields after its own.
func Merge(object json.RawMessage, fields ...Entry) (json.RawMessage, error) {
	more, err := Object(fields...)
	if err != nil {
		return nil, err
	}
	return Join(object, more), nil
}

// Join is an object with the fields of two.
func Join(a, b json.RawMessage) json.RawMessage {
	const empty = "{}"
	switch {
	case len(a) <= len(empty):
		return b
	case len(b) <= len(empty):
		return a
	}
	return append(append(slices.Clone(a[:len(a)-1]), ','), b[1:]...)
}
