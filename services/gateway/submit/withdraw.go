package submit

import (
	"context"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// RunOfCell returns the run that a set has made, or will make, under a key. The error is
// store.ErrNotFound if there is none.
func (in *Submitter) RunOfCell(ctx context.Context, set, key string) (string, error) {
	c, _, err := store.Get[claim](ctx, in.store, store.KindIdempotencyKey, cellKey(set, key))
	if err == nil && c.Withdrawn > 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	return c.Run, nil
}

// Withdrawal is what became of a key of a set that was to be withdrawn.
type Withdrawal struct {
	Run  string // run that has the key, so that it was not withdrawn; empty if it was
	Made bool   // the run was made; else a Submit has begun to make it
}

// Withdraw has a set that was resumed that often make no run under a key, unless a Submit has
// begun to. After that, a Submit for the set as it was until then makes none, also if its
// process had begun before and was paused: its error says so. Once the set has been resumed
// again, a Submit makes the run. Withdraw can be repeated.
//
// It is safe because both write the document of the key: a Submit creates it before anything
// else of the run, so either is first. One that a resumed set sends replaces a withdrawal by
// compare-and-set, and Withdraw never replaces a run.
func (in *Submitter) Withdraw(ctx context.Context, set, key string, resumes int) (Withdrawal, error) {
	at := in.now().UTC().Round(0)
	id, err := in.ids.New(at) // by which a process of an older release would make the run
	if err != nil {
		return Withdrawal{}, &UnavailableError{Err: err}
	}
	withdrawn := claim{Run: id, Value: key, At: at, Withdrawn: resumes + 1}
	c, err := store.Update(ctx, in.store, store.KindIdempotencyKey, cellKey(set, key), func(is claim, found bool) (claim, bool, error) {
		if found && (is.Withdrawn == 0 || is.Withdrawn >= withdrawn.Withdrawn) {
			return is, false, nil
		}
		return withdrawn, true, nil
	})
	if err != nil {
		return Withdrawal{}, &UnavailableError{Err: err}
	}
	if c.Withdrawn > 0 {
		return Withdrawal{}, nil
	}
	err = in.findRun(ctx, c.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Withdrawal{}, &UnavailableError{Run: c.Run, Err: err}
	}
	return Withdrawal{Run: c.Run, Made: err == nil}, nil
}

// claimWithdrawn claims a key that was withdrawn, and returns its claim. The error is
// *withdrawnError if the set of the request has not been resumed since.
func (in *Submitter) claimWithdrawn(ctx context.Context, req Request, mine claim) (claim, error) {
	c, err := store.Update(ctx, in.store, store.KindIdempotencyKey, keyOf(req), func(is claim, found bool) (claim, bool, error) {
		if found && (is.Withdrawn == 0 || is.Withdrawn > req.Cell.Resumes) {
			return is, false, nil
		}
		return mine, true, nil
	})
	switch {
	case err != nil:
		return claim{}, &UnavailableError{Err: err}
	case c.Withdrawn > 0:
		return claim{}, &withdrawnError{Set: req.Cell.Set, Key: req.Key}
	}
	return c, nil
}

// cellKey returns the key of the document that maps a key of a set to a run.
func cellKey(set, key string) string { return keyOf(Request{Key: key, Cell: &CellRun{Set: set}}) }
