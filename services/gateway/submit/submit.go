// Package submit accepts runs: it validates the requests of users, gives each run
// its ID, stores it and publishes it.
//
// # Order of the writes, and the reason for it
//
//  1. KindKey      owner and idempotency key → run, time, digest of the request
//     KindPin      digest of the code that is sent along and run → that the
//     run needs it: create-only too, and in nobody's way where no run comes to be
//  2. KindOutbox   run → the event to publish
//  3. KindName     owner and name → run
//  4. KindSubmission run → the event again
//  5. bai.submitted is published, as it lies in 4
//  6. KindOutbox is deleted
//
// 1, 3 and 4 are create-only, 5 has the same ID when it is repeated, and 6 deletes
// nothing where nothing is left, so any process can do each again. A process
// that dies
//   - before 1 has left nothing;
//   - between 1 and 2 has left a key of a run that does not exist. A client that
//     sends the request again continues with that run; if no client does, no run
//     was promised and the key blocks nothing;
//   - between 2 and 6 has left an outbox entry with all that 3 to 6 need: RelayOutbox
//     continues, here or in another process, and so does a client that sends the
//     request again. So no name is held for a run that never comes to be;
//   - after 6 has left nothing to do.
//
// Two that do this for one key at a time agree in 1 on one run. One that is
// overtaken between 1 and 2 writes an entry for a run that was published and
// forgotten, and publishes the same event once more. Two runs that want one name
// meet in 3: the second is forgotten (6) and its user gets an error; its key
// goes on standing for it, so the same request gets the same answer.
//
// An answer "accepted" comes after 5 only, and once 1 to 4 are on the disk. A
// broker that loses 5 with the power gets it again from Resubmit.
package submit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/control/keymutex"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are what an operator may choose. The zero value works.
type Settings struct {
	PublishTimeout time.Duration `toml:"publish_timeout"` // how long a submit waits for Kafka; zero means 5s
	OutboxInterval time.Duration `toml:"outbox_interval"` // pause between two looks at what is not published yet; zero means 2s
}

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	if s.PublishTimeout < 0 {
		errs = append(errs, errors.New("gateway.intake.publish_timeout: must not be negative"))
	}
	if s.OutboxInterval < 0 {
		errs = append(errs, errors.New("gateway.intake.outbox_interval: must not be negative"))
	}
	return errors.Join(errs...)
}

// Store stores runs before their projection exists.
type Store interface {
	store.Docs
	store.Lister
}

// Publisher publishes events.
type Publisher interface {
	// Publish returns when the events are stored for all consumers. With an
	// error some of them may be.
	Publish(ctx context.Context, events ...event.Event) error
}

// Scripts stores the code of users for their runs.
type Scripts interface {
	// Pin has code stay for a run until that is over, and keeps it for the run's
	// owner. It says store.ErrNotFound for code that is not kept. It can be
	// repeated.
	Pin(ctx context.Context, owner, sha256, run string) (event.Bundle, error)
}

// Deps are the dependencies of a Submitter.
type Deps struct {
	Store       Store
	Bus         Publisher
	Scripts     Scripts // nil: no code is taken along
	Parser      descriptors.Parser
	IDs         *IDs
	StorageFull func() string                   // says why there is no room for another run; nil: there always is
	Sync        func(ctx context.Context) error // returns when what was stored before survives a power cut; nil: it does at once
	Now         func() time.Time
	Log         *zap.Logger
}

// Submitter accepts runs. It may be used by several goroutines, and by several
// processes on one store.
type Submitter struct {
	settings    Settings
	store       Store
	bus         Publisher
	scripts     Scripts
	parser      descriptors.Parser
	ids         *IDs
	storageFull func() string
	sync        func(ctx context.Context) error
	now         func() time.Time
	log         *zap.Logger

	locks keymutex.Mutex
}

// New returns a Submitter.
func New(s Settings, d Deps) *Submitter {
	s.PublishTimeout = cmp.Or(s.PublishTimeout, 5*time.Second)
	s.OutboxInterval = cmp.Or(s.OutboxInterval, 2*time.Second)
	return &Submitter{settings: s, store: d.Store, bus: d.Bus, scripts: d.Scripts, parser: d.Parser, ids: d.IDs, storageFull: d.StorageFull, sync: d.Sync, now: d.Now, log: d.Log}
}

