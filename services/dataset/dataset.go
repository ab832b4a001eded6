// Package dataset owns the platform's data sets: the sources that they are read
// from (package source), the objects that are stored of them, the orders that ask
// for them, and the rules by which objects are kept and removed. The fetcher fills
// the cache of data sets; the gateway shows it, and lets users look after it.
//
// The files decide*.go hold the rules and do no I/O.
package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works, for sources
// on the Internet.
type Settings struct {
	Downloads    int             `toml:"transfers"` // at once in this process; zero means 4
	Lease        time.Duration   `toml:"lease"`     // after which another process takes over a transfer whose holder died; zero means 10 s
	PollInterval time.Duration   `toml:"look"`      // between two looks at cancel marks and other processes' orders; zero means 1 s
	Sources      source.Settings `toml:"sources"`

	MaxStored       int64         `toml:"max_stored"` // bytes that are kept, as far as no run needs more; zero means no limit
	MaxUnused       time.Duration `toml:"max_unused"` // since data were last used by a run; zero means no limit
	SweepInterval   time.Duration `toml:"sweep"`      // between two looks at what need not be kept; zero means 10 min
	EndingRetention time.Duration `toml:"keep"`       // how long after a run's end it is remembered what was fetched for it; zero means 1 h
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.Downloads < 0 {
		errs = append(errs, errors.New("transfers: must not be negative"))
	}
	if s.MaxStored < 0 || s.MaxUnused < 0 || s.SweepInterval < 0 || s.EndingRetention < 0 {
		errs = append(errs, errors.New("max_stored, max_unused, sweep, keep: must not be negative"))
	}
	if s.Lease < 0 || s.PollInterval < 0 {
		errs = append(errs, errors.New("lease, look: must not be negative"))
	}
	if err := errors.Join(append(errs, s.Sources.Validate())...); err != nil {
		return fmt.Errorf("fetcher: %w", err)
	}
	return nil
}

// OrDefault returns the settings with the values that zero stands for.
func (s Settings) OrDefault() Settings {
	s.Downloads = cmp.Or(s.Downloads, 4)
	s.Lease = cmp.Or(s.Lease, 10*time.Second)
	s.PollInterval = cmp.Or(s.PollInterval, time.Second)
	s.SweepInterval = cmp.Or(s.SweepInterval, 10*time.Minute)
	s.EndingRetention = cmp.Or(s.EndingRetention, time.Hour)
	return s
}

// Store has the documents of orders, downloads, objects and leases, the runs, and
// their cancel marks.
type Store interface {
	store.Docs
	store.Lister
	// Run returns the run, or store.ErrNotFound.
	Run(ctx context.Context, id string) (store.Run, error)
}

// ObjectReader is the part of the object store that is only read.
type ObjectReader interface {
	// Items hands over all objects. It ends after an error.
	Items(ctx context.Context) iter.Seq2[store.BucketObject, error]
	// Open opens an object for reading, or returns store.ErrNotFound.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Space returns how many bytes there is room for, as far as that is known.
	Space(ctx context.Context) (store.Space, error)
}

// Objects is the object store.
type Objects interface {
	ObjectReader

	// Put stores under a new key the bytes that fill writes, all of them or none, and
	// returns their size and sums; MD5 only where withMD5. Size is -1 if it is not
	// known. Without space the error is syscall.ENOSPC. A key is objects/ and letters
	// and digits.
	Put(ctx context.Context, key string, size int64, withMD5 bool, fill func(w io.Writer) error) (store.Object, error)
	// Size returns the size of an object, or store.ErrNotFound.
	Size(ctx context.Context, key string) (int64, error)
	// Delete removes an object. A key without an object is no error.
	Delete(ctx context.Context, key string) error
}

// Deps are what a Cache needs from others.
type Deps struct {
	Store   Store
	Objects Objects
	Log     *zap.Logger

	Buckets      source.OpenBucket     // opens the buckets of clouds; nil where none are read
	Repositories source.OpenRepository // opens those of git; nil where none are read
}

// NewReader returns a reader of the sources that settings allow.
func (d Deps) NewReader(s source.Settings) (*source.Reader, error) {
	r, err := source.New(s)
	if err != nil {
		return nil, fmt.Errorf("fetcher: %w", err)
	}
	r.ReadBuckets(d.Buckets)
	r.ReadRepositories(d.Repositories)
	return r, nil
}

// Cache is the data sets that the object store holds. All its methods can be
// repeated, and used by several processes at once.
type Cache struct {
	Sources *source.Reader // by which sources are checked

	settings Settings
	store    Store
	objects  Objects
	log      *zap.Logger
}

// New returns the cache that a fetcher with these settings and deps fills.
func New(s Settings, d Deps) (*Cache, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	sources, err := d.NewReader(s.Sources)
	if err != nil {
		return nil, err
	}
	return &Cache{Sources: sources, settings: s.OrDefault(), store: d.Store, objects: d.Objects, log: d.Log}, nil
}
