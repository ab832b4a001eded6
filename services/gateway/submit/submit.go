// Package submit accepts runs: it validates the requests of users, gives each run
// its ID, stores it and publishes it.
//
// # Order of the writes, and the reason for it
//
//  1. KindKey      owner and idempotency key → run, time, digest of the request
//     KindPin      digest of the code that is sent along and run → that the
//     run needs it: create-only too, and harmless if no run is made
//  2. KindOutbox   run → the event to publish
//  3. KindName     owner and name → run
//  4. KindSubmission run → the event again
//  5. bai.submitted is published, as it is stored in 4
//  6. KindOutbox is deleted
//
// Steps 1, 3 and 4 are create-only, step 5 has the same event ID when it is repeated,
// and step 6 may find nothing to delete. So any process can repeat each step. A process
// that crashes
//   - before 1 has left nothing;
//   - between 1 and 2 has left a key of a run that does not exist. A client that sends
//     the request again continues with that run. If no client does, no run was promised
//     and the key blocks nothing;
//   - between 2 and 6 has left an outbox entry with everything that 3 to 6 need.
//     RelayOutbox continues, in any process, and so does a client that sends the
//     request again. So no name belongs to a run that never exists;
//   - after 6 has left nothing to do.
//
// Two processes that do this for one key at the same time agree on one run in step 1.
// If one of them is delayed between 1 and 2, it writes an entry for a run that was
// already published, and publishes the same event again. Two runs that want one name
// meet in step 3: the second run's entry is deleted, and its user gets an error. Its
// key still belongs to it, so the same request gets the same answer.
//
// A set that submits no more withdraws the keys of runs that it was about to submit: a
// withdrawal is written instead of 1, so that either is first. See Withdraw.
//
// A request is accepted only after 5, and once 1 to 4 are on disk. If the broker loses
// 5 in a power cut, Resubmit publishes it again.
package submit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/internal/control/keymutex"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Settings are the operator's settings. The zero value works.
type Settings struct {
	PublishTimeout time.Duration `toml:"publish_timeout"` // how long a submit waits for Kafka; zero means 5s
	OutboxInterval time.Duration `toml:"outbox_interval"` // time between two checks for unpublished submissions; zero means 2s
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
	// Publish returns when the events are stored for all consumers. After an error,
	// some of them may be stored.
	Publish(ctx context.Context, events ...event.Event) error
}

// Scripts stores the code of users for their runs.
type Scripts interface {
	// Pin keeps code until a run has finished, and records that the run's owner uses
	// the code. The error is store.ErrNotFound for code that is not stored. Pin can be
	// repeated.
	Pin(ctx context.Context, owner, sha256, run string) (event.Bundle, error)
}

// Deps are the dependencies of a Submitter.
type Deps struct {
	Store       Store
	Bus         Publisher
	Scripts     Scripts // nil: runs cannot have code sent along
	Parser      parser.Parser
	IDs         *IDs
	StorageFull func() string                   // returns the reason why no run can be stored now, or ""; nil: there is always room
	Sync        func(ctx context.Context) error // returns when earlier writes survive a power cut; nil: they always do
	Now         func() time.Time
	Log         *zap.Logger
}

// Submitter accepts runs. Several goroutines may use it, and so may several processes
// on one store.
type Submitter struct {
	settings    Settings
	store       Store
	bus         Publisher
	scripts     Scripts
	parser      parser.Parser
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
	return &Submitter{
		settings: s, store: d.Store, bus: d.Bus, scripts: d.Scripts, parser: d.Parser, ids: d.IDs, storageFull: d.StorageFull,
		sync: d.Sync, now: d.Now, log: d.Log,
	}
}

// Accepted is a run that will reach its end, whatever fails.
type Accepted struct {
	Submission

	Run      string
	Repeated bool // the same request was sent before under this key
}

// claim is the value of documents of KindKey and KindName.
type claim struct {
	Run    string    `json:"run"`
	Owner  string    `json:"owner"`
	Value  string    `json:"value"` // the key or name
	Digest string    `json:"digest,omitempty"`
	At     time.Time `json:"at"`

	// Withdrawn is greater than 0 if no run is made under the key of a set until the set was
	// resumed that often. Run is an ID that no run has.
	Withdrawn int `json:"withdrawn,omitempty"`
}

