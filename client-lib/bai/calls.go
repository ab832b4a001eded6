package bai

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Submission is a request for a run.
type Submission struct {
	Descriptor []byte // TOML, at most 256 KiB
	File       string // where it was read, for faults
	Name       string // of the run, unique per owner; may be empty
	Namespace  string // the team; empty means "default"
	Labels     map[string]string
	Overrides  []*baiv1.Override  // put in place of values of the descriptor, in this order
	Origin     *baiv1.Origination // where the descriptor came from; nil for a file of the user's
	RerunOf    string             // ID of the run that this one repeats; empty for none
	Script     string             // digest of the code that is sent along, which Send has sent; empty for none
	// ID of the comparison that the run is made for, whose image and data are those of RerunOf; empty for none
	Compares string
	// Key makes repetitions of the submission the same run. Empty means a new
	// one, that is: another run.
	Key string
}

// Submitted is the outcome of a submission. One of the three IDs is set.
type Submitted struct {
	RunID      string
	SetID      string
	ScheduleID string
	Key        string         // under which it is the same run
	Repeated   bool           // it had been submitted before
	Warnings   []*baiv1.Fault // warnings about the descriptor
}

// NewKey returns a random idempotency key.
func NewKey() string { return rand.Text() }

// Submit asks for a run. Once it has answered, the platform will bring the run
// to an end. While the platform is not available it is asked again under the
// same key, which makes one run of all of these. If it gives up the run may
// still come to be: the UnavailableError carries the key, and the run's ID where
// it is known.
func (c *Client) Submit(ctx context.Context, s Submission) (Submitted, error) {
	if n := len(s.Descriptor); n > parser.MaxSize && !suite.Is(s.Descriptor) {
		return Submitted{}, fmt.Errorf("submit %q: %w", s.File,
			&InvalidError{Message: fmt.Sprintf("the descriptor has %d bytes, %d at most are allowed", n, parser.MaxSize)})
	}
	if err := c.requireFeatures(ctx, s.requiredFeatures()); err != nil {
		return Submitted{}, fmt.Errorf("submit %q: %w", s.File, err)
	}
	if s.Key == "" {
		s.Key = NewKey()
	}
	res, err := callWithRetry(ctx, c, c.rpc.SubmitRun, s.request(c.settings.Owner))
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		unavailable.Key = s.Key
	}
	if err != nil {
		return Submitted{}, fmt.Errorf("submit %q: %w", s.File, err)
	}
	return Submitted{
		RunID:      res.GetRunId(),
		SetID:      res.GetSetId(),
		ScheduleID: res.GetScheduleId(),
		Key:        s.Key,
		Repeated:   res.GetRepeated(),
		Warnings:   res.GetWarnings(),
	}, nil
}

func (s Submission) request(owner string) *baiv1.SubmitRunRequest {
	return &baiv1.SubmitRunRequest{
		IdempotencyKey: s.Key,
		DescriptorToml: s.Descriptor,
		DescriptorFile: s.File,
		Owner:          owner,
		Namespace:      s.Namespace,
		Name:           s.Name,
		Labels:         maps.Clone(s.Labels),
		Overrides:      s.Overrides,
		Origination:    s.Origin,
		RerunOf:        s.RerunOf,
		ScriptSha256:   s.Script,
		Compares:       s.Compares,
	}
}

// requiredFeatures are the parts of a submission that not every platform understands.
func (s Submission) requiredFeatures() []requiredFeature {
	return []requiredFeature{
		{2, "values put in place of the descriptor's", len(s.Overrides) > 0},
		{2, "where a descriptor came from", s.Origin != nil},
		{2, "which run is repeated", s.RerunOf != ""},
		{3, "code that is sent along", s.Script != ""},
		{9, "suites", suite.Is(s.Descriptor)},
		{13, "runs for a comparison", s.Compares != ""},
	}
}

// Get returns a run.
func (c *Client) Get(ctx context.Context, run string) (*baiv1.Run, error) {
	res, err := callWithRetry(ctx, c, c.rpc.GetRun, &baiv1.GetRunRequest{Run: run, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("get run %q: %w", run, err)
	}
	return res.GetRun(), nil
}

// Cancel requests the end of a run and returns the run, without waiting for the end. A
// second call, or one after the end, changes nothing.
func (c *Client) Cancel(ctx context.Context, run string) (*baiv1.Run, error) {
	res, err := callWithRetry(ctx, c, c.rpc.CancelRun, &baiv1.CancelRunRequest{Run: run, Owner: c.settings.Owner})
	if err != nil {
		return nil, fmt.Errorf("cancel run %q: %w", run, err)
	}
	return res.GetRun(), nil
}

// WaitData returns a finished run once all of its samples and lines are in the store. If
// ctx ends before, or the platform goes away, it returns the last known state of the run,
// which may be nil, with the error.
func (c *Client) WaitData(ctx context.Context, run string) (*baiv1.Run, error) {
	var last *baiv1.Run
	for pause := c.settings.Pause; ; pause = min(2*pause, time.Second) {
		now, err := c.Get(ctx, run)
		if err != nil {
			return last, err
		}
		if last = now; last.GetCompleteness().GetComplete() {
			return last, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return last, fmt.Errorf("wait for the data of run %q: %w", run, context.Cause(ctx))
		}
	}
}
