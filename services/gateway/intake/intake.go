// Package intake takes runs in: it validates what users ask for, gives each run
// its ID, remembers it and says so.
//
// # What is written, in which order, and why
//
//  1. KindKey      owner and idempotency key → run, time, digest of the request
//     KindPin      digest of the code that is sent along and run → that the
//     run needs it: create-only too, and in nobody's way where no run comes to be
//  2. KindOutbox   run → what is to be said of it
//  3. KindName     owner and name → run
//  4. KindSubmission run → what was submitted
//  5. bai.submitted is published, as it lies in 4
//  6. KindOutbox is deleted
//
// 1, 3 and 4 are create-only, 5 is told from its repetition by its ID, and 6 is
// nothing where nothing is left, so each can be done again by anybody. A process
// that dies
//   - before 1 has left nothing;
//   - between 1 and 2 has left a key that stands for a run that is not. Who sends
//     the request again continues with that run; if nobody does, nobody was
//     promised anything and nothing is in anybody's way;
//   - between 2 and 6 has left an outbox entry with all that 3 to 6 need: Sweep
//     continues, here or in another process, and so does who sends the request
//     again. So no name is held for a run that never comes to be;
//   - after 6 has left nothing to do.
//
// Two that do this for one key at a time agree in 1 on one run. One that is
// overtaken between 1 and 2 writes an entry for a run that was published and
// forgotten, and publishes the same event once more. Two runs that want one name
// are told apart in 3: the second is forgotten (6) and its user told; its key
// goes on standing for it, so the same request gets the same answer.
//
// An answer "accepted" comes after 5 only, and once 1 to 4 are on the disk. A
// broker that loses 5 with the power is told again by Resubmit.
package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors"
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

// Store keeps what is remembered of runs before they are known to anybody.
type Store interface {
	store.Docs
	store.Lister
}

// Publisher says events.
type Publisher interface {
	// Publish returns when the events are kept for all who hear them. With an
	// error some of them may be.
	Publish(ctx context.Context, events ...event.Event) error
}

// Scripts keeps code that is sent along with runs.
type Scripts interface {
	// Pin has code stay for a run until that is over, and keeps it for the run's
	// owner. It says store.ErrNotFound for code that is not kept. It can be
	// repeated.
	Pin(ctx context.Context, owner, sha256, run string) (event.Script, error)
}

// Deps are what an Intake needs from others.
type Deps struct {
	Store   Store
	Bus     Publisher
	Scripts Scripts // nil: no code is taken along
	Parser  descriptors.Parser
	IDs     *IDs
	Room    func() string                   // says why there is no room for another run; nil: there always is
	Sync    func(ctx context.Context) error // returns when what was stored before survives a power cut; nil: it does at once
	Now     func() time.Time
	Log     *zap.Logger
}

// Intake takes runs in. It may be used by several goroutines, and by several
// processes on one store.
type Intake struct {
	settings Settings
	store    Store
	bus      Publisher
	scripts  Scripts
	parser   descriptors.Parser
	ids      *IDs
	room     func() string
	sync     func(ctx context.Context) error
	now      func() time.Time
	log      *zap.Logger

	turns turns
}

// New returns an Intake.
func New(s Settings, d Deps) *Intake {
	s.PublishTimeout = cmp.Or(s.PublishTimeout, 5*time.Second)
	s.OutboxInterval = cmp.Or(s.OutboxInterval, 2*time.Second)
	return &Intake{settings: s, store: d.Store, bus: d.Bus, scripts: d.Scripts, parser: d.Parser, ids: d.IDs, room: d.Room, sync: d.Sync, now: d.Now, log: d.Log}
}

