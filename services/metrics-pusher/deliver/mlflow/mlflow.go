// Package mlflow delivers rows of runs to a tracking server of MLflow, as one run of MLflow with params, tags and points of metrics.
//
// MLflow has no transactions over several requests. A run of MLflow is RUNNING until all rows are there, and then has the status of its
// outcome: after a kill the next delivery finds it by its tags and goes on. MLflow stores a point of the same metric, time, step and value
// once, so that several writers may fill one run of MLflow at a time.
package mlflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
)

// maxRounds is how often a delivery looks at the runs of MLflow that other writers make of the same run.
const maxRounds = 50

// Settings say which experiment of which server gets the runs.
type Settings struct {
	post.Settings

	Experiment string // its name; it is made if it is not there
}

// Validate names every setting at fault; at is the table of the settings.
func (s Settings) Validate(at string) error {
	err := s.Settings.Validate(at)
	if s.Experiment == "" || len(s.Experiment) > 500 || strings.TrimSpace(s.Experiment) != s.Experiment {
		err = errors.Join(err, fmt.Errorf("%s.experiment: %q, want the name of an experiment of at most 500 bytes", at, s.Experiment))
	}
	return err
}

// Server is a destination: an experiment of a server.
type Server struct {
	name     string
	settings Settings
	api      api
}

// New returns the destination with that name in the settings. It does not connect.
func New(name string, s Settings) (*Server, error) {
	client, err := post.New(s.Settings)
	if err != nil {
		return nil, err
	}
	return &Server{name: name, settings: s, api: api{client}}, nil
}

// Close closes the idle connections.
func (s *Server) Close() error { return s.api.client.Close() }

// Deliver implements deliver.Destination.
func (s *Server) Deliver(ctx context.Context, d deliver.Delivery) error {
	if err := s.deliver(ctx, d); err != nil {
		return readable(err)
	}
	return nil
}

// deliver makes runs of MLflow, fills and removes them until there is one, and it is complete. MLflow has no unique tags, so that several
// writers may each make one: the first by ID is the one that stays, and each writer fills it before it removes the others.
func (s *Server) deliver(ctx context.Context, d deliver.Delivery) error {
	experiment, err := s.experiment(ctx)
	if err != nil {
		return err
	}
	for range maxRounds {
		runs, err := s.api.find(ctx, experiment, d.Run, s.name)
		switch {
		case err != nil:
			return err
		case len(runs) == 0:
			err = s.api.create(ctx, experiment, d, tagsOf(s.name, d))
		case len(runs) == 1 && runs[0].complete():
			return nil
		default:
			err = s.settle(ctx, runs, d)
		}
		if err != nil && !s.gone(ctx, experiment, d, runs) {
			return err
		}
	}
	return &refusedError{"several writers are delivering this run to MLflow at a time"}
}

// settle fills the first of the runs, and removes the others.
func (s *Server) settle(ctx context.Context, runs []record, d deliver.Delivery) error {
	first := slices.MinFunc(runs, func(a, b record) int { return cmp.Compare(a.ID, b.ID) })
	if !first.complete() {
		if err := s.fill(ctx, first.ID, d); err != nil {
			return err
		}
	}
	for _, r := range runs {
		if r.ID == first.ID {
			continue
		}
		if err := s.api.remove(ctx, r.ID); err != nil {
			return err
		}
	}
	return nil
}

// gone reports whether another writer has removed one of the runs meanwhile, which is a reason to look again and no fault.
func (s *Server) gone(ctx context.Context, experiment string, d deliver.Delivery, runs []record) bool {
	now, err := s.api.find(ctx, experiment, d.Run, s.name)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(runs, func(r record) bool {
		return !slices.ContainsFunc(now, func(n record) bool { return n.ID == r.ID })
	})
}

// fill stores all rows, and then that they are there.
func (s *Server) fill(ctx context.Context, run string, d deliver.Delivery) error {
	r, w := newReader(d), &batches{api: s.api, run: run}
	for row, err := range d.Rows {
		if err != nil {
			return &refusedError{err.Error()}
		}
		if err := w.metrics(ctx, r.points(row)); err != nil {
			return err
		}
	}
	units := make(map[string]string, len(r.units))
	for name, unit := range r.units {
		units["unit."+name] = unit
	}
	if err := errors.Join(w.params(ctx, pairs(r.params, maxParam)), w.tags(ctx, pairs(units, maxTag)), w.flush(ctx)); err != nil {
		return err
	}
	return s.api.end(ctx, run, statusOf(d.About.Outcome), cmp.Or(d.About.Ended, d.About.Started, time.Unix(0, 0)))
}

// experiment returns the ID of the experiment. It makes the experiment if it is not there.
func (s *Server) experiment(ctx context.Context) (string, error) {
	id, deleted, err := s.api.experiment(ctx, s.settings.Experiment)
	if isCode(err, codeMissing) {
		if err := s.api.createExperiment(ctx, s.settings.Experiment); err != nil && !isCode(err, codeExists) {
			return "", err
		}
		id, deleted, err = s.api.experiment(ctx, s.settings.Experiment)
	}
	if err == nil && deleted {
		err = &refusedError{fmt.Sprintf("the experiment %q is deleted: restore it in MLflow, or name another in the settings",
			s.settings.Experiment)}
	}
	return id, err
}
