// Package archive exports whole runs of the platform as files, and imports them.
//
// An export only reads the store and the object store. An import only writes to them:
// it publishes no event, so no service starts, computes or reports anything because of
// it.
//
// The rules are in decide*.go: decide.go decides about an import, and the other files
// define and check the files of an export; export.go and import.go handle requests;
// store.go and rows.go write to the store.
package archive

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Format is the version of exports that this platform writes, and the newest that it
// can import. It grows with every change that an older reader would not understand.
const Format = 1

// Store stores runs, their samples and lines, and their points.
type Store interface {
	store.Docs
	runStore
	dataStore
}

// dataStore stores the data of runs.
type dataStore interface {
	store.Appender
	streamReader
	// PutPoints does the same as that of store.Points.
	PutPoints(ctx context.Context, p store.RunPoints) error
}

// runStore stores runs and their history.
type runStore interface {
	// PutRun, Run and Changes do the same as those of store.Runs.
	PutRun(ctx context.Context, r store.Run, c store.Change) error
	Run(ctx context.Context, id string) (store.Run, error)
	Changes(ctx context.Context, run string, after int64, limit int) ([]store.Change, error)
}

// streamReader reads the samples and lines of runs.
type streamReader interface {
	// Samples, Lines and Streams do the same as those of store.Reader.
	Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) (samples []store.Sample, next string, err error)
	Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) (lines []store.Line, next string, err error)
	Streams(ctx context.Context, run string) ([]store.Stream, error)
}

// Artifacts stores the files of runs.
type Artifacts interface {
	// List, Open and Restore do the same as those of artifact.Repository.
	List(ctx context.Context, run string) ([]artifact.File, error)
	Open(ctx context.Context, run, name string, offset int64) (artifact.File, io.ReadCloser, error)
	Restore(ctx context.Context, run string, f artifact.File, body io.Reader) error
}

// Names registers the names that owners gave their runs.
type Names interface {
	// RestoreName does the same as submit.Submitter.RestoreName.
	RestoreName(ctx context.Context, run store.Run) (named bool, err error)
}

// Deps are the dependencies of an Archiver.
type Deps struct {
	Store       Store
	Artifacts   Artifacts
	Names       Names
	StorageFull func() string    // returns the reason why no run can be stored now, or ""; nil: there is always room
	Version     string           // the platform's version
	Now         func() time.Time // time.Now except in tests
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

// Piece is a part of a file. The pieces of one file are consecutive.
type Piece struct {
	File   string
	Data   []byte
	Last   bool   // the last piece of the file
	Cursor string // position of the next piece; set only by an export
}

// Header is the first message of an export.
type Header struct {
	Format  int
	Run     string
	Version string // the platform's version

	store.Completeness
}

// Begin is the first message of an import.
type Begin struct {
	Format int
	Run    string
	Files  []File
	By     string // the user who imports

	// History makes the run a point of the history of its task. An import without it takes nothing from one with it.
	History bool
}

// ImportStream is the client's side of an import.
type ImportStream interface {
	// Next returns the next piece, or io.EOF after the last.
	Next() (Piece, error)
	// RequestFiles asks the client for files that are not documents.
	RequestFiles(files []string) error
}

// Result is the result of an import.
type Result struct {
	Run     string
	Already bool     // everything was stored before
	Notes   []string // differences from the original platform
}

// importMark is the document, of store.KindImport, that marks a run as imported from
// another platform.
type importMark struct {
	Digest string    `json:"digest"` // digest of all files
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"` // time of the first import
	Done   bool      `json:"done,omitempty"`

	History bool `json:"history,omitempty"` // the run is a point of the history of its task
}
