package archive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Files of a run, in the order in which they are exported.
const (
	fileRun         = "run.json"                  // store.Run
	fileSubmitted   = "descriptor/submitted.toml" // the text that the user sent
	fileResolved    = "descriptor/resolved.toml"  // the text that was run; run.json has it too
	manifests       = "manifests/"                // ATTEMPT.yaml: the objects of an attempt
	fileEnvironment = "environment.json"          // store.Environment
	fileSummaries   = "summaries.json"            // store.Summaries
	fileEvents      = "events.jsonl"              // store.Change
	fileSources     = "sources.jsonl"             // sourceRow
	fileArtifacts   = "artifacts.jsonl"           // artifactRow
	fileSamples     = "metrics/samples.jsonl"     // sampleRow
	fileLines       = "logs/lines.jsonl"          // lineRow
	artifacts       = "artifacts/"                // ATTEMPT/ROLE-INDEX/PATH
)

// sampleRow is a line of fileSamples.
type sampleRow struct {
	Attempt int `json:"attempt"`

	event.Stream
	event.Sample
}

// lineRow is a line of fileLines.
type lineRow struct {
	Attempt int `json:"attempt"`

	event.Stream
	event.Line
}

// sourceRow is a line of fileSources: a stream and the number of its records in one
// topic.
type sourceRow struct {
	Attempt int `json:"attempt"`

	event.Stream

	Topic  string     `json:"topic"`
	Stored int64      `json:"stored"`        // number of samples or lines in the store
	End    *event.End `json:"end,omitempty"` // the end of the stream, with the number that it sent; nil before its end
}

func (s sourceRow) origin(run string) store.Origin {
	return store.Origin{Run: run, Attempt: s.Attempt, Stream: s.Stream}
}

// sourceOf returns the row of a stream. It reports false for a stream that has neither
// records nor an end.
func sourceOf(s store.Stream) (sourceRow, bool) {
	return sourceRow{Attempt: s.Origin.Attempt, Stream: s.Origin.Stream, Topic: s.Topic, Stored: s.Stored, End: s.End}, s.Stored > 0 ||
		s.End != nil
}

// artifactRow is a line of fileArtifacts.
type artifactRow struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Time   string `json:"time"`
}

// isDocument reports whether a file is a document. An import reads all documents before
// it writes anything.
func isDocument(name string) bool {
	return name != fileSamples && name != fileLines && !strings.HasPrefix(name, artifacts)
}

// manifestOf returns the name of the file with the objects of an attempt.
func manifestOf(attempt int) string { return manifests + strconv.Itoa(attempt) + ".yaml" }

// attemptOf returns the attempt of a manifest, by the file's name.
func attemptOf(name string) (int, bool) {
	text, ok := strings.CutPrefix(name, manifests)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(text, ".yaml"))
	return n, err == nil && n > 0 && manifestOf(n) == name
}

// checkName returns a fault if a run has no file of that name.
func checkName(name string) error {
	switch name {
	case fileRun, fileSubmitted, fileResolved, fileEnvironment, fileSummaries, fileEvents, fileSources,
		fileArtifacts, fileSamples, fileLines:
		return nil
	}
	if _, ok := attemptOf(name); ok {
		return nil
	}
	if of, ok := strings.CutPrefix(name, artifacts); ok {
		if err := artifact.CheckName(of); err != nil {
			return fault(name, 0, "%v", err)
		}
		return nil
	}
	return fault(name, 0, "a run has no such file in format %d", Format)
}

// appendLine appends v as a line of JSON, without HTML escapes.
func appendLine(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// encodeDocument returns v as indented JSON.
func encodeDocument(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// readDocument reads a file with exactly one JSON value. It refuses unknown fields.
func readDocument(file string, text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	if err != nil {
		return fault(file, 1+bytes.Count(text[:errorOffset(text, err, d.InputOffset())], []byte("\n")), "%s", jsonErrorText(err))
	}
	return nil
}

// errorOffset returns the offset in text at which the JSON decoder found an error.
func errorOffset(text []byte, err error, read int64) int64 {
	var (
		syntax *json.SyntaxError
		kind   *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &syntax):
		read = syntax.Offset
	case errors.As(err, &kind):
		read = kind.Offset
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		read = int64(len(text))
	default:
		if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			read = max(0, int64(bytes.Index(text, []byte(field))))
		}
	}
	return min(read, int64(len(text)))
}

// readLine does the same as readDocument, for one line of a file.
func readLine(file string, n int, text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fault(file, n, "%s", jsonErrorText(err))
	}
	if _, more := d.Token(); !errors.Is(more, io.EOF) {
		return fault(file, n, "more than one JSON value in a line")
	}
	return nil
}

// readLines reads all lines of a file.
func readLines[T any](file string, text []byte) ([]T, error) {
	var all []T
	for n := 1; len(text) > 0; n++ {
		one, rest, ended := bytes.Cut(text, []byte("\n"))
		if !ended {
			return nil, fault(file, n, "the last line does not end")
		}
		var v T
		if err := readLine(file, n, one, &v); err != nil {
			return nil, err
		}
		all, text = append(all, v), rest
	}
	return all, nil
}

// jsonErrorText returns an error of encoding/json as a message about a file.
func jsonErrorText(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the JSON ends early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// objects is the part of a plan that has the created objects.
type objects struct {
	Objects []json.RawMessage `json:"objects"`
}

// manifest returns the objects of a plan as YAML documents. It leaves out the values of
// Secrets.
func manifest(plan []byte) ([]byte, error) {
	var all objects
	if err := json.Unmarshal(plan, &all); err != nil {
		return nil, fmt.Errorf("read a plan: %w", err)
	}
	var documents [][]byte
	for _, o := range all.Objects {
		text, err := withoutValues(o)
		if err != nil {
			return nil, err
		}
		if text, err = yaml.JSONToYAML(text); err != nil {
			return nil, fmt.Errorf("write an object of a plan: %w", err)
		}
		documents = append(documents, text)
	}
	return []byte(redact(string(bytes.Join(documents, []byte("---\n"))))), nil
}

// withoutValues returns an object unchanged, or a Secret without its values.
func withoutValues(object json.RawMessage) (json.RawMessage, error) {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(object, &kind); err != nil {
		return nil, fmt.Errorf("read an object of a plan: %w", err)
	}
	if kind.Kind != "Secret" {
		return object, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, fmt.Errorf("read a Secret of a plan: %w", err)
	}
	delete(fields, "data")
	delete(fields, "stringData")
	return json.Marshal(fields)
}

// bySource returns an order of streams that is the same as the store's.
func bySource(run string) func(a, b sourceRow) int {
	return func(a, b sourceRow) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.origin(run).StreamID(), b.origin(run).StreamID()),
			cmp.Compare(a.Topic, b.Topic))
	}
}

// sourcesOf returns the rows of streams, in order.
func sourcesOf(run string, streams []store.Stream) []sourceRow {
	var all []sourceRow
	for _, s := range streams {
		if one, ok := sourceOf(s); ok {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, bySource(run))
	return all
}
