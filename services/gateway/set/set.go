// Package set runs the cells of a sweep: a set is all runs of one descriptor with a table
// [sweep].
//
// # Order of the writes
//
//   - KindSetRequest, create-only, named by set and digest: what the runs are made of.
//   - KindOpenSet has the Runner look at the set. It is written before KindSet, and deleted
//     a while after the set has finished.
//   - KindSet, create-only, then by compare-and-set. The ID is derived from the owner and
//     the name, or else the idempotency key, or from a schedule and its firing, so that a
//     repeated request is the same set. A process that crashes before this has left nothing that counts.
//   - A pass of the Runner submits the active runs that are not submitted yet, reads those
//     that may have ended, and then writes what has changed, with the next runs to be made
//     active. A run is submitted under a key made of the set and its ordinal (see package
//     submit), and only after a pass has made it active. So a process that crashes anywhere
//     submits the same runs again, which are the same runs, and overlooks none: a user who
//     cancels a set ends all of its runs.
//   - A set that was canceled or has stopped submits no more. A pass withdraws the keys of the
//     active runs that are not submitted yet, and submits, to count it, a run that another pass
//     has begun to submit. Only a stored set that is not running has its keys withdrawn, and
//     only a resume has it run again, which it counts. So a process that was paused, and still
//     takes the set for running, can make none of these runs, and the resumed set can.
//   - KindSetRollup: results of cells that do not change any more. It may be deleted at any
//     time: the results are read from the runs then.
//
// Only one process runs sets at a time, the holder of a lease. A process that lost the
// lease without noticing submits at most the same runs, and the fence refuses its write.
//
// The rules are in decide.go; documents accesses the store, Runner submits and counts the
// runs, and Sets serves requests of users.
package set

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/gateway/set/results"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works.
type Settings struct {
	Interval time.Duration `toml:"interval"` // time between two checks of all active runs; zero means 2s
	Lease    time.Duration `toml:"lease"`    // time after which another gateway takes over from a crashed one; zero means 15s
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.Interval < 0 {
		errs = append(errs, errors.New("gateway.sets.interval: must not be negative"))
	}
	if s.Lease < 0 {
		errs = append(errs, errors.New("gateway.sets.lease: must not be negative"))
	}
	return errors.Join(errs...)
}

const (
	defaultInterval = 2 * time.Second
	defaultLease    = 15 * time.Second
)

// Store stores sets and runs.
type Store interface {
	store.Docs
	store.Lister
	runReader
}

// runReader reads runs.
type runReader interface {
	// Run and Runs do the same as those of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
	// RunPoints does the same as that of store.PointReader.
	RunPoints(ctx context.Context, runs, metrics []string) ([]store.RunPoints, error)
	// Streams does the same as that of store.Ingester.
	Streams(ctx context.Context, run string) ([]store.Stream, error)
}

// Submitter accepts the runs of sets.
type Submitter interface {
	claims

	// Submit does the same as submit.Submitter.Submit.
	Submit(ctx context.Context, req submit.Request) (submit.Accepted, error)
	// Cancel does the same as submit.Submitter.Cancel.
	Cancel(ctx context.Context, run store.Run, by string) error
	// PinScript does the same as submit.Submitter.PinScript.
	PinScript(ctx context.Context, owner, sha256, id string) error
}

// claims are the keys of sets and their runs.
type claims interface {
	// ClaimKey does the same as submit.Submitter.ClaimKey.
	ClaimKey(ctx context.Context, owner, key, id, digest string) (repeated bool, err error)
	// Withdraw does the same as submit.Submitter.Withdraw.
	Withdraw(ctx context.Context, set, key string, resumes int) (submit.Withdrawal, error)
	// RunOfCell does the same as submit.Submitter.RunOfCell.
	RunOfCell(ctx context.Context, set, key string) (run string, err error)
}

// Deps are the dependencies of Sets and Runner.
type Deps struct {
	Store       Store
	Submitter   Submitter
	Parser      parser.Parser
	NewID       func(at time.Time) (string, error)
	StorageFull func() string                   // returns the reason why no run can be stored now, or ""; nil: there is always room
	Sync        func(ctx context.Context) error // returns when earlier writes survive a power cut; nil: they always do
	Receivers   notice.Receivers                // of notices of ends; nil: there are none
	Holder      string                          // name of this process as holder of the lease
	Now         func() time.Time
	Log         *zap.Logger
}

