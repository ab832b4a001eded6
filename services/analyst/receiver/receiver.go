// Package receiver sends notices to people and programs. Each kind of receiver has a package of its own below it; package open makes them
// from settings, and analyst/dispatch decides what is sent to which of them, and when.
package receiver

import (
	"context"
	"errors"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/post"
)

// Receiver is a place that takes notices. One goroutine uses it at a time.
type Receiver interface {
	// Send sends the notice once, and returns what the place answered. The error is a *RejectedError if the place will never take the
	// notice, wraps a *TemporaryError if the place asks to wait, and ErrUnanswered if the notice may have arrived although no answer of
	// it came: a proxy may ask to wait in its stead.
	// After any error but a *RejectedError the same notice may be sent again. No error has a secret.
	Send(ctx context.Context, n notice.Notice) (answer string, err error)
}

// ErrUnanswered means that a notice may have arrived, although the place did not answer.
var ErrUnanswered = errors.New("the notice may have arrived")

// RejectedError means that a place will never take a notice.
type RejectedError struct{ Err error }

// Error implements error.
func (e *RejectedError) Error() string { return e.Err.Error() }

// Unwrap returns what the place answered.
func (e *RejectedError) Unwrap() error { return e.Err }

// TemporaryError means that a place takes nothing at present.
type TemporaryError struct {
	Err   error
	After time.Duration // how long the place asks to wait; zero if it does not say
}

// Error implements error.
func (e *TemporaryError) Error() string { return e.Err.Error() }

// Unwrap returns what the place answered.
func (e *TemporaryError) Unwrap() error { return e.Err }

// FromPost returns the error of Send for one of package post.
func FromPost(err error) error {
	var no *post.PermanentError
	var away *post.TemporaryError
	switch {
	case errors.Is(err, post.ErrUnanswered) && errors.As(err, &away):
		return &unansweredError{&TemporaryError{Err: err, After: away.After}}
	case errors.Is(err, post.ErrUnanswered):
		return &unansweredError{err}
	case errors.As(err, &no):
		return &RejectedError{Err: no}
	case errors.As(err, &away):
		return &TemporaryError{Err: away, After: away.After}
	}
	return err
}

// unansweredError is an error that is ErrUnanswered, with its own text.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string   { return e.err.Error() }
func (e *unansweredError) Unwrap() []error { return []error{ErrUnanswered, e.err} }