// Accepted is a run that will come to an end, whatever fails.
type Accepted struct {
	Submission

	Run      string
	Repeated bool // the key had been used for this before
}

// claim is the value of documents of KindKey and KindName.
type claim struct {
	Run    string    `json:"run"`
	Owner  string    `json:"owner"`
	Value  string    `json:"value"` // the key, or the name
	Digest string    `json:"digest,omitempty"`
	At     time.Time `json:"at"`
}

// Submit accepts a request. Its errors are *InvalidError, *UnsupportedError,
// *ScheduleError, *NotUniqueError, *StorageFullError, *UnavailableError. Equal requests under one key are one run,
// however often and concurrently they are made.
func (in *Submitter) Submit(ctx context.Context, req Request) (Accepted, error) {
	at := in.now().UTC().Round(0)
	run, err := in.ids.New(at)
	if err != nil {
		return Accepted{}, &UnavailableError{Err: err}
	}
	sub, err := decide(in.parser, req, run, at)
	if err != nil {
		return Accepted{}, err
	}
	unlock, err := in.locks.Lock(ctx, cmp.Or(req.Key, run)+"\x00"+req.Owner)
	if err != nil {
		return Accepted{}, &UnavailableError{Err: err}
	}
	defer unlock()
	acc, err := in.acceptRequest(ctx, req, sub)
	if err != nil {
		return Accepted{}, err
	}
	in.log.Info("submitted", zap.String("run", acc.Run), zap.String("owner", req.Owner), zap.Bool("repeated", acc.Repeated))
	return acc, nil
}

func (in *Submitter) acceptRequest(ctx context.Context, req Request, sub Submission) (Accepted, error) {
	acc := Accepted{Submission: sub, Run: sub.Submitted.Run}
	if err := in.checkStorage(ctx, req); err != nil {
		return Accepted{}, err
	}
	if req.Key != "" {
		first, err := in.claimRequestKey(ctx, req, sub)
		if err != nil {
			return Accepted{}, err
		}
		acc.Repeated = first.Run != acc.Run
		acc.Run, acc.Submission = first.Run, sub.forRun(first.Run, first.At)
	}
	if err := in.commit(ctx, acc); err != nil {
		return Accepted{}, err
	}
	if in.sync == nil {
		return acc, nil
	}
	if err := in.sync(ctx); err != nil {
		return Accepted{}, &UnavailableError{Run: acc.Run, Err: err}
	}
	return acc, nil
}

// checkStorage refuses a request for which there is no room. A request that was sent
// before has its run already.
func (in *Submitter) checkStorage(ctx context.Context, req Request) error {
	if in.storageFull == nil {
		return nil
	}
	reason := in.storageFull()
	if reason == "" {
		return nil
	}
	if req.Key != "" {
		if _, _, err := store.Get[claim](ctx, in.store, store.KindIdempotencyKey, keyOf(req)); err == nil {
			return nil
		}
	}
	return &StorageFullError{Reason: reason}
}

