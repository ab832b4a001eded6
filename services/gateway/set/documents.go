package set

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Set is the runs of one sweep: the document of KindSet. It stays small, whatever the
// number of its cells.
type Set struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"`
	Key       string `json:"key,omitempty"` // idempotency key of the request
	Digest    string `json:"digest"`        // digest of the request
	RerunOf   string `json:"rerun_of,omitempty"`

	store.SetRetention

	Schedule string    `json:"schedule,omitempty"` // the schedule that fired; empty for a set of a user's request
	Firing   time.Time `json:"firing,omitzero"`    // the time it fired for

	Labels      map[string]string `json:"labels,omitempty"`
	Notify      []string          `json:"notify,omitempty"` // names of receivers of a notice of the end
	File        string            `json:"file,omitempty"`
	Description string            `json:"description,omitempty"`

	Entries     int    `json:"entries,omitempty"` // of a suite; 0 for a sweep
	Cells       int    `json:"cells"`
	Runs        int    `json:"runs"`             // with warm-ups
	Repetitions int    `json:"repetitions"`      // of the cells of a suite that have the most
	Warmup      int    `json:"warmup,omitempty"` // likewise
	Order       string `json:"order"`
	MaxParallel int    `json:"max_parallel,omitempty"`
	OnFailure   string `json:"on_failure"`

	StopWhen *StopWhen `json:"stop_when,omitempty"` // nil: each cell has all repetitions

	State      State         `json:"state"`
	Outcome    event.Outcome `json:"outcome,omitempty"` // of a finished set
	Message    string        `json:"message,omitempty"` // why the set stopped
	CanceledBy string        `json:"canceled_by,omitempty"`

	Next     int         `json:"next"`             // runs with ordinals below it were made active, or wait or were skipped with their cells
	Active   []ActiveRun `json:"active,omitempty"` // in the order in which they became active
	Counts   Counts      `json:"counts"`
	Failures []Failure   `json:"failures,omitempty"` // the first ones
	Times    Times       `json:"times,omitzero"`

	Withdrawn []int `json:"withdrawn,omitempty"` // ordinals of runs that were active when the set ended, and not submitted
	Resumes   int   `json:"resumes,omitempty"`   // how often the set was resumed

	Refused []byte `json:"refused,omitempty"` // a bit for each run that was refused, by ordinal, the lowest first

	CellStops

	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Fence   int64     `json:"fence,omitempty"` // fence of the lease under which a pass last wrote the set

	Version int64 `json:"-"` // of the document
}

