// Package schedule makes runs of schedules: descriptors that are to be run again
// and again.
//
// # What is written, in which order, and why
//
//   - KindPin, create-only: that the code which is sent along stays for as long as
//     the schedule names it. Where it comes to nothing it is swept away.
//   - KindEdition, create-only, named by schedule, version and digest: the request
//     that each firing makes. Then KindSchedule, by compare-and-set: what is asked
//     of the schedule, and which edition counts. A process that dies between the
//     two has left an edition that nothing names.
//   - A firing is submitted as any run, under a key made of the schedule and the
//     time: whoever makes it, however often, it is one run (see package intake).
//     Then it is said what was missed, under IDs of the same kind, and then
//     KindFirings, by compare-and-set, moves past it. A process that dies between
//     any of these has the rest done again, here or elsewhere, to the same effect.
//   - KindBackfill, create-only, is an order: it is carried out in the same way,
//     moved on, and deleted when nothing is left of it.
//
// One gateway fires at a time, the holder of a lease. It is no lock: one that
// lost the lease while it slept makes at most the same firings, and its word on
// what was fired is refused by its fence.
//
// A schedule that is deleted leaves a document that says so: its ID is that of its
// owner and name, and who comes late must not take a new one for the old.
package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	Interval time.Duration `toml:"interval"` // pause between two looks at all schedules; zero means 2s
	Lease    time.Duration `toml:"lease"`    // how long a gateway that is gone is waited for; zero means 15s
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

// Store keeps schedules, and knows their runs.
type Store interface {
	store.Docs
	store.Lister
	// Run and Runs are those of store.Runs.
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.RunFilter, token string, limit int) (runs []store.Run, next string, err error)
}

// Submitter takes runs in.
type Submitter interface {
	// Submit is that of intake.Intake.
	Submit(ctx context.Context, req submit.Request) (submit.Accepted, error)
	// Cancel is that of intake.Intake.
	Cancel(ctx context.Context, run store.Run, by string) error
	// RunOfFiring is that of intake.Intake.
	RunOfFiring(ctx context.Context, schedule, key string) (run string, err error)
	// ClaimKey is that of intake.Intake.
	ClaimKey(ctx context.Context, owner, key, id, digest string) (repeated bool, err error)
}

// Scripts keeps code that firings take along.
type Scripts interface {
	// PinScript is that of intake.Intake.
	PinScript(ctx context.Context, owner, sha256, id string) error
}

// Publisher says events.
type Publisher interface {
	// Publish returns when the events are kept for all who hear them.
	Publish(ctx context.Context, events ...event.Event) error
}

// Deps are what Schedules need from others.
type Deps struct {
	Store     Store
	Submitter Submitter
	Scripts   Scripts
	Bus       Publisher
	Holder    string // names this process among all that fire
	Now       func() time.Time
	Log       *zap.Logger
}

// Schedules keeps schedules and makes their runs. It may be used by several
// goroutines, and by several processes on one store.
type Schedules struct {
	settings  Settings
	store     Store
	submitter Submitter
	scripts   Scripts
	bus       Publisher
	holder    string
	now       func() time.Time
	log       *zap.Logger

	wakeups    chan struct{} // something was asked of a schedule in this process
	lease      store.Lease
	firingLogs map[string]storedFiringLog // ledgers as this process last wrote them, under the lease
}

// New returns Schedules.
func New(s Settings, d Deps) *Schedules {
	s.Interval, s.Lease = cmp.Or(s.Interval, defaultInterval), cmp.Or(s.Lease, defaultLease)
	return &Schedules{
		settings: s, store: d.Store, submitter: d.Submitter, scripts: d.Scripts, bus: d.Bus, holder: d.Holder, now: d.Now, log: d.Log,
		wakeups: make(chan struct{}, 1), firingLogs: make(map[string]storedFiringLog),
	}
}

// Schedule is what is asked of a schedule: the document KindSchedule.
type Schedule struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"`
	Version   int    `json:"version"` // of the descriptor
	Digest    string `json:"digest"`  // of the edition of that version

	store.ScheduleRetention

	Rules       Rules             `json:"rules"`
	Description string            `json:"description,omitempty"`
	File        string            `json:"file,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`

	Paused   bool      `json:"paused,omitempty"`
	PausedBy string    `json:"paused_by,omitempty"`
	From     time.Time `json:"from"` // firings up to then are not this schedule's
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Keys     []string  `json:"keys,omitempty"` // of the requests that were last carried out
}

