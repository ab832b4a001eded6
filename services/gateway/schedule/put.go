package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// edition is the request that the firings of one version make: the document
// KindEdition.
type edition struct {
	Namespace  string            `json:"namespace"`
	Descriptor string            `json:"descriptor"` // with the values that were put into it
	File       string            `json:"file,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Overrides  []event.Override  `json:"overrides,omitempty"`
	Script     string            `json:"script,omitempty"`

	Provenance *event.Provenance `json:"origination,omitempty"`
}

func editionKey(id string, version int, digest string) string {
	return fmt.Sprintf("%s!%09d!%s", id, version, digest)
}

// request is what a firing asks for.
func (e edition) request(s Schedule, key string, at time.Time) submit.Request {
	return submit.Request{
		Key: key, Descriptor: []byte(e.Descriptor), File: e.File, Owner: s.Owner, Namespace: e.Namespace, Labels: e.Labels,
		Overrides: e.Overrides, Provenance: e.Provenance, Script: e.Script, Firing: &submit.Firing{Schedule: s.ID, Time: at},
	}
}

// maxKeys is how many requests are known by their keys.
const maxKeys = 32

// Put makes the schedule that a request asks for, or changes it, and reports
// whether it is as it was: what is not there is made, what is there under the
// request's name, or ID, becomes the next version where anything of it differs.
// It says *intake.InvalidError, *intake.TakenError, or why nothing can be had now.
func (k *Schedules) Put(ctx context.Context, req submit.Request, asked *submit.ScheduleError) (s Schedule, repeated bool, err error) {
	req.Namespace = cmp.Or(req.Namespace, "default")
	id, name, err := k.identify(ctx, req, asked)
	if err != nil {
		return Schedule{}, false, err
	}
	e := edition{
		Namespace: req.Namespace, Descriptor: string(asked.Text), File: req.File, Labels: req.Labels,
		Overrides: req.Overrides, Script: strings.ToLower(req.Script), Provenance: asked.Provenance,
	}
	w := desiredSchedule{id: id, name: name, owner: req.Owner, key: req.Key, digest: e.digest(), edition: e, descriptor: asked.Descriptor}
	if req.Key != "" {
		if w.repeated, err = k.submitter.ClaimKey(ctx, req.Owner, req.Key, id, w.digest); err != nil {
			return Schedule{}, false, err
		}
	}
	if e.Script != "" {
		if err := k.scripts.PinScript(ctx, req.Owner, e.Script, id); err != nil {
			return Schedule{}, false, err
		}
	}
	s, repeated, err = k.upsert(ctx, w)
	if err != nil {
		return Schedule{}, false, err
	}
	k.log.Info("schedule", zap.String("schedule", s.ID), zap.String("owner", s.Owner), zap.Int("version", s.Version), zap.Bool("repeated", repeated))
	k.wakeUp()
	return s, repeated, nil
}

// digest tells editions apart by what they have run: not by where it was read.
func (e edition) digest() string {
	parts := []string{"edition", e.Namespace, e.Descriptor, e.Script}
	for _, key := range slices.Sorted(maps.Keys(e.Labels)) {
		parts = append(parts, key, e.Labels[key])
	}
	return event.Derive(parts...)
}

// identify returns the ID and the name of the schedule that a request is about.
func (k *Schedules) identify(ctx context.Context, req submit.Request, asked *submit.ScheduleError) (id, name string, err error) {
	if !submit.IsRunID(req.Name) {
		return IDOf(req.Owner, req.Name, asked.Digest), req.Name, nil
	}
	old, err := k.Find(ctx, req.Owner, req.Name)
	if missing := new(MissingError); errors.As(err, &missing) || err == nil && old.Owner != req.Owner {
		return "", "", &submit.InvalidError{Faults: descriptors.Faults{{
			Path: "name", Code: submit.CodeName, Message: fmt.Sprintf("%q has the form of an ID, and %.63s has no such schedule", req.Name, req.Owner),
			Remedy: "choose a name that is no ULID, or give the ID of a schedule of yours",
		}}}
	}
	return old.ID, old.Name, err
}

// desiredSchedule is what is to be made of a schedule.
type desiredSchedule struct {
	id, name, owner, key, digest string

	repeated   bool // the key stood for this before
	edition    edition
	descriptor *descriptors.Descriptor
}

func (k *Schedules) upsert(ctx context.Context, w desiredSchedule) (Schedule, bool, error) {
	for {
		old, version, err := store.Get[Schedule](ctx, k.store, store.KindSchedule, w.id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return Schedule{}, false, err
		}
		if w.repeated && slices.Contains(old.Keys, w.key) {
			return old, true, nil
		}
		s, same := w.apply(old, k.now().UTC().Round(0))
		err = k.write(ctx, w, s, version, same)
		if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
			continue // somebody else was at it
		}
		return s, same, err
	}
}

// write keeps a schedule in place of a version of its document, and its edition
// before it, where that is a new one.
func (k *Schedules) write(ctx context.Context, w desiredSchedule, s Schedule, version int64, same bool) error {
	if !same {
		err := store.Create(ctx, k.store, store.KindScheduleVersion, editionKey(s.ID, s.Version, s.Digest), w.edition)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return err
		}
	}
	if version == 0 {
		return store.Create(ctx, k.store, store.KindSchedule, s.ID, s)
	}
	_, err := store.Replace(ctx, k.store, store.KindSchedule, s.ID, version, s)
	return err
}

// apply returns what a schedule is once a wish is fulfilled, and whether it is
// what it was.
func (w desiredSchedule) apply(old Schedule, now time.Time) (s Schedule, same bool) {
	s = old
	exists := old.ID != "" && old.Deleted.IsZero()
	same = exists && old.Digest == w.digest
	if w.key != "" {
		s.Keys = append(slices.Clone(s.Keys), w.key)
		s.Keys = s.Keys[max(0, len(s.Keys)-maxKeys):]
	}
	if same {
		return s, true
	}
	d := w.descriptor
	s.ID, s.Name, s.Namespace, s.Owner = w.id, w.name, w.edition.Namespace, w.owner
	s.Version, s.Digest, s.Script, s.Updated = old.Version+1, w.digest, w.edition.Script, now
	s.Rules, s.Description, s.File, s.Labels = RulesOf(w.id, d), d.Info.Description, w.edition.File, mergeLabels(d, w.edition.Labels)
	if !exists {
		s.Created, s.Deleted, s.Paused, s.PausedBy = now, time.Time{}, false, ""
	}
	if d.Schedule.Suspend != nil && s.Paused != *d.Schedule.Suspend {
		s.Paused, s.PausedBy, s.From = *d.Schedule.Suspend, "", now
	}
	if !exists || !s.Rules.sameTimes(old.Rules) {
		s.From = now
	}
	return s, false
}

// mergeLabels are those of the runs.
func mergeLabels(d *descriptors.Descriptor, over map[string]string) map[string]string {
	all := make(map[string]string, len(d.Info.Labels)+len(over))
	maps.Copy(all, d.Info.Labels)
	maps.Copy(all, over)
	return all
}
