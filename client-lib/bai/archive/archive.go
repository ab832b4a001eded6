// Package archive writes, checks and reads exported runs: a folder, or the same files in
// one tar.zst. The package calls no platform.
//
// The platform makes the files of a run. From these a Writer derives convenient ones
// (metrics/samples.csv, and below logs/ the text of each container's output), and writes
// a manifest last, bai-export.json, with the size and the digest of each file. An archive
// without its manifest is not whole. The same files make the same bytes, whenever and
// wherever.
//
//	bai-export.json                              the manifest
//	run.json                                     the run as the platform returns it
//	descriptor/submitted.toml                    as the user sent it
//	descriptor/resolved.toml                     with the overrides applied
//	manifests/ATTEMPT.yaml                       the objects that were created, without values of Secrets
//	environment.json                             the machine, system and image of the run
//	summaries.json                               its metrics, summarised
//	events.jsonl                                 its history
//	sources.jsonl                                the counts of each stream of each container
//	metrics/samples.jsonl, metrics/samples.csv   its samples
//	logs/lines.jsonl                             its log
//	logs/ATTEMPT/ROLE-INDEX/POD/CONTAINER.OUTPUT.txt
//	artifacts.jsonl                              its artifacts
//	artifacts/ATTEMPT/ROLE-INDEX/PATH            their bytes
//
// In a folder, the characters of a name that the system or file system does not allow,
// and "%", become %XX. The manifest has the original name; a folder is read with either.
package archive

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Format is the version of the files that this package knows.
const Format = 1

// ManifestName is the name of the manifest's file.
const ManifestName = "bai-export.json"

// Files that the package looks into.
const (
	runFile     = "run.json"
	samplesFile = "metrics/samples.jsonl"
	csvFile     = "metrics/samples.csv"
	linesFile   = "logs/lines.jsonl"
	logs        = "logs/"
	artifacts   = "artifacts/"
	resolved    = "descriptor/resolved.toml"
)

// Bounds of an archive that is read.
const (
	maxFiles     = 50_000
	maxManifest  = 16 << 20  // bytes
	maxDocuments = 64 << 20  // bytes of all that is neither samples nor lines nor artifacts
	maxLine      = 8 << 20   // bytes of a line of JSON
	maxName      = 4096 + 80 // bytes of a name: a path of Linux, below a folder
)

// File is a file of an archive.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hex
}

// Manifest lists the files of an archive.
type Manifest struct {
	Format   int      `json:"format"`
	Run      string   `json:"run"`
	Platform string   `json:"platform"`          // version of the one that exported it
	Complete bool     `json:"complete"`          // the run is over, and all that was stored of it is here
	Missing  int64    `json:"missing"`           // samples and lines that were sent and are not here
	Dropped  int64    `json:"dropped"`           // lines that were not stored
	Awaited  []string `json:"awaited,omitempty"` // data that the export lacks, for people
	Files    []File   `json:"files"`             // all others, by name
}

// FormatError says that an archive is of a version that is not known here.
type FormatError struct{ Format int }

// Error names the format and the remedy.
func (e *FormatError) Error() string {
	return fmt.Sprintf("the export is of format %d, and this baictl reads up to %d: use a newer baictl", e.Format, Format)
}

// FaultError is a fault in an archive.
type FaultError struct {
	File    string // empty for the archive itself
	Line    int    // from 1; 0 where the fault has none
	Message string
}

// Error describes the fault and its place.
func (e *FaultError) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Message)
}

func fault(file string, line int, format string, args ...any) error {
	return &FaultError{File: file, Line: line, Message: fmt.Sprintf(format, args...)}
}

// Derived reports whether a file is made from the others: it is checked, and
// not imported.
func Derived(name string) bool {
	return name == csvFile || name == resolved || strings.HasPrefix(name, logs) && name != linesFile
}

// Document reports whether a file is one of the small ones that describe the others.
func Document(name string) bool {
	return name != samplesFile && name != linesFile && !strings.HasPrefix(name, artifacts)
}

// CheckName says why there is no file of that name in an archive: it would lie
// elsewhere, or no system has such a name. Names may hold control characters:
// a program that shows one cleans it.
func CheckName(name string) error {
	refuse := func(why string) error { return fault(fmt.Sprintf("%.100q", name), 0, "%s", why) }
	switch {
	case name == "" || len(name) > maxName:
		return refuse(fmt.Sprintf("a name has 1 to %d bytes", maxName))
	case !utf8.ValidString(name):
		return refuse("the name is not UTF-8")
	case strings.HasPrefix(name, "/"):
		return refuse(`the name begins with "/"`)
	case path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return refuse("the name leads elsewhere")
	case strings.ContainsRune(name, 0):
		return refuse("the name holds a NUL")
	}
	return nil
}

// encode returns the manifest as it is written.
func (m Manifest) encode() ([]byte, error) {
	m.Files = slices.Clone(m.Files)
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(m)
	return b.Bytes(), err
}

// decode reads a manifest. Its error describes the first fault.
func decode(text []byte) (Manifest, error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return Manifest{}, fault(ManifestName, lineOf(text, err), "%s", jsonMessage(err))
	}
	if version.Format > Format {
		return Manifest{}, &FormatError{Format: version.Format}
	}
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Manifest{}, fault(ManifestName, lineOf(text, err), "%s", jsonMessage(err))
	}
	return m, m.check()
}

func (m Manifest) check() error {
	if m.Format < 1 || len(m.Files) > maxFiles {
		return fault(ManifestName, 0, "format %d, %d files: want format 1 or more, and at most %d files", m.Format, len(m.Files), maxFiles)
	}
	seen := map[string]bool{ManifestName: true}
	documents := int64(0)
	for _, f := range m.Files {
		if err := CheckName(f.Name); err != nil {
			return err
		}
		sum, err := hex.DecodeString(f.SHA256)
		if err != nil || len(sum) != 32 || f.Size < 0 || seen[f.Name] {
			return fault(ManifestName, 0, "%q is named twice, or without a size and a digest", f.Name)
		}
		seen[f.Name] = true
		if Document(f.Name) && !Derived(f.Name) {
			if f.Size > maxDocuments || documents+f.Size > maxDocuments {
				return fault(f.Name, 0, "the documents of the run have more than %d bytes together", maxDocuments)
			}
			documents += f.Size
		}
	}
	return nil
}

// lineOf returns the line of a text where the reader of JSON met an error.
func lineOf(text []byte, err error) int {
	var (
		syntax *json.SyntaxError
		kind   *json.UnmarshalTypeError
		at     int64
	)
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	default:
		if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			at = max(0, int64(bytes.Index(text, []byte(field))))
		}
	}
	return 1 + bytes.Count(text[:min(at, int64(len(text)))], []byte("\n"))
}

// jsonMessage is the message of encoding/json in words about the file.
func jsonMessage(err error) string {
	if text := err.Error(); text == "EOF" || text == "unexpected EOF" || text == "unexpected end of JSON input" {
		return "the JSON ends early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