// Find returns the schedule of an ID, or of a name of that owner's, or says
// *MissingError.
func (k *Schedules) Find(ctx context.Context, owner, ref string) (Schedule, error) {
	s, _, err := k.find(ctx, owner, ref)
	return s, err
}

func (k *Schedules) find(ctx context.Context, owner, ref string) (Schedule, int64, error) {
	id := strings.ToLower(ref)
	if !submit.IsRunID(ref) {
		id = IDOf(owner, ref, "")
	}
	s, version, err := store.Get[Schedule](ctx, k.store, store.KindSchedule, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !s.Deleted.IsZero() || ref == "" {
		return Schedule{}, version, &MissingError{Ref: ref, Owner: owner}
	}
	return s, version, err
}

// List returns up to n schedules for which want is true, in the order of their IDs,
// after an ID.
func (k *Schedules) List(ctx context.Context, after string, n int, want func(Schedule) bool) ([]Schedule, error) {
	var all []Schedule
	for d, err := range k.documents(ctx, after) {
		var s Schedule
		if err == nil {
			err = json.Unmarshal(d.Value, &s)
		}
		if err != nil {
			return nil, fmt.Errorf("read schedule %q: %w", d.Key, err)
		}
		if s.Deleted.IsZero() && want(s) {
			all = append(all, s)
		}
		if len(all) == n {
			break
		}
	}
	return all, nil
}

// change carries out a change of a schedule, which is told whether there is
// anything to change, and returns what the schedule is then.
func (k *Schedules) change(ctx context.Context, owner, ref string, change func(s *Schedule, now time.Time) bool) (Schedule, error) {
	for {
		s, version, err := k.find(ctx, owner, ref)
		if err != nil {
			return Schedule{}, err
		}
		if !change(&s, k.now().UTC().Round(0)) {
			return s, nil
		}
		_, err = store.Replace(ctx, k.store, store.KindSchedule, s.ID, version, s)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		k.wakeUp()
		return s, err
	}
}

// Pause has a schedule fire no more. It says *MissingError.
func (k *Schedules) Pause(ctx context.Context, owner, ref, by string) (Schedule, error) {
	return k.change(ctx, owner, ref, func(s *Schedule, now time.Time) bool {
		if s.Paused {
			return false
		}
		s.Paused, s.PausedBy, s.Updated = true, by, now
		return true
	})
}

// Resume has a schedule fire from now on. It says *MissingError.
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
	return true, k.purge(ctx, s)
}

// purge removes what lies beside a schedule that is deleted, and what there is
// of one that came after it stays. What is left behind is in nobody's way.
func (k *Schedules) purge(ctx context.Context, s Schedule) error {
	editions, err := k.docsOf(ctx, store.KindScheduleVersion, s.ID)
	if err != nil {
		return err
	}
	backfills, err := k.backfills(ctx, s.ID)
	if err != nil {
		return err
	}
	old := slices.DeleteFunc(editions, func(d store.Doc) bool { return d.Key > editionKey(s.ID, s.Version, "~") })
	for _, o := range backfills {
		if !o.At.After(s.Deleted) {
			old = append(old, store.Doc{Kind: store.KindBackfill, Key: o.key})
		}
	}
	for _, d := range old {
		if err := k.store.DeleteDoc(ctx, store.Doc{Kind: d.Kind, Key: d.Key}); err != nil {
			return fmt.Errorf("delete %s %q: %w", d.Kind, d.Key, err)
		}
	}
	return nil
}

// page is how many documents are read at once.
const page = 200

// docsOf returns the documents of a kind whose keys begin with a schedule's ID.
func (k *Schedules) docsOf(ctx context.Context, kind store.Kind, id string) ([]store.Doc, error) {
	var all []store.Doc
	for after := id + "!"; ; {
		docs, err := k.store.Docs(ctx, kind, after, page)
		if err != nil {
			return nil, fmt.Errorf("list %s of schedule %s: %w", kind, id, err)
		}
		for _, d := range docs {
			if !strings.HasPrefix(d.Key, id+"!") {
				return all, nil
			}
			all, after = append(all, d), d.Key
		}
		if len(docs) < page {
			return all, nil
		}
	}
}

// wakeUp has schedules looked at now, where it is this process that fires.
func (k *Schedules) wakeUp() {
	select {
	case k.wakeups <- struct{}{}:
	default:
	}
}
