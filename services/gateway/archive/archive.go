// Package transfer takes whole runs out of the platform, as files, and into it.
//
// What is exported is read from the store and the object store alone. What is
// imported is written to them alone: nobody is told, so that nothing is started,
// computed or reported because of it. The files and their forms are those of
// Format; decide.go says which files there are and when an import is refused.
package archive

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Format is the version of the files that are written, and the newest that is
// read. It grows with every change that an older reader would not understand.
const Format = 1

// Store keeps runs and what they wrote.
type Store interface {
	store.Docs
	store.Appender
	RunStore
	StreamReader
}

// RunStore are runs and their history.
type RunStore interface {
	// PutRun, Run and Changes are those of store.Runs.
	PutRun(ctx context.Context, r store.Run, c store.Change) error
	Run(ctx context.Context, id string) (store.Run, error)
	Changes(ctx context.Context, run string, after int64, limit int) ([]store.Change, error)
}

// StreamReader is what runs wrote.
type StreamReader interface {
	// Samples, Lines and Streams are those of store.Reader.
	Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) (samples []store.Sample, next string, err error)
	Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) (lines []store.Line, next string, err error)
	Streams(ctx context.Context, run string) ([]store.Stream, error)
}

// Artifacts are the files that are kept of runs.
type Artifacts interface {
	// List, Open and Restore are those of artifact.Keeper.
	List(ctx context.Context, run string) ([]artifact.File, error)
	Open(ctx context.Context, run, name string, offset int64) (artifact.File, io.ReadCloser, error)
	Restore(ctx context.Context, run string, f artifact.File, body io.Reader) error
}

// Names are those that owners gave their runs.
type Names interface {
	// RestoreName is that of intake.Intake.
	RestoreName(ctx context.Context, run store.Run) (named bool, err error)
}

// Deps are what a Transfer needs from others.
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

// New returns a Transfer.
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
	Cursor string // where to go on after it; only of an export
}

// Header is what is said of an export.
type Header struct {
	Format  int
	Run     string
	Version string // of the platform

	store.Completeness
}

// Begin is what is said of an import.
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
	// RequestFiles says which files are wanted beside the documents.
	RequestFiles(files []string) error
}

// Result is what came of an import.
type Result struct {
	Run     string
	Already bool     // all of it was there
	Notes   []string // what is not as it was where the run comes from
}

// Mark is the document, of store.KindImport, that says that a run comes from
// elsewhere.
type Mark struct {
	Digest string    `json:"digest"` // of all files
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"` // when it was first imported
	Done   bool      `json:"done,omitempty"`
}
