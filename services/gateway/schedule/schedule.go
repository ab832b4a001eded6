// Package schedule runs descriptors at the times of a schedule.
//
// # Order of the writes
//
//   - KindPin, create-only: keeps the code of the schedule for as long as the schedule
//     names that code. The sweep removes a pin of a schedule that does not exist.
//   - KindScheduleVersion, create-only, named by schedule, version and digest: the
//     request that each firing makes. Then KindSchedule, by compare-and-set, names the
//     current edition. A process that crashes between the two leaves an edition that no
//     schedule names.
//   - A firing is submitted like any run, under a key made of the schedule and the
//     time: it is one run, however many processes submit it (see package submit). If the
//     descriptor has a sweep, a firing is a set whose ID is derived from the same key
//     (see package set), and its ID is first added to a document of KindFirings. Then
//     events report the missed firings, under IDs of the same kind, and then
//     KindFirings, by compare-and-set, moves past them. After a crash between any of
//     these, a process repeats the rest, with the same effect.
//   - KindBackfill, create-only, is an order. It is carried out in the same way, moved
//     on, and deleted when nothing is left of it.
//
// Only one process fires at a time, the holder of a lease. A process that lost the
// lease without noticing makes at most the same firings, and the fence refuses its
// write of KindFirings.
//
// A deleted schedule leaves a document with the time of its deletion. Its ID is derived
// from its owner and name, and a late process must not mistake a new schedule for the
// old one.
//
// The rules are in decide*.go; documents accesses the store, runs the runs and
// sets of schedules, Runner fires, and Schedules serves requests of users.
package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/set"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works.
type Settings struct {
	Interval time.Duration `toml:"interval"` // time between two checks of all schedules; zero means 2s
	Lease    time.Duration `toml:"lease"`    // time after which another gateway takes over from a crashed one; zero means 15s
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
	// Run and Runs do the same as those of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
}

// Submitter accepts runs.
type Submitter interface {
	// Submit does the same as submit.Submitter.Submit.
	Submit(ctx context.Context, req submit.Request) (submit.Accepted, error)
	// Cancel does the same as submit.Submitter.Cancel.
	Cancel(ctx context.Context, run store.Run, by string) error
	// RunOfFiring does the same as submit.Submitter.RunOfFiring.
	RunOfFiring(ctx context.Context, schedule, key string) (run string, err error)
	// ClaimKey does the same as submit.Submitter.ClaimKey.
	ClaimKey(ctx context.Context, owner, key, id, digest string) (repeated bool, err error)
}

// Sets makes, finds and cancels sets.
type Sets interface {
	setReader

	// Put does the same as set.Sets.Put.
	Put(ctx context.Context, req submit.Request, asked *submit.SetError) (s set.Set, repeated bool, err error)
	// Cancel does the same as set.Sets.Cancel.
	Cancel(ctx context.Context, owner, ref, by string) (set.Set, error)
}

// setReader finds sets.
type setReader interface {
	// Find does the same as set.Sets.Find.
	Find(ctx context.Context, owner, ref string) (set.Set, error)
	// Unfinished does the same as set.Sets.Unfinished.
	Unfinished(ctx context.Context, schedule string) ([]set.Set, error)
}

// Scripts stores the code that firings send along.
type Scripts interface {
	// PinScript does the same as submit.Submitter.PinScript.
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
	Sets      Sets
	Scripts   Scripts
	Bus       Publisher
	Holder    string // name of this process as holder of the lease
	Now       func() time.Time
	Log       *zap.Logger
}

// Schedules creates, changes and triggers schedules. Several goroutines may use it, and
// so may several processes on one store.
type Schedules struct {
	docs    documents
	runs    runs
	scripts Scripts
	wake    func()
	log     *zap.Logger
}

// New returns Schedules that call wake after a change.
func New(d Deps, wake func()) *Schedules {
	return &Schedules{docs: documents{d.Store}, runs: runs{d.Store, d.Submitter, d.Sets, d.Now}, scripts: d.Scripts, wake: wake, log: d.Log}
}

// timestamp returns the time to store in a document.
func (k *Schedules) timestamp() time.Time { return k.runs.now().UTC().Round(0) }

// Find returns the schedule with that ID, or with that name of the owner's. The error
// is *MissingError if there is none.
func (k *Schedules) Find(ctx context.Context, owner, ref string) (Schedule, error) {
	return k.docs.find(ctx, owner, ref)
}

// List returns up to n schedules for which want is true, with IDs after an ID, in the
// order of their IDs.
func (k *Schedules) List(ctx context.Context, after string, n int, want func(Schedule) bool) ([]Schedule, error) {
	return k.docs.list(ctx, after, n, want)
}

// change changes a schedule, unless the function change reports that there is nothing
// to change, and returns the schedule after that.
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

// Pause stops a schedule. The error is *MissingError if there is none.
func (k *Schedules) Pause(ctx context.Context, owner, ref, by string) (Schedule, error) {
	return k.change(ctx, owner, ref, func(s *Schedule, now time.Time) bool {
		if s.Paused {
			return false
		}
		s.Paused, s.PausedBy, s.Updated = true, by, now
		return true
	})
}

// Resume restarts a paused schedule, without firings for the pause. The error is
// *MissingError if there is none.
func (k *Schedules) Resume(ctx context.Context, owner, ref string) (Schedule, error) {
	return k.change(ctx, owner, ref, func(s *Schedule, now time.Time) bool {
		if !s.Paused {
			return false
		}
		s.Paused, s.PausedBy, s.Updated, s.From = false, "", now, now
		return true
	})
}

// Delete deletes a schedule, and reports whether it existed.
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
