// Package dataset owns the platform's data sets: their sources (package source), their
// stored objects, the orders for them, and the rules of retention. The fetcher fills
// the dataset cache. The gateway shows it, and lets users verify, evict and prefetch
// data.
//
// The files decide*.go have the rules and do no I/O.
package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works, for sources
// on the Internet.
type Settings struct {
	Downloads    int             `toml:"transfers"` // number of concurrent downloads in this process; zero means 4
	Lease        time.Duration   `toml:"lease"`     // time after which a crashed process loses its download to another; zero means 10 s
	PollInterval time.Duration   `toml:"look"`      // time between checks for cancel marks and orders of other processes; zero means 1 s
	Sources      source.Settings `toml:"sources"`

	MaxStored       int64         `toml:"max_stored"` // bytes of stored data sets, unless runs need more; zero means no limit
	MaxUnused       time.Duration `toml:"max_unused"` // time without use by a run after which data are deleted; zero means no limit
	SweepInterval   time.Duration `toml:"sweep"`      // time between two deletions of data that need not be kept; zero means 10 min
	EndingRetention time.Duration `toml:"keep"`       // time after a run's end for which the result of its fetch is kept; zero means 1 h
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

// Store has the documents of orders, downloads, objects and leases, and the runs with
// their cancel marks.
type Store interface {
	store.Docs
	store.Lister
	// Run returns a run, or store.ErrNotFound.
	Run(ctx context.Context, id string) (store.Run, error)
}

// ObjectReader reads the object store.
type ObjectReader interface {
	// Items iterates over all objects. It ends after an error.
	Items(ctx context.Context) iter.Seq2[store.BucketObject, error]
	// Open opens an object for reading, or returns store.ErrNotFound.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Space returns the space of the object store, as far as it is known.
	Space(ctx context.Context) (store.Space, error)
}

// Objects is the object store.
type Objects interface {
	ObjectReader

	// Put stores the bytes that fill writes under a new key, either all or none, and
	// returns their size and digests; MD5 only if withMD5 is set. An unknown size is
	// -1. If the store is full, the error is syscall.ENOSPC. A key is objects/ followed
	// by letters and digits.
	Put(ctx context.Context, key string, size int64, withMD5 bool, fill func(w io.Writer) error) (store.Object, error)
	// Size returns the size of an object, or store.ErrNotFound.
	Size(ctx context.Context, key string) (int64, error)
	// Delete removes an object. A missing object is not an error.
	Delete(ctx context.Context, key string) error
}

// Deps are the dependencies of a Cache.
type Deps struct {
	Store   Store
	Objects Objects
	Log     *zap.Logger

	Buckets      source.OpenBucket     // opens cloud buckets; nil: buckets are not read
	Repositories source.OpenRepository // opens git repositories; nil: repositories are not read
}

// NewReader returns a reader of the sources that the settings allow.
func (d Deps) NewReader(s source.Settings) (*source.Reader, error) {
	r, err := source.New(s)
	if err != nil {
		return nil, fmt.Errorf("fetcher: %w", err)
	}
	r.ReadBuckets(d.Buckets)
	r.ReadRepositories(d.Repositories)
	return r, nil
}

// Cache has the data sets in the object store. All its methods can be repeated, and
// several processes may use them at once.
type Cache struct {
	Sources *source.Reader // checks the sources

	settings Settings
	store    Store
	objects  Objects
	log      *zap.Logger

	mu      sync.Mutex
	orphans map[string]bool // objects without a document, by key, as of the last sweep
}

// New returns the cache with these settings and deps.
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
