package set

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/descriptors/suite"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Put creates the set that a request asks for, and reports whether the same request was
// sent before under its key. The error is *submit.InvalidError, *submit.NotUniqueError,
// *submit.StorageFullError, or an error after which the request must be sent again. A firing
// of a schedule is one set under its key, even if the content of the request changes.
func (k *Sets) Put(ctx context.Context, req submit.Request, asked *submit.SetError) (s Set, repeated bool, err error) {
	s, r, err := k.plan(req, asked)
	if err != nil {
		return Set{}, false, err
	}
	if req.Key != "" && req.Firing == nil {
		if _, err := k.deps.Submitter.ClaimKey(ctx, req.Owner, req.Key, s.ID, s.Digest); err != nil {
			return Set{}, false, err
		}
	}
	old, found, err := k.docs.load(ctx, s.ID)
	if err != nil || found {
		return old, true, cmp.Or(err, s.checkSame(old))
	}
	if s, repeated, err = k.create(ctx, s, r); err != nil {
		return Set{}, false, err
	}
	k.deps.Log.Info("set", zap.String("set", s.ID), zap.String("owner", s.Owner), zap.Int("cells", s.Cells), zap.Int("runs", s.Runs),
		zap.Bool("repeated", repeated))
	k.runner.Open(s.ID)
	return s, repeated, nil
}

// plan returns the set that a request asks for, and what its runs are made of.
func (k *Sets) plan(req submit.Request, asked *submit.SetError) (Set, request, error) {
	namespace := cmp.Or(req.Namespace, "default")
	plan, faults := suite.ReadPlan(acceptedParser(k.deps.Parser, namespace), req.File, asked.Text) // submit has checked all cells
	if plan == nil {
		return Set{}, request{}, &submit.InvalidError{Faults: submit.TruncateFaults(faults)}
	}
	now := k.timestamp()
	id, err := k.newID(req, now)
	if err != nil {
		return Set{}, request{}, err
	}
	table := plan.Sweep()
	s := Set{
		ID: id, Name: req.Name, Namespace: namespace, Owner: req.Owner, Key: req.Key, Digest: asked.Digest,
		SetRetention: store.SetRetention{Script: strings.ToLower(req.Script)},
		Labels:       submit.MergeLabels(asked.Descriptor, req.Labels), Notify: asked.Descriptor.Info.Notify, File: req.File,
		Description: asked.Descriptor.Info.Description,
		Entries:     plan.Entries(), Cells: plan.Cells(), Runs: plan.Runs(), Repetitions: table.Repetitions,
		Warmup: table.Warmup, Order: string(table.Order),
		MaxParallel: table.MaxParallel, OnFailure: table.OnFailure, StopWhen: stopWhenOf(table),
		State: StateRunning, Created: now, Updated: now,
	}
	if f := req.Firing; f != nil {
		s.Schedule, s.Firing = f.Schedule, f.Time
	}
	labels := req.Labels
	if s.Entries > 0 {
		labels = s.Labels // the descriptors of a suite do not have those of the suite
	}
	return s, request{
		Namespace: namespace, Descriptor: string(asked.Text), File: req.File, Labels: labels, Script: s.Script,
		Provenance: asked.Provenance,
	}, nil
}

// newID returns the ID of the set that a request asks for.
func (k *Sets) newID(req submit.Request, now time.Time) (string, error) {
	switch {
	case req.Firing != nil:
		return FiringID(req.Firing.Schedule, req.Key), nil
	case req.Name != "":
		return nameID(req.Owner, req.Name), nil
	case req.Key != "":
		return keyID(req.Owner, req.Key), nil
	}
	id, err := k.deps.NewID(now)
	if err != nil {
		return "", &submit.UnavailableError{Err: err}
	}
	return id, nil
}

// checkSame returns nil if a stored set with the same ID was made by the same request or
// firing, and *submit.NotUniqueError otherwise: the set has the name, under another key. A
// request without a key is never the same.
func (s Set) checkSame(old Set) error {
	if s.Schedule != "" || s.Key != "" && s.Key == old.Key && s.Digest == old.Digest {
		return nil
	}
	return &submit.NotUniqueError{Field: "name", Value: s.Name, Set: old.ID}
}

// create stores a set, unless another process stores it at the same time.
func (k *Sets) create(ctx context.Context, s Set, r request) (_ Set, repeated bool, err error) {
	if k.deps.StorageFull != nil {
		if reason := k.deps.StorageFull(); reason != "" {
			return Set{}, false, &submit.StorageFullError{Reason: reason}
		}
	}
	if s.Script != "" {
		if err := k.deps.Submitter.PinScript(ctx, s.Owner, s.Script, s.ID); err != nil {
			return Set{}, false, err
		}
	}
	err = k.docs.createRequest(ctx, s.ID, s.Digest, r)
	if err == nil {
		err = k.docs.open(ctx, s.ID, s.Created)
	}
	if err == nil {
		err = store.Create(ctx, k.deps.Store, store.KindSet, s.ID, s)
	}
	if errors.Is(err, store.ErrExists) {
		old, _, err := k.docs.load(ctx, s.ID)
		return old, true, cmp.Or(err, s.checkSame(old))
	}
	if err == nil && k.deps.Sync != nil {
		err = k.deps.Sync(ctx)
	}
	if err != nil {
		return Set{}, false, &submit.UnavailableError{Err: err}
	}
	return s, false, nil
}
