package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Put creates or changes the schedule that a request asks for, and reports whether the
// schedule is the same as before. The schedule with the request's name or ID gets its
// next version if anything differs. The error is *submit.InvalidError,
// *submit.NotUniqueError, or an error after which the request must be sent again.
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
		if w.repeated, err = k.runs.submitter.ClaimKey(ctx, req.Owner, req.Key, id, w.digest); err != nil {
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
	k.log.Info("schedule", zap.String("schedule", s.ID), zap.String("owner", s.Owner), zap.Int("version", s.Version),
		zap.Bool("repeated", repeated))
	k.wake()
	return s, repeated, nil
}

// identify returns the ID and the name of the schedule that a request is about.
func (k *Schedules) identify(ctx context.Context, req submit.Request, asked *submit.ScheduleError) (id, name string, err error) {
	if !submit.IsRunID(req.Name) {
		return idOf(req.Owner, req.Name, asked.Digest), req.Name, nil
	}
	old, err := k.Find(ctx, req.Owner, req.Name)
	if missing := new(MissingError); errors.As(err, &missing) || err == nil && old.Owner != req.Owner {
		return "", "", &submit.InvalidError{Faults: parser.Faults{{
			Path: "name", Code: submit.CodeName,
			Message: fmt.Sprintf("%q has the form of an ID, and %.63s has no such schedule", req.Name, req.Owner),
			Remedy:  "choose a name that is no ULID, or give the ID of a schedule of yours",
		}}}
	}
	return old.ID, old.Name, err
}

// upsert creates or changes a schedule, and reports whether the schedule is the same as
// before.
func (k *Schedules) upsert(ctx context.Context, w desiredSchedule) (s Schedule, same bool, err error) {
	s, err = store.Update(ctx, k.docs.store, store.KindSchedule, w.id, func(old Schedule, _ bool) (next Schedule, write bool, err error) {
		if same = w.repeated && slices.Contains(old.Keys, w.key); same {
			return old, false, nil
		}
		if next, same = w.apply(old, k.timestamp()); !same {
			err = k.docs.createEdition(ctx, next, w.edition)
		}
		return next, true, err
	})
	return s, same, err
}
