// Package archive exports whole runs of the platform as files, and imports them.
//
// An export reads the store and the object store alone. An import writes to them
// alone: it publishes no event, so that no service starts, computes or reports
// anything because of it.
//
// Rules are in decide*.go: decide.go has the decision about an import, the others
// have the files with their form and checks. Requests are served in export.go and
// import.go; store.go and rows.go write to the store.
package archive

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Format is the version of the files that an export writes, and the newest that an
// import reads. It grows with every change that an older reader would not understand.
const Format = 1

// Store stores runs and their samples and lines.
type Store interface {
	store.Docs
	store.Appender
	runStore
	streamReader
}

// runStore are runs and their history.
type runStore interface {
	// PutRun, Run and Changes are those of store.Runs.
	PutRun(ctx context.Context, r store.Run, c store.Change) error
	Run(ctx context.Context, id string) (store.Run, error)
	Changes(ctx context.Context, run string, after int64, limit int) ([]store.Change, error)
}

// streamReader reads the samples and lines of runs.
type streamReader interface {
	// Samples, Lines and Streams are those of store.Reader.
	Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) (samples []store.Sample, next string, err error)
	Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) (lines []store.Line, next string, err error)
	Streams(ctx context.Context, run string) ([]store.Stream, error)
}

// Artifacts stores the files of runs.
type Artifacts interface {
	// List, Open and Restore are those of artifact.Repository.
	List(ctx context.Context, run string) ([]artifact.File, error)
	Open(ctx context.Context, run, name string, offset int64) (artifact.File, io.ReadCloser, error)
	Restore(ctx context.Context, run string, f artifact.File, body io.Reader) error
}

// Names gives runs the names of their owners.
type Names interface {
	// RestoreName is that of submit.Submitter.
	RestoreName(ctx context.Context, run store.Run) (named bool, err error)
}

// Deps are the dependencies of an Archiver.
type Deps struct {
	Store       Store
	Artifacts   Artifacts
	Names       Names
	StorageFull func() string    // says why there is no room for another run; nil: there always is
	Version     string           // of the platform
	Now         func() time.Time // time.Now but in tests
}

// Archiver exports and imports runs. It may be used by several goroutines, and
// by several processes on one store.
type Archiver struct{ deps Deps }

// New returns an Archiver.
func New(d Deps) *Archiver {
	d.Version = cmp.Or(d.Version, "devel")
	return &Archiver{deps: d}
}

// File is a file of a run.
type File struct {
	Name   string
	Size   int64
	SHA256 string // hex
}

// Piece is a part of a file. Those of one file come one after the other.
type Piece struct {
	File   string
	Data   []byte
	Last   bool   // the file ends here
	Cursor string // of the piece after it; only of an export
}

// Header announces an export.
type Header struct {
	Format  int
	Run     string
	Version string // of the platform

	store.Completeness
}

// Begin announces an import.
type Begin struct {
	Format int
	Run    string
	Files  []File
	By     string // who imports
}

// ImportStream is an import under way.
type ImportStream interface {
	// Next returns the next piece, or io.EOF after the last.
	Next() (Piece, error)
	// RequestFiles asks for files beside the documents.
	RequestFiles(files []string) error
}

// Result is the result of an import.
type Result struct {
	Run     string
	Already bool     // all of it was stored before
	Notes   []string // differences from the platform that the run comes from
}

// importMark is the document, of store.KindImport, that marks a run as one of another
// platform.
type importMark struct {
	Digest string    `json:"digest"` // of all files
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"` // when it was first imported
	Done   bool      `json:"done,omitempty"`
}