// Resubmit publishes the submissions of runs that do not exist once more: the broker
// lost them, as it does where the machine stops. It returns their number, and may be
// repeated.
func (in *Submitter) Resubmit(ctx context.Context, exists func(ctx context.Context, run string) (bool, error)) (int, error) {
	n := 0
	for d, err := range store.AllDocs(ctx, in.store, store.KindSubmission, "") {
		if err != nil {
			return n, err
		}
		found, err := exists(ctx, d.Key)
		if err == nil && !found {
			err = in.republish(ctx, d)
			n++
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// republish publishes a submission once more.
func (in *Submitter) republish(ctx context.Context, d store.Doc) error {
	var sub event.Submitted
	if err := json.Unmarshal(d.Value, &sub); err != nil {
		return fmt.Errorf("read what was submitted as run %s: %w", d.Key, err)
	}
	if err := in.bus.Publish(ctx, sub); err != nil {
		return fmt.Errorf("publish run %s again: %w", d.Key, err)
	}
	return nil
}

// claimRequestKey returns the claim of the key of a request: a new one of the plan's
// run, or the earlier one, if that is of the same request.
func (in *Submitter) claimRequestKey(ctx context.Context, req Request, plan Submission) (claim, error) {
	sub := plan.Submitted
	mine := claim{Run: sub.Run, Owner: req.Owner, Value: req.Key, Digest: plan.Digest, At: sub.Time}
	first, err := in.createClaim(ctx, store.KindIdempotencyKey, keyOf(req), mine)
	if err != nil {
		return claim{}, &UnavailableError{Err: err}
	}
	if first.Digest != plan.Digest && req.Firing == nil {
		return claim{}, &NotUniqueError{Field: "idempotency_key", Value: req.Key, Run: first.Run}
	}
	return first, nil
}

// commit does the remaining steps for a run, from the outbox on. A run of an
// earlier request may be there already.
func (in *Submitter) commit(ctx context.Context, acc Accepted) error {
	if acc.Repeated {
		done, err := in.isPublished(ctx, acc.Run)
		if err != nil || done {
			return err
		}
	}
	acc, err := in.pinAccepted(ctx, acc)
	if err != nil {
		return err
	}
	if acc.Original != nil {
		err := store.Create(ctx, in.store, store.KindOriginalDescriptor, acc.Run, acc.Original)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return &UnavailableError{Run: acc.Run, Err: err}
		}
	}
	err = store.Create(ctx, in.store, store.KindOutbox, acc.Run, acc.Submitted)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return &UnavailableError{Run: acc.Run, Err: err}
	}
	return in.publishSubmission(ctx, acc.Submitted)
}

// pinAccepted has the code that is sent along stay for a run.
func (in *Submitter) pinAccepted(ctx context.Context, acc Accepted) (Accepted, error) {
	code := acc.Submitted.Bundle
	if code == nil {
		return acc, nil
	}
	pinned, err := in.pinScript(ctx, acc.Submitted.Owner, code.SHA256, acc.Run)
	if err != nil {
		return acc, err
	}
	acc.Submitted.Bundle = &pinned
	return acc, nil
}

// PinScript has code stay for what has that ID and is no run, or says why not:
// *InvalidError, *UnsupportedError, *UnavailableError.
func (in *Submitter) PinScript(ctx context.Context, owner, sha256, id string) error {
	_, err := in.pinScript(ctx, owner, sha256, id)
	return err
}

func (in *Submitter) pinScript(ctx context.Context, owner, sha256, id string) (event.Bundle, error) {
	if in.scripts == nil {
		return event.Bundle{}, &UnsupportedError{Feature: "code that is sent along"}
	}
	pinned, err := in.scripts.Pin(ctx, owner, sha256, id)
	if errors.Is(err, store.ErrNotFound) {
		return event.Bundle{}, scriptNotFound(sha256)
	}
	if err != nil {
		return event.Bundle{}, &UnavailableError{Err: err}
	}
	return pinned, nil
}

// isPublished reports whether nothing is left to do for a run. The outbox is
// looked at first: a run that is not in it and has a submission was published.
func (in *Submitter) isPublished(ctx context.Context, run string) (bool, error) {
	for _, check := range []struct {
		kind    store.Kind
		missing bool // what it means that there is no such document
	}{{store.KindOutbox, true}, {store.KindSubmission, false}} {
		_, err := in.store.Doc(ctx, check.kind, run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, &UnavailableError{Run: run, Err: err}
		}
		if missing := err != nil; missing != check.missing {
			return false, nil
		}
	}
	return true, nil
}

// publishSubmission does the remaining steps for a run that is in the outbox.
func (in *Submitter) publishSubmission(ctx context.Context, sub event.Submitted) error {
	if err := in.claimName(ctx, sub); err != nil {
		return err
	}
	sub, err := in.createSubmission(ctx, sub)
	if err != nil {
		return &UnavailableError{Run: sub.Run, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, in.settings.PublishTimeout)
	defer cancel()
	if err := in.bus.Publish(ctx, sub); err != nil {
		return &UnavailableError{Run: sub.Run, Err: fmt.Errorf("publish it: %w", err)}
	}
	if err := in.deleteOutboxEntry(ctx, sub.Run); err != nil {
		// It is published, so it is accepted; RelayOutbox publishes it once more.
		in.log.Warn("outbox entry left behind", zap.String("run", sub.Run), zap.Error(err))
	}
	return nil
}

// claimName gives the run its name, or forgets the run where another has that name.
func (in *Submitter) claimName(ctx context.Context, sub event.Submitted) error {
	if sub.Name == "" {
		return nil
	}
	mine := claim{Run: sub.Run, Owner: sub.Owner, Value: sub.Name, At: sub.Time}
	first, err := in.createClaim(ctx, store.KindRunName, nameKey(sub.Owner, sub.Name), mine)
	if err != nil {
		return &UnavailableError{Run: sub.Run, Err: err}
	}
	if first.Run == sub.Run {
		return nil
	}
	if err := in.deleteOutboxEntry(ctx, sub.Run); err != nil {
		in.log.Warn("outbox entry left behind", zap.String("run", sub.Run), zap.Error(err))
	}
	return &NotUniqueError{Field: "name", Value: sub.Name, Run: first.Run}
}

// RestoreName gives a run that comes from another platform the name that it had
// there, and reports whether it has it now: false where another run of its owner
// has. A run without a name has that.
func (in *Submitter) RestoreName(ctx context.Context, run store.Run) (named bool, err error) {
	if run.Name == "" {
		return true, nil
	}
	mine := claim{Run: run.ID, Owner: run.Owner, Value: run.Name, At: run.Created}
	first, err := in.createClaim(ctx, store.KindRunName, nameKey(run.Owner, run.Name), mine)
	return first.Run == run.ID, err
}

// createSubmission stores the submission and returns it, or the one that was stored for
// the run before: two that carry one request through need not have read it from
// files of one name, but must say the same.
func (in *Submitter) createSubmission(ctx context.Context, sub event.Submitted) (event.Submitted, error) {
	err := store.Create(ctx, in.store, store.KindSubmission, sub.Run, sub)
	if !errors.Is(err, store.ErrExists) {
		return sub, err
	}
	stored, _, err := store.Get[event.Submitted](ctx, in.store, store.KindSubmission, sub.Run)
	if err != nil {
		return sub, err
	}
	return stored, nil
}

// createClaim stores c under key unless a claim is stored, and returns the stored one.
func (in *Submitter) createClaim(ctx context.Context, kind store.Kind, key string, c claim) (claim, error) {
	err := store.Create(ctx, in.store, kind, key, c)
	if !errors.Is(err, store.ErrExists) {
		return c, err
	}
	first, _, err := store.Get[claim](ctx, in.store, kind, key)
	return first, err
}

func (in *Submitter) deleteOutboxEntry(ctx context.Context, run string) error {
	return in.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOutbox, Key: run})
}