// request is the request that the runs of a set are made of: the document of
// KindSetRequest.
type request struct {
	Namespace  string            `json:"namespace"`
	Descriptor string            `json:"descriptor"` // text with the overrides applied, and its sweep
	File       string            `json:"file,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Script     string            `json:"script,omitempty"`

	Provenance *event.Provenance `json:"origination,omitempty"`

	Selected []byte `json:"selected,omitempty"` // a bit for each run of the sweep that the set makes, the lowest first; nil: all
}

func requestKey(id, digest string) string { return id + "!" + digest }

// runKey returns the key under which a set submits a run.
func runKey(ordinal int) string { return strconv.Itoa(ordinal) }

// submission returns the request for a run of the set.
func (l loaded) submission(s Set, ordinal int) submit.Request {
	r, plan, run := l.request, l.plan, l.run(ordinal)
	return submit.Request{
		Key: runKey(ordinal), Descriptor: plan.Descriptor(run.Cell), File: cmp.Or(plan.File(run.Cell), r.File),
		Owner: s.Owner, Namespace: r.Namespace,
		Labels: r.Labels, Script: r.Script, Provenance: r.Provenance,
		Cell: &submit.CellRun{
			Set: s.ID, Cell: plan.Cell(run.Cell).Name, Repetition: run.Repetition, Warmup: run.Warmup, Resumes: s.Resumes,
		},
	}
}

// openSet is the document of KindOpenSet: the set has not finished, or was opened a short
// time ago.
type openSet struct {
	At time.Time `json:"at"` // when it was last opened
}

// documents reads and writes the documents of sets.
type documents struct{ store Store }

// find returns the set with that ID, or with that name of the owner's. The error is
// *MissingError if there is none.
func (d documents) find(ctx context.Context, owner, ref string) (Set, error) {
	s, found, err := d.load(ctx, refID(owner, ref))
	if err == nil && (!found || ref == "") {
		err = &MissingError{Ref: ref, Owner: owner}
	}
	return s, err
}

// load returns the set with that ID, and reports whether there is one.
func (d documents) load(ctx context.Context, id string) (s Set, found bool, err error) {
	s, version, found, err := store.Find[Set](ctx, d.store, store.KindSet, id)
	s.Version = version
	return s, found, err
}

// refID returns the ID of the set that a request names by its ID or its name.
func refID(owner, ref string) string {
	if submit.IsRunID(ref) {
		return strings.ToLower(ref)
	}
	return nameID(owner, ref)
}

// nameID returns the ID of an owner's set with that name.
func nameID(owner, name string) string { return submit.DeriveID("set", "name", owner, name) }

// keyID returns the ID of the set without a name that an owner's idempotency key stands for.
func keyID(owner, key string) string { return submit.DeriveID("set", "key", owner, key) }

// FiringID returns the ID of the set that a schedule makes under a key.
func FiringID(schedule, key string) string { return submit.DeriveID("set", "firing", schedule, key) }

// list returns up to n sets for which want is true, with IDs after an ID.
func (d documents) list(ctx context.Context, after string, n int, want func(Set) bool) ([]Set, error) {
	var all []Set
	for doc, err := range store.AllAfter[Set](ctx, d.store, store.KindSet, after) {
		if err != nil {
			return nil, err
		}
		s := doc.Value
		if s.Version = doc.Version; want(s) {
			all = append(all, s)
		}
		if len(all) == n {
			break
		}
	}
	return all, nil
}

// createRequest stores the request of a set, unless it is stored already.
func (d documents) createRequest(ctx context.Context, id, digest string, r request) error {
	err := store.Create(ctx, d.store, store.KindSetRequest, requestKey(id, digest), r)
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

func (d documents) request(ctx context.Context, s Set) (request, error) {
	r, _, err := store.Get[request](ctx, d.store, store.KindSetRequest, requestKey(s.ID, s.Digest))
	if err != nil {
		return request{}, fmt.Errorf("read the descriptor of set %s: %w", s.ID, err)
	}
	return r, nil
}

// open has the runner look at a set until it has finished. It is called before the set is
// written, so that no process that crashes leaves a set that nobody looks at.
func (d documents) open(ctx context.Context, id string, now time.Time) error {
	_, err := store.Update(ctx, d.store, store.KindOpenSet, id, func(openSet, bool) (openSet, bool, error) {
		return openSet{At: now}, true, nil
	})
	return err
}

// openSets returns the IDs of the open sets.
func (d documents) openSets(ctx context.Context) ([]string, error) {
	var all []string
	for doc, err := range store.AllDocs(ctx, d.store, store.KindOpenSet, "") {
		if err != nil {
			return nil, err
		}
		all = append(all, doc.Key)
	}
	return all, nil
}

// close closes a set that has finished or does not exist, unless it was opened a short time
// ago: a request may be about to write it. It reports whether the set is closed.
func (d documents) close(ctx context.Context, id string, now time.Time) (closed bool, err error) {
	o, version, found, err := store.Find[openSet](ctx, d.store, store.KindOpenSet, id)
	if err != nil || !found {
		return err == nil, err
	}
	if now.Sub(o.At) < openTime {
		return false, nil
	}
	err = d.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOpenSet, Key: id, Version: version})
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}