// Accepted is a run that will come to an end, whatever fails.
type Accepted struct {
	Plan

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

// Submit accepts a request, or says why not: *InvalidError, *UnsupportedError,
// *ScheduleError, *TakenError, *FullError, *UnavailableError. Equal requests under one key are one run,
// however often and concurrently they are made.
func (in *Intake) Submit(ctx context.Context, req Request) (Accepted, error) {
	at := in.now().UTC().Round(0)
	run, err := in.ids.New(at)
	if err != nil {
		return Accepted{}, &UnavailableError{Err: err}
	}
	plan, err := Decide(in.parser, req, run, at)
	if err != nil {
		return Accepted{}, err
	}
	give, err := in.turns.take(ctx, cmp.Or(req.Key, run)+"\x00"+req.Owner)
	if err != nil {
		return Accepted{}, &UnavailableError{Err: err}
	}
	defer give()
	acc, err := in.accept(ctx, req, plan)
	if err != nil {
		return Accepted{}, err
	}
	in.log.Info("submitted", zap.String("run", acc.Run), zap.String("owner", req.Owner), zap.Bool("repeated", acc.Repeated))
	return acc, nil
}

func (in *Intake) accept(ctx context.Context, req Request, plan Plan) (Accepted, error) {
	acc := Accepted{Plan: plan, Run: plan.Submitted.Run}
	if err := in.full(ctx, req); err != nil {
		return Accepted{}, err
	}
	if req.Key != "" {
		first, err := in.claim(ctx, req, plan)
		if err != nil {
			return Accepted{}, err
		}
		acc.Repeated = first.Run != acc.Run
		acc.Run, acc.Plan = first.Run, plan.as(first.Run, first.At)
	}
	if err := in.remember(ctx, acc); err != nil {
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

// full says why there is no room for what a request asks for. What was asked for
// before has its run already.
func (in *Intake) full(ctx context.Context, req Request) error {
	if in.room == nil {
		return nil
	}
	why := in.room()
	if why == "" {
		return nil
	}
	if req.Key != "" {
		if _, _, err := store.Get[claim](ctx, in.store, store.KindKey, keyOf(req)); err == nil {
			return nil
		}
	}
	return &FullError{Why: why}
}

// Resubmit publishes once more what was submitted and is of no run that is known:
// the broker lost it, as it does where the machine stops. It returns how many those
// were, and may be repeated.
func (in *Intake) Resubmit(ctx context.Context, known func(ctx context.Context, run string) (bool, error)) (int, error) {
	const page = 100
	n := 0
	for after := ""; ; {
		docs, err := in.store.Docs(ctx, store.KindSubmission, after, page)
		if err != nil {
			return n, fmt.Errorf("look what was submitted: %w", err)
		}
		for _, d := range docs {
			after = d.Key
			there, err := known(ctx, d.Key)
			if err == nil && !there {
				err = in.republish(ctx, d)
				n++
			}
			if err != nil {
				return n, err
			}
		}
		if len(docs) < page {
			return n, nil
		}
	}
}

// republish publishes a submission once more.
func (in *Intake) republish(ctx context.Context, d store.Doc) error {
	var sub event.Submitted
	if err := json.Unmarshal(d.Value, &sub); err != nil {
		return fmt.Errorf("read what was submitted as run %s: %w", d.Key, err)
	}
	if err := in.bus.Publish(ctx, sub); err != nil {
		return fmt.Errorf("publish run %s again: %w", d.Key, err)
	}
	return nil
}

// claim returns what the key of a request stands for: from now on for the
// plan's run, or for what it stood for before, if that is the same request.
func (in *Intake) claim(ctx context.Context, req Request, plan Plan) (claim, error) {
	sub := plan.Submitted
	mine := claim{Run: sub.Run, Owner: req.Owner, Value: req.Key, Digest: plan.Digest, At: sub.Time}
	first, err := in.first(ctx, store.KindKey, keyOf(req), mine)
	if err != nil {
		return claim{}, &UnavailableError{Err: err}
	}
	if first.Digest != plan.Digest && req.Firing == nil {
		return claim{}, &TakenError{Field: "idempotency_key", Value: req.Key, Run: first.Run}
	}
	return first, nil
}

// remember does what is left to do for a run, from the outbox on. A run of an
// earlier request may be there already.
func (in *Intake) remember(ctx context.Context, acc Accepted) error {
	if acc.Repeated {
		done, err := in.published(ctx, acc.Run)
		if err != nil || done {
			return err
		}
	}
	acc, err := in.pin(ctx, acc)
	if err != nil {
		return err
	}
	if acc.Original != nil {
		err := store.Create(ctx, in.store, store.KindOriginal, acc.Run, acc.Original)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return &UnavailableError{Run: acc.Run, Err: err}
		}
	}
	err = store.Create(ctx, in.store, store.KindOutbox, acc.Run, acc.Submitted)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return &UnavailableError{Run: acc.Run, Err: err}
	}
	return in.finish(ctx, acc.Submitted)
}

// pin has the code that is sent along stay for a run.
func (in *Intake) pin(ctx context.Context, acc Accepted) (Accepted, error) {
	code := acc.Submitted.Script
	if code == nil {
		return acc, nil
	}
	pinned, err := in.hold(ctx, acc.Submitted.Owner, code.SHA256, acc.Run)
	if err != nil {
		return acc, err
	}
	acc.Submitted.Script = &pinned
	return acc, nil
}

// Hold has code stay for what has that ID and is no run, or says why not:
// *InvalidError, *UnsupportedError, *UnavailableError.
func (in *Intake) Hold(ctx context.Context, owner, sha256, id string) error {
	_, err := in.hold(ctx, owner, sha256, id)
	return err
}

func (in *Intake) hold(ctx context.Context, owner, sha256, id string) (event.Script, error) {
	if in.scripts == nil {
		return event.Script{}, &UnsupportedError{What: "code that is sent along"}
	}
	pinned, err := in.scripts.Pin(ctx, owner, sha256, id)
	if errors.Is(err, store.ErrNotFound) {
		return event.Script{}, absent(sha256)
	}
	if err != nil {
		return event.Script{}, &UnavailableError{Err: err}
	}
	return pinned, nil
}

// published reports whether nothing is left to do for a run. The outbox is
// looked at first: a run that is not in it and has a submission was published.
func (in *Intake) published(ctx context.Context, run string) (bool, error) {
	for _, look := range []struct {
		kind    store.Kind
		missing bool // what it means that there is no such document
	}{{store.KindOutbox, true}, {store.KindSubmission, false}} {
		_, err := in.store.Doc(ctx, look.kind, run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, &UnavailableError{Run: run, Err: err}
		}
		if missing := err != nil; missing != look.missing {
			return false, nil
		}
	}
	return true, nil
}

// finish does what is left to do for a run that is in the outbox.
func (in *Intake) finish(ctx context.Context, sub event.Submitted) error {
	if err := in.name(ctx, sub); err != nil {
		return err
	}
	sub, err := in.submission(ctx, sub)
	if err != nil {
		return &UnavailableError{Run: sub.Run, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, in.settings.PublishTimeout)
	defer cancel()
	if err := in.bus.Publish(ctx, sub); err != nil {
		return &UnavailableError{Run: sub.Run, Err: fmt.Errorf("publish it: %w", err)}
	}
	if err := in.forget(ctx, sub.Run); err != nil {
		// It is published, so it is accepted; Sweep publishes it once more.
		in.log.Warn("outbox entry left behind", zap.String("run", sub.Run), zap.Error(err))
	}
	return nil
}

// name gives the run its name, or forgets the run where another has that name.
func (in *Intake) name(ctx context.Context, sub event.Submitted) error {
	if sub.Name == "" {
		return nil
	}
	mine := claim{Run: sub.Run, Owner: sub.Owner, Value: sub.Name, At: sub.Time}
	first, err := in.first(ctx, store.KindName, NameOf(sub.Owner, sub.Name), mine)
	if err != nil {
		return &UnavailableError{Run: sub.Run, Err: err}
	}
	if first.Run == sub.Run {
		return nil
	}
	if err := in.forget(ctx, sub.Run); err != nil {
		in.log.Warn("outbox entry left behind", zap.String("run", sub.Run), zap.Error(err))
	}
	return &TakenError{Field: "name", Value: sub.Name, Run: first.Run}
}

// Restore gives a run that comes from another platform the name that it had
// there, and reports whether it has it now: false where another run of its owner
// has. A run without a name has that.
func (in *Intake) Restore(ctx context.Context, run store.Run) (named bool, err error) {
	if run.Name == "" {
		return true, nil
	}
	mine := claim{Run: run.ID, Owner: run.Owner, Value: run.Name, At: run.Created}
	first, err := in.first(ctx, store.KindName, NameOf(run.Owner, run.Name), mine)
	return first.Run == run.ID, err
}

// submission stores what was submitted and returns it, or what was stored for
// the run before: two that carry one request through need not have read it from
// files of one name, but must say the same.
func (in *Intake) submission(ctx context.Context, sub event.Submitted) (event.Submitted, error) {
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

// first stores c under key unless something is there, and returns what is.
func (in *Intake) first(ctx context.Context, kind store.Kind, key string, c claim) (claim, error) {
	err := store.Create(ctx, in.store, kind, key, c)
	if !errors.Is(err, store.ErrExists) {
		return c, err
	}
	first, _, err := store.Get[claim](ctx, in.store, kind, key)
	return first, err
}

func (in *Intake) forget(ctx context.Context, run string) error {
	return in.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOutbox, Key: run})
}

// Claim has an owner's idempotency key stand for what has that ID and is no run,
// and reports whether it did before. It says *TakenError where the key stands for
// another request.
func (in *Intake) Claim(ctx context.Context, owner, key, id, digest string) (repeated bool, err error) {
	mine := claim{Run: id, Owner: owner, Value: key, Digest: digest, At: in.now().UTC().Round(0)}
	err = store.Create(ctx, in.store, store.KindKey, KeyOf(owner, key), mine)
	if err == nil {
		return false, nil
	}
	first := claim{}
	if errors.Is(err, store.ErrExists) {
		first, _, err = store.Get[claim](ctx, in.store, store.KindKey, KeyOf(owner, key))
	}
	switch {
	case err != nil:
		return false, &UnavailableError{Err: err}
	case first.Digest != digest:
		return false, &TakenError{Field: "idempotency_key", Value: key, Run: first.Run}
	}
	return true, nil
}

// Fired returns the run that a schedule made under a key, or store.ErrNotFound
// where there is none that will come to an end.
func (in *Intake) Fired(ctx context.Context, schedule, key string) (string, error) {
	c, _, err := store.Get[claim](ctx, in.store, store.KindKey, keyOf(Request{Key: key, Firing: &Firing{Schedule: schedule}}))
	if err != nil {
		return "", err
	}
	if _, err = in.store.Doc(ctx, store.KindSubmission, c.Run); errors.Is(err, store.ErrNotFound) {
		_, err = in.store.Doc(ctx, store.KindOutbox, c.Run) // Sweep carries it through
	}
	return c.Run, err
}

// Named returns the run that has a name of that owner's, or store.ErrNotFound.
func (in *Intake) Named(ctx context.Context, owner, name string) (string, error) {
	c, _, err := store.Get[claim](ctx, in.store, store.KindName, NameOf(owner, name))
	return c.Run, err
}