// ClaimKey has an owner's idempotency key stand for what has that ID and is no run,
// and reports whether it did before. It says *NotUniqueError where the key stands for
// another request.
func (in *Submitter) ClaimKey(ctx context.Context, owner, key, id, digest string) (repeated bool, err error) {
	mine := claim{Run: id, Owner: owner, Value: key, Digest: digest, At: in.now().UTC().Round(0)}
	err = store.Create(ctx, in.store, store.KindIdempotencyKey, deriveKey(owner, key), mine)
	if err == nil {
		return false, nil
	}
	first := claim{}
	if errors.Is(err, store.ErrExists) {
		first, _, err = store.Get[claim](ctx, in.store, store.KindIdempotencyKey, deriveKey(owner, key))
	}
	switch {
	case err != nil:
		return false, &UnavailableError{Err: err}
	case first.Digest != digest:
		return false, &NotUniqueError{Field: "idempotency_key", Value: key, Run: first.Run}
	}
	return true, nil
}

// RunOfFiring returns the run that a schedule made under a key, or store.ErrNotFound
// where there is none that will come to an end.
func (in *Submitter) RunOfFiring(ctx context.Context, schedule, key string) (string, error) {
	c, _, err := store.Get[claim](ctx, in.store, store.KindIdempotencyKey, keyOf(Request{Key: key, Firing: &Firing{Schedule: schedule}}))
	if err != nil {
		return "", err
	}
	if _, err = in.store.Doc(ctx, store.KindSubmission, c.Run); errors.Is(err, store.ErrNotFound) {
		_, err = in.store.Doc(ctx, store.KindOutbox, c.Run) // RelayOutbox publishes it
	}
	return c.Run, err
}

// RunByName returns the run that has a name of that owner's, or store.ErrNotFound.
func (in *Submitter) RunByName(ctx context.Context, owner, name string) (string, error) {
	c, _, err := store.Get[claim](ctx, in.store, store.KindRunName, nameKey(owner, name))
	return c.Run, err
}
