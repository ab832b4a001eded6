// Package schedule makes runs of schedules: descriptors that are to be run again
// and again.
//
// # Order of the writes, and the reason for it
//
//   - KindPin, create-only: the code of the schedule stays for as long as the
//     schedule names it. A pin of a schedule that does not exist is swept away.
//   - KindScheduleVersion, create-only, named by schedule, version and digest: the
//     request that each firing makes. Then KindSchedule, by compare-and-set, which
//     names the edition that counts. A process that dies between the two leaves an
//     edition that no schedule names.
//   - A firing is submitted as any run, under a key made of the schedule and the
//     time: it is one run, however many processes make it (see package submit).
//     Then events report the firings that were missed, under IDs of the same kind,
//     and then KindFirings, by compare-and-set, moves past them. After a process dies
//     between any of these the rest is done again, here or elsewhere, to the same
//     effect.
//   - KindBackfill, create-only, is an order: it is carried out in the same way,
//     moved on, and deleted when nothing is left of it.
//
// One process fires at a time, the holder of a lease. A process that lost the lease
// while it slept makes at most the same firings, and its write of KindFirings is
// refused by its fence.
//
// A schedule that is deleted leaves a document with the time of its deletion: its ID is that of its
// owner and name, and a late process must not take a new one for the old.
//
// Rules are in decide*.go; documents has the store, runs the runs of schedules,
// Runner fires, and Schedules serves users.
package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	Interval time.Duration `toml:"interval"` // pause between two looks at all schedules; zero means 2s
	Lease    time.Duration `toml:"lease"`    // how long the others wait for a gateway that died; zero means 15s
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.Interval < 0 {
		errs = append(errs, errors.New("gateway.schedules.interval: must not be negative"))
	}
	if s.Lease < 0 {
		errs = append(errs, errors.New("gateway.schedules.lease: must not be negative"))
	}
	if cmp.Or(s.Lease, defaultLease) >= gracePeriod {
		errs = append(errs, fmt.Errorf("gateway.schedules.lease: must be less than %s, after which a firing was missed", gracePeriod))
	}
	return errors.Join(errs...)
}

const (
	defaultInterval = 2 * time.Second
	defaultLease    = 15 * time.Second
)

// Store stores schedules and runs.
type Store interface {
	store.Docs
	store.Lister
	// Run and Runs are those of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
}

// Submitter accepts runs.
type Submitter interface {
	// Submit is that of submit.Submitter.
	Submit(ctx context.Context, req submit.Request) (submit.Accepted, error)
	// Cancel is that of submit.Submitter.
	Cancel(ctx context.Context, run store.Run, by string) error
	// RunOfFiring is that of submit.Submitter.
	RunOfFiring(ctx context.Context, schedule, key string) (run string, err error)
	// ClaimKey is that of submit.Submitter.
	ClaimKey(ctx context.Context, owner, key, id, digest string) (repeated bool, err error)
}

// Scripts stores the code that firings take along.
type Scripts interface {
	// PinScript is that of submit.Submitter.
	PinScript(ctx context.Context, owner, sha256, id string) error
}

// Publisher publishes events.
type Publisher interface {
	// Publish returns when the events are stored for all consumers.
	Publish(ctx context.Context, events ...event.Event) error
}

// Deps are the dependencies of Schedules and Runner.
type Deps struct {
	Store     Store
	Submitter Submitter
	Scripts   Scripts
	Bus       Publisher
	Holder    string // of the lease of the process that fires
	Now       func() time.Time
	Log       *zap.Logger
}

// Schedules creates, changes and triggers schedules. It may be used by several
// goroutines, and by several processes on one store.
type Schedules struct {
	docs    documents
	runs    runs
	scripts Scripts
	wake    func()
	log     *zap.Logger
}

// New returns Schedules, which call wake after a change.
func New(d Deps, wake func()) *Schedules {
	return &Schedules{docs: documents{d.Store}, runs: runs{d.Store, d.Submitter, d.Now}, scripts: d.Scripts, wake: wake, log: d.Log}
}

// timestamp returns the time to store in a document.
func (k *Schedules) timestamp() time.Time { return k.runs.now().UTC().Round(0) }

// Find returns the schedule of an ID, or of a name of that owner's. The error is
// *MissingError where there is none.
func (k *Schedules) Find(ctx context.Context, owner, ref string) (Schedule, error) {
	return k.docs.find(ctx, owner, ref)
}

// List returns up to n schedules for which want is true, in the order of their IDs,
// after an ID.
func (k *Schedules) List(ctx context.Context, after string, n int, want func(Schedule) bool) ([]Schedule, error) {
	return k.docs.list(ctx, after, n, want)
}

// change changes a schedule, unless change reports that nothing is to be changed, and
// returns the schedule after that.
func (k *Schedules) change(ctx context.Context, owner, ref string, change func(s *Schedule, now time.Time) bool) (Schedule, error) {
	changed := false
	s, err := store.Update(ctx, k.docs.store, store.KindSchedule, refID(owner, ref), func(s Schedule, found bool) (Schedule, bool, error) {
		if err := checkExists(s, found, owner, ref); err != nil {
			return Schedule{}, false, err
		}
		changed = change(&s, k.timestamp())
		return s, changed, nil
	})
	if changed {
		k.wake()
	}
	return s, err
}

// Pause stops a schedule. The error is *MissingError where there is none.
func (k *Schedules) Pause(ctx context.Context, owner, ref, by string) (Schedule, error) {
	return k.change(ctx, owner, ref, func(s *Schedule, now time.Time) bool {
		if s.Paused {
			return false
		}
		s.Paused, s.PausedBy, s.Updated = true, by, now
		return true
	})
}

// Resume has a schedule fire from now on. The error is *MissingError where there is
// none.
func (k *Schedules) Resume(ctx context.Context, owner, ref string) (Schedule, error) {
	return k.change(ctx, owner, ref, func(s *Schedule, now time.Time) bool {
		if !s.Paused {
			return false
		}
		s.Paused, s.PausedBy, s.Updated, s.From = false, "", now, now
		return true
	})
}

// Delete ends a schedule, and reports whether there was one.
func (k *Schedules) Delete(ctx context.Context, owner, ref string) (existed bool, err error) {
	s, err := k.change(ctx, owner, ref, func(s *Schedule, now time.Time) bool {
		s.Deleted, s.Updated = now, now
		return true
	})
	if missing := new(MissingError); errors.As(err, &missing) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	k.log.Info("schedule deleted", zap.String("schedule", s.ID), zap.String("owner", s.Owner))
	return true, k.docs.purge(ctx, s)
}
