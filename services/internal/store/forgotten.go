package store

import (
	"context"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Forgotten is the document of KindForgotten under ForgottenKey. All runs that were submitted before a time had finished, and their
// records were removed. Their submissions stay.
type Forgotten struct {
	Before time.Time `json:"before"`
}

// ForgottenKey is the key of the document of KindForgotten.
const ForgottenKey = "runs"

// MarkForgotten records that the records of the runs before a time are about to be removed. An earlier mark of a later time stays.
func MarkForgotten(ctx context.Context, docs Docs, before time.Time) error {
	_, err := Update(ctx, docs, KindForgotten, ForgottenKey, func(is Forgotten, _ bool) (Forgotten, bool, error) {
		return Forgotten{Before: before}, before.After(is.Before), nil
	})
	return err
}

// FindSubmission returns the submission of a run that has no projection. Found is false if the run was not submitted here, and if its
// records were removed: the projection of any other run is to come.
func FindSubmission(ctx context.Context, docs Getter, run string) (sub event.Submitted, found bool, err error) {
	sub, _, found, err = Find[event.Submitted](ctx, docs, KindSubmission, run)
	if !found {
		return sub, false, err
	}
	gone, err := isForgotten(ctx, docs, sub)
	return sub, err == nil && !gone, err
}

// RunForgotten reports whether a run that has no projection was submitted here, and its records were removed.
func RunForgotten(ctx context.Context, docs Getter, run string) (bool, error) {
	sub, _, found, err := Find[event.Submitted](ctx, docs, KindSubmission, run)
	if !found {
		return false, err
	}
	return isForgotten(ctx, docs, sub)
}

func isForgotten(ctx context.Context, docs Getter, sub event.Submitted) (bool, error) {
	mark, _, _, err := Find[Forgotten](ctx, docs, KindForgotten, ForgottenKey)
	if err != nil {
		return false, fmt.Errorf("look whether run %s was removed: %w", sub.Run, err)
	}
	return sub.Time.Before(mark.Before), nil
}
