// Package fetcher makes sure that all data of a run are in the object store
// before the run starts, each copied once whoever wants it.
//
// File decide.go holds every rule and does no I/O. File fetcher.go hears events,
// and gathers what Decide needs; orders.go carries out what is ordered, board.go
// knows what waits for what; transfer.go carries a source into the object store.
// Package source reads sources, which are hostile.
//
// On a cluster Jobs do the transfers, near the object store: jobs.go makes and
// supervises them, task.go is what they do.
package fetcher

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/service"
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

// Bus carries events.
type Bus interface {
	// Consume returns the part that hands what step hears to step, and carries
	// on what step answers. Parts of one group share the events.
	Consume(group string, step service.Step) service.Runnable
	// Publish says events that follow from no event that is being handled.
	Publish(ctx context.Context, events ...event.Event) error
}

// Store remembers orders, transfers, objects and leases, and knows the cancel
// marks.
type Store interface {
	store.Docs
	store.Lister
	// Run returns the run, or store.ErrNotFound.
	Run(ctx context.Context, id string) (store.Run, error)
}

// ObjectReader shows what the object store has, and has room for.
type ObjectReader interface {
	// Items tells of all objects. It ends after an error.
	Items(ctx context.Context) iter.Seq2[store.BucketObject, error]
	// Open opens an object for reading, or says store.ErrNotFound.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Space says what there is room for, as far as that is known.
	Space(ctx context.Context) (store.Space, error)
}

// Objects is the object store.
type Objects interface {
	ObjectReader

	// Put stores under a new key what fill writes, all of it or nothing, and
	// says its size and sums; MD5 only if asked. Size is -1 if it is not known.
	// No space is syscall.ENOSPC. A key is objects/ and letters and digits.
	Put(ctx context.Context, key string, size int64, withMD5 bool, fill func(w io.Writer) error) (store.Object, error)
	// Size returns the size of an object, or store.ErrNotFound.
	Size(ctx context.Context, key string) (int64, error)
	// Delete removes an object. None of that key is no error.
	Delete(ctx context.Context, key string) error
}

// Deps are what the service needs from others.
type Deps struct {
	Bus     Bus
	Store   Store
	Objects Objects
	Log     *zap.Logger

	Buckets      source.OpenBucket     // opens the buckets of clouds; nil where none are read
	Repositories source.OpenRepository // opens those of git; nil where none are read

	Jobs        Jobs         // does the transfers; nil: this process does
	JobTemplate *batchv1.Job // what each of them is made from (see CheckJob); where Jobs is not nil
}

// New returns the parts of the service, by name. The names are unique among all
// services, so that one process can run several.
func New(s Settings, d Deps) (map[string]service.Runnable, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	sources, err := source.New(s.Sources)
	if err != nil {
		return nil, fmt.Errorf("fetcher: %w", err)
	}
	sources.ReadBuckets(d.Buckets)
	sources.ReadRepositories(d.Repositories)
	f := &fetcher{settings: s.orDefault(), deps: d, sources: sources, scheduler: newScheduler(), holder: rand.Text()}
	stock := &DatasetCache{fetcher: f}
	return map[string]service.Runnable{
		"fetcher/submitted": d.Bus.Consume("fetcher", service.On(f.handleSubmitted)),
		"fetcher/commands":  d.Bus.Consume("fetcher", service.On(f.handleCommand)),
		"fetcher/orders":    f.runOrders,
		"fetcher/sweep":     stock.sweep,
	}, nil
}

// orDefault returns the settings with what the zero values mean.
func (s Settings) orDefault() Settings {
	s.Downloads = cmp.Or(s.Downloads, 4)
	s.Lease = cmp.Or(s.Lease, 10*time.Second)
	s.PollInterval = cmp.Or(s.PollInterval, time.Second)
	s.SweepInterval = cmp.Or(s.SweepInterval, 10*time.Minute)
	s.EndingRetention = cmp.Or(s.EndingRetention, time.Hour)
	return s
}
