package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Schedule is a descriptor that runs at certain times: the document of KindSchedule.
type Schedule struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"`
	Version   int    `json:"version"` // version of the descriptor
	Digest    string `json:"digest"`  // digest of that version's edition

	store.ScheduleRetention

	Rules       Rules             `json:"rules"`
	Description string            `json:"description,omitempty"`
	File        string            `json:"file,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`

	Paused   bool      `json:"paused,omitempty"`
	PausedBy string    `json:"paused_by,omitempty"`
	From     time.Time `json:"from"` // earlier firings do not belong to this schedule
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Keys     []string  `json:"keys,omitempty"` // keys of the last requests that were carried out
}

// edition is the request that the firings of one version make: the document of
// KindScheduleVersion.
type edition struct {
	Namespace  string            `json:"namespace"`
	Descriptor string            `json:"descriptor"` // text with the overrides applied
	File       string            `json:"file,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Overrides  []event.Override  `json:"overrides,omitempty"`
	Script     string            `json:"script,omitempty"`

	Provenance *event.Provenance `json:"origination,omitempty"`
}

func editionKey(id string, version int, digest string) string {
	return fmt.Sprintf("%s!%09d!%s", id, version, digest)
}

// digest returns a digest of an edition's content. The name of the descriptor's file
// does not change it.
func (e edition) digest() string {
	parts := []string{"edition", e.Namespace, e.Descriptor, e.Script}
	for _, key := range slices.Sorted(maps.Keys(e.Labels)) {
		parts = append(parts, key, e.Labels[key])
	}
	return event.Derive(parts...)
}

// request returns the request of a firing.
func (e edition) request(s Schedule, key string, at time.Time) submit.Request {
	return submit.Request{
		Key: key, Descriptor: []byte(e.Descriptor), File: e.File, Owner: s.Owner, Namespace: e.Namespace, Labels: e.Labels,
		Overrides: e.Overrides, Provenance: e.Provenance, Script: e.Script, Firing: &submit.Firing{Schedule: s.ID, Time: at},
	}
}

// firingLog has the last firings of a schedule: the document of KindFirings.
type firingLog struct {
	Fence   int64     `json:"fence"` // fence of the lease under which the log was written
	Until   time.Time `json:"until"` // firings up to this time were decided
	Records []record  `json:"records,omitempty"`
}

// record is the outcome of a firing, or of several consecutive firings.
type record struct {
	Time     time.Time    `json:"time"`
	Last     time.Time    `json:"last,omitzero"`
	Count    int          `json:"count,omitempty"` // zero means 1
	Reason   event.Reason `json:"reason,omitempty"`
	Message  string       `json:"why,omitempty"`
	Open     bool         `json:"open,omitempty"` // the run or set had not finished at the last pass
	Reported bool         `json:"told,omitempty"` // an event has reported that it had not ended in time, or none is needed
	Overdue  bool         `json:"late,omitempty"` // it had not ended in time

	Execution
}

// triggerLog has the triggered runs of a schedule that may be active: a document of
// KindFirings beside the firingLog. A key is written before its run is made, so that no
// run is overlooked.
type triggerLog struct {
	Keys []triggerEntry `json:"keys"`
}

type triggerEntry struct {
	Key string    `json:"key"`
	At  time.Time `json:"at"`
}

func triggersKey(id string) string { return id + "!triggers" }

// Backfill is an order for the runs of past firings: the document of KindBackfill.
type Backfill struct {
	Schedule string    `json:"schedule"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Next     time.Time `json:"next"` // firings before this time are done
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"`

	key     string
	version int64
}

func backfillKey(id string, from, to time.Time) string {
	return fmt.Sprintf("%s!%s!%s", id, firingKey(from), firingKey(to))
}

// documents reads and writes the documents of schedules.
type documents struct{ store Store }

// find returns the schedule with that ID, or with that name of the owner's. The error
// is *MissingError if there is none.
func (d documents) find(ctx context.Context, owner, ref string) (Schedule, error) {
	s, _, found, err := store.Find[Schedule](ctx, d.store, store.KindSchedule, refID(owner, ref))
	if err != nil {
		return Schedule{}, err
	}
	return s, checkExists(s, found, owner, ref)
}

