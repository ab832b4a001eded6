package control

import (
	"cmp"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// jitter is the greatest relative difference of a pause from the middle of its range, which is from 0.8 to 1 times the longest pause of the
// step.
const (
	jitter = 1.0 / 9
	middle = 1 / (1 + jitter)
)

// Backoff computes the pauses between tries that fail in a row: the first is First, each is twice the one before, and none is over Max.
// Each pause is shortened by up to a fifth, at random, so that processes which failed together do not retry together. Only one goroutine
// may use it at a time. A copy of an unused Backoff is independent.
type Backoff struct {
	First time.Duration // zero means no pause
	Max   time.Duration // zero means 32 times First

	steps *backoff.ExponentialBackOff
}

// Next returns the wait after one more failure.
func (b *Backoff) Next() time.Duration {
	if b.First <= 0 {
		return 0
	}
	most := cmp.Or(b.Max, 32*b.First)
	if b.steps == nil {
		b.steps = backoff.NewExponentialBackOff()
		b.steps.InitialInterval = time.Duration(middle * float64(min(b.First, most)))
		b.steps.MaxInterval = time.Duration(middle * float64(most))
		b.steps.Multiplier, b.steps.RandomizationFactor = 2, jitter
	}
	return min(b.steps.NextBackOff(), most)
}

// Reset starts again with First, as after a success.
func (b *Backoff) Reset() { b.steps = nil }