// Submit accepts a request. The errors are *InvalidError, *UnsupportedError,
// *ScheduleError, *SetError, *NotUniqueError, *ForgottenError, *StorageFullError, *UnavailableError, and one
// that says so for a run that its set has withdrawn. Equal requests under one key are one run,
// however often and concurrently they are sent. Once that run is made, it is the answer, even
// if such a request would be refused by now.
func (in *Submitter) Submit(ctx context.Context, req Request) (Accepted, error) {
	at := in.now().UTC().Round(0)
	run, err := in.ids.New(at)
	if err != nil {
		return Accepted{}, &UnavailableError{Err: err}
	}
	sub, refusal := decide(in.parser, req, run, at)
	unlock, err := in.locks.Lock(ctx, cmp.Or(req.Key, run)+"\x00"+req.Owner)
	if err != nil {
		return Accepted{}, &UnavailableError{Err: err}
	}
	defer unlock()
	acc, err := in.acceptRequest(ctx, req, sub, refusal)
	if err != nil {
		return Accepted{}, err
	}
	in.log.Info("submitted", zap.String("run", acc.Run), zap.String("owner", req.Owner), zap.Bool("repeated", acc.Repeated))
	return acc, nil
}

// acceptRequest makes the run of a request. One that is refused may have its run already.
func (in *Submitter) acceptRequest(ctx context.Context, req Request, sub Submission, refusal error) (acc Accepted, err error) {
	if refusal != nil {
		acc, err = in.findMade(ctx, req, sub.Digest, refusal)
	} else {
		acc, err = in.makeRun(ctx, req, sub)
	}
	if err != nil {
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

// makeRun makes the run of a request, or continues with the one that the same request has
// begun to make.
func (in *Submitter) makeRun(ctx context.Context, req Request, sub Submission) (Accepted, error) {
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
	return acc, in.commit(ctx, acc)
}

// findMade returns the run that the same request has made under its key, and sees to it that
// the run is published. The error is the refusal if there is no such run.
func (in *Submitter) findMade(ctx context.Context, req Request, digest string, refusal error) (Accepted, error) {
	if req.Key == "" {
		return Accepted{}, refusal
	}
	first, _, found, err := store.Find[claim](ctx, in.store, store.KindIdempotencyKey, keyOf(req))
	switch {
	case err != nil:
		return Accepted{}, &UnavailableError{Err: err}
	case !found || first.Digest != digest && !req.fixedByKey():
		return Accepted{}, refusal
	}
	made, err := in.publishMade(ctx, first.Run)
	if err == nil && !made {
		err = refusal
	}
	return Accepted{Run: first.Run, Repeated: true}, err
}

// publishMade publishes a run if that is left to do, and reports false if there
// is no such run. It checks the outbox first: a run without an outbox entry and with a
// submission was published. The error is *ForgottenError if the records of the run were
// removed.
func (in *Submitter) publishMade(ctx context.Context, run string) (made bool, err error) {
	entry, _, waits, err := store.Find[event.Submitted](ctx, in.store, store.KindOutbox, run)
	if err == nil && waits {
		return true, in.publishSubmission(ctx, entry)
	}
	if err == nil {
		_, _, made, err = store.Find[event.Submitted](ctx, in.store, store.KindSubmission, run)
	}
	gone := false
	if err == nil && made {
		gone, err = in.isForgotten(ctx, run)
	}
	if err != nil {
		return false, &UnavailableError{Run: run, Err: err}
	}
	if gone {
		return false, &ForgottenError{Run: run}
	}
	return made, nil
}

// isForgotten reports whether the records of a run were removed.
func (in *Submitter) isForgotten(ctx context.Context, run string) (bool, error) {
	gone, err := store.RunForgotten(ctx, in.store, run)
	if err != nil || !gone {
		return false, err
	}
	_, err = in.store.Doc(ctx, store.KindImport, run) // it may be there again
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// checkStorage refuses a new request if there is no room. A repeated request already
// has its run.
func (in *Submitter) checkStorage(ctx context.Context, req Request) error {
	if in.storageFull == nil {
		return nil
	}
	reason := in.storageFull()
	if reason == "" {
		return nil
	}
	if req.Key != "" {
		if c, _, err := store.Get[claim](ctx, in.store, store.KindIdempotencyKey, keyOf(req)); err == nil && c.Withdrawn == 0 {
			return nil
		}
	}
	return &StorageFullError{Reason: reason}
}

// Resubmit publishes the submissions of runs that do not exist again. The broker may
// lose submissions when its machine stops. It returns their number, and can be
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

// republish publishes a submission again.
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

// claimRequestKey returns the claim of a request's key: a new one for the plan's run,
// or the earlier one if it is of the same request.
func (in *Submitter) claimRequestKey(ctx context.Context, req Request, plan Submission) (claim, error) {
	sub := plan.Submitted
	mine := claim{Run: sub.Run, Owner: req.Owner, Value: req.Key, Digest: plan.Digest, At: sub.Time}
	first, err := in.createClaim(ctx, store.KindIdempotencyKey, keyOf(req), mine)
	if err != nil {
		return claim{}, &UnavailableError{Err: err}
	}
	if first.Withdrawn > 0 {
		return in.claimWithdrawn(ctx, req, mine)
	}
	if first.Digest != plan.Digest && !req.fixedByKey() {
		return claim{}, &NotUniqueError{Field: "idempotency_key", Value: req.Key, Run: first.Run}
	}
	return first, nil
}

// commit does the remaining steps for a run, from the outbox on. An earlier request may
// have created the run already.
func (in *Submitter) commit(ctx context.Context, acc Accepted) error {
	if acc.Repeated {
		made, err := in.publishMade(ctx, acc.Run)
		if err != nil || made {
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

// pinAccepted pins the code that is sent along with a run.
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

// PinScript pins code for something with that ID that is not a run. The error is
// *InvalidError, *UnsupportedError or *UnavailableError.
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

// publishSubmission does the remaining steps for a run in the outbox.
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
		// The run is published and so accepted; RelayOutbox publishes it again.
		in.log.Warn("outbox entry left behind", zap.String("run", sub.Run), zap.Error(err))
	}
	return nil
}

// claimName claims the run's name. If another run has that name, it deletes the run's
// outbox entry.
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

// RestoreName gives an imported run the name that it had on its original platform. It
// reports false if another run of the owner has that name. A run without a name needs
// none.
func (in *Submitter) RestoreName(ctx context.Context, run store.Run) (named bool, err error) {
	if run.Name == "" {
		return true, nil
	}
	mine := claim{Run: run.ID, Owner: run.Owner, Value: run.Name, At: run.Created}
	first, err := in.createClaim(ctx, store.KindRunName, nameKey(run.Owner, run.Name), mine)
	return first.Run == run.ID, err
}

// createSubmission stores the submission of a run and returns the stored one. An
// earlier submission stays: two callers with the same request may have read it from
// files with different names, and must publish the same event.
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

// createClaim stores c under key, unless a claim is stored there already, and returns
// the stored one.
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

// ClaimKey claims an owner's idempotency key for something with that ID that is not a
// run, and reports whether the key was claimed before. The error is *NotUniqueError if
// the key belongs to another request.
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

// RunOfFiring returns the run that a schedule made under a key. The error is
// store.ErrNotFound if no run was made or will be.
func (in *Submitter) RunOfFiring(ctx context.Context, schedule, key string) (string, error) {
	c, _, err := store.Get[claim](ctx, in.store, store.KindIdempotencyKey, keyOf(Request{Key: key, Firing: &Firing{Schedule: schedule}}))
	if err != nil {
		return "", err
	}
	return c.Run, in.findRun(ctx, c.Run)
}

// findRun returns store.ErrNotFound for a run that was not made.
func (in *Submitter) findRun(ctx context.Context, run string) error {
	_, err := in.store.Doc(ctx, store.KindSubmission, run)
	if errors.Is(err, store.ErrNotFound) {
		_, err = in.store.Doc(ctx, store.KindOutbox, run) // RelayOutbox publishes it
	}
	return err
}

// RunToConfirm returns the run that a confirmation has made, or will make, under a key. The error is store.ErrNotFound if there is none.
func (in *Submitter) RunToConfirm(ctx context.Context, confirmation, key string) (string, error) {
	c, _, err := store.Get[claim](ctx, in.store, store.KindIdempotencyKey,
		keyOf(Request{Key: key, Confirms: &ConfirmingRun{Confirmation: confirmation}}))
	return c.Run, err
}

// RunByName returns the run with that name of the owner's, or store.ErrNotFound.
func (in *Submitter) RunByName(ctx context.Context, owner, name string) (string, error) {
	c, _, err := store.Get[claim](ctx, in.store, store.KindRunName, nameKey(owner, name))
	return c.Run, err
}