// checkExists returns *MissingError for a schedule that was not found or is deleted.
func checkExists(s Schedule, found bool, owner, ref string) error {
	if !found || !s.Deleted.IsZero() || ref == "" {
		return &MissingError{Ref: ref, Owner: owner}
	}
	return nil
}

// refID returns the ID of the schedule that a request names by its ID or its name.
func refID(owner, ref string) string {
	if submit.IsRunID(ref) {
		return strings.ToLower(ref)
	}
	return idOf(owner, ref, "")
}

// list returns up to n schedules for which want is true, with IDs after an ID.
func (d documents) list(ctx context.Context, after string, n int, want func(Schedule) bool) ([]Schedule, error) {
	var all []Schedule
	for doc, err := range store.AllAfter[Schedule](ctx, d.store, store.KindSchedule, after) {
		if err != nil {
			return nil, err
		}
		if s := doc.Value; s.Deleted.IsZero() && want(s) {
			all = append(all, s)
		}
		if len(all) == n {
			break
		}
	}
	return all, nil
}

// createEdition stores the edition of a schedule's current version, unless the edition
// is stored already.
func (d documents) createEdition(ctx context.Context, s Schedule, e edition) error {
	err := store.Create(ctx, d.store, store.KindScheduleVersion, editionKey(s.ID, s.Version, s.Digest), e)
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

func (d documents) edition(ctx context.Context, s Schedule) (edition, error) {
	e, _, err := store.Get[edition](ctx, d.store, store.KindScheduleVersion, editionKey(s.ID, s.Version, s.Digest))
	if err != nil {
		return edition{}, fmt.Errorf("read version %d of the descriptor: %w", s.Version, err)
	}
	return e, nil
}

// backfills returns the backfills whose keys have a prefix, with the oldest span first
// for each schedule.
func (d documents) backfills(ctx context.Context, prefix string) ([]Backfill, error) {
	var all []Backfill
	for doc, err := range store.All[Backfill](ctx, d.store, store.KindBackfill, prefix) {
		if err != nil {
			return nil, err
		}
		doc.Value.key, doc.Value.version = doc.Key, doc.Version
		all = append(all, doc.Value)
	}
	return all, nil
}

// createBackfill stores the order for a backfill, unless the order is stored already.
func (d documents) createBackfill(ctx context.Context, b Backfill) error {
	err := store.Create(ctx, d.store, store.KindBackfill, backfillKey(b.Schedule, b.From, b.To), b)
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

// saveProgress records that all firings of a backfill before a time are done. It
// deletes a finished backfill.
func (d documents) saveProgress(ctx context.Context, b Backfill, next time.Time) error {
	if next.Equal(b.Next) {
		return nil
	}
	if !next.Before(b.To) {
		return d.store.DeleteDoc(ctx, store.Doc{Kind: store.KindBackfill, Key: b.key})
	}
	b.Next = next
	_, err := store.Replace(ctx, d.store, store.KindBackfill, b.key, b.version, b)
	if errors.Is(err, store.ErrConflict) {
		return nil // another process has recorded it
	}
	return err
}

// purge deletes the editions and backfills of a deleted schedule. It keeps those of a
// later schedule with the same name.
func (d documents) purge(ctx context.Context, s Schedule) error {
	var old []store.Doc
	for doc, err := range store.AllDocs(ctx, d.store, store.KindScheduleVersion, s.ID+"!") {
		if err != nil {
			return err
		}
		if doc.Key <= editionKey(s.ID, s.Version, "~") {
			old = append(old, doc)
		}
	}
	backfills, err := d.backfills(ctx, s.ID+"!")
	if err != nil {
		return err
	}
	for _, b := range backfills {
		if !b.At.After(s.Deleted) {
			old = append(old, store.Doc{Kind: store.KindBackfill, Key: b.key})
		}
	}
	for _, doc := range old {
		if err := d.store.DeleteDoc(ctx, store.Doc{Kind: doc.Kind, Key: doc.Key}); err != nil {
			return fmt.Errorf("delete %s %q: %w", doc.Kind, doc.Key, err)
		}
	}
	return nil
}