// Sets creates, cancels and resumes sets. Several goroutines may use it, and so may several
// processes on one store.
type Sets struct {
	deps    Deps
	docs    documents
	results *results.Reader
	plans   *planCache
	runner  *Runner
}

// New returns Sets whose changes the Runner of this process hears of at once.
func New(d Deps, r *Runner) *Sets {
	return &Sets{deps: d, docs: documents{d.Store}, results: r.rollups.results, plans: r.plans, runner: r}
}

// timestamp returns the time to store in a document.
func (k *Sets) timestamp() time.Time { return k.deps.Now().UTC().Round(0) }

// Find returns the set with that ID, or with that name of the owner's. The error is
// *MissingError if there is none.
func (k *Sets) Find(ctx context.Context, owner, ref string) (Set, error) {
	return k.docs.find(ctx, owner, ref)
}

// List returns up to n sets for which want is true, with IDs after an ID, in the order of
// their IDs.
func (k *Sets) List(ctx context.Context, after string, n int, want func(Set) bool) ([]Set, error) {
	return k.docs.list(ctx, after, n, want)
}

// Unfinished returns the sets of a schedule that have not finished, in the order of their IDs. A set that another process has just made or
// resumed may be missing, as far as lists of the store are late.
func (k *Sets) Unfinished(ctx context.Context, schedule string) ([]Set, error) {
	ids, err := k.runner.openSets(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the open sets: %w", err)
	}
	var all []Set
	for _, id := range ids {
		s, found, err := k.docs.load(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("read set %s: %w", id, err)
		}
		if found && s.Schedule == schedule && s.State != StateFinished {
			all = append(all, s)
		}
	}
	return all, nil
}

// Descriptor returns the descriptor that the runs of a set are made of, with its sweep.
func (k *Sets) Descriptor(ctx context.Context, s Set) (string, error) {
	r, err := k.docs.request(ctx, s)
	return r.Descriptor, err
}

// Changed returns a channel that is closed when this process next writes a set. Get the
// channel, read the set, then wait. Writes by other processes close no channel.
func (k *Sets) Changed() <-chan struct{} { return k.runner.changes.next() }

// Cancel ends a set: no more runs are submitted, and the active ones are canceled. A set
// that has finished stays as it is. The error is *MissingError if there is none.
func (k *Sets) Cancel(ctx context.Context, owner, ref, by string) (Set, error) {
	return k.change(ctx, owner, ref, func(s Set) (Set, bool, error) {
		next, changed := s.cancel(by, k.timestamp())
		return next, changed, nil
	})
}

// Resume has a set that was canceled or has stopped go on at its next run. Those that were
// active and not submitted come first. The error is
// *MissingError, *StateError, or the one of code that is not stored any more.
func (k *Sets) Resume(ctx context.Context, owner, ref string) (Set, error) {
	s, err := k.docs.find(ctx, owner, ref)
	if err != nil {
		return Set{}, err
	}
	if _, _, err := s.resume(k.timestamp()); err != nil {
		return Set{}, err
	}
	if s.Script != "" {
		if err := k.deps.Submitter.PinScript(ctx, s.Owner, s.Script, s.ID); err != nil {
			return Set{}, err
		}
	}
	if err := k.docs.open(ctx, s.ID, k.timestamp()); err != nil {
		return Set{}, err
	}
	return k.change(ctx, owner, ref, func(s Set) (Set, bool, error) { return s.resume(k.timestamp()) })
}

// change changes a set, unless the function change reports that there is nothing to change,
// and returns the set after that.
func (k *Sets) change(ctx context.Context, owner, ref string, change func(s Set) (Set, bool, error)) (Set, error) {
	changed := false
	s, err := store.Update(ctx, k.deps.Store, store.KindSet, refID(owner, ref), func(s Set, found bool) (_ Set, _ bool, err error) {
		if !found || ref == "" {
			return Set{}, false, &MissingError{Ref: ref, Owner: owner}
		}
		s, changed, err = change(s)
		return s, changed, err
	})
	if err != nil {
		return Set{}, err
	}
	if changed {
		k.deps.Log.Info("set", zap.String("set", s.ID), zap.String("state", string(s.State)),
			zap.String("by", cmp.Or(s.CanceledBy, s.Owner)))
		k.runner.Open(s.ID)
	}
	return k.docs.find(ctx, owner, ref)
}
