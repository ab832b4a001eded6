package verb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
)

// entry is a field of an object that baictl itself makes.
type entry struct {
	name  string
	value any // what encoding/json knows, or a json.RawMessage
}

// object is JSON with fields in the order given.
func object(fields ...entry) (json.RawMessage, error) {
	var b bytes.Buffer
	for i, f := range fields {
		text, err := marshal(f.value)
		if err != nil {
			return nil, err
		}
		b.WriteString([]string{"{", ","}[min(i, 1)])
		fmt.Fprintf(&b, "%q:%s", f.name, text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// array is JSON of many messages.
func array[M proto.Message](all []M) json.RawMessage {
	b := []byte{'['}
	for i, m := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, show.JSON(m)...)
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

// print writes one object as -o says: json or yaml.
func (s *session) print(text json.RawMessage) error {
	form := show.Indent
	if s.output == "yaml" {
		form = show.YAML
	}
	formed, err := form(text)
	if err != nil {
		return err
	}
	return put(s.env.Out, formed)
}

// printOne writes one object of a stream as -o says: a line of JSON, or a
// document of YAML.
func (s *session) printOne(w io.Writer, text json.RawMessage) error {
	if s.output != "yaml" {
		return put(w, string(text)+"\n")
	}
	formed, err := show.YAML(text)
	if err != nil {
		return err
	}
	return put(w, "---\n"+formed)
}

// printTable writes a table that fits the terminal, unless it was asked to be
// wide.
func (s *session) printTable(t show.Table) error {
	width := s.screen.Width()
	if s.output == "wide" {
		width = 0
	}
	return put(s.env.Out, t.Render(width))
}

func put(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// structured says whether -o asks for json or yaml.
func (s *session) structured() bool { return s.output == "json" || s.output == "yaml" }
