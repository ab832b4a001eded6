package store

import (
	"errors"
	"fmt"
	"time"
)

// MaxKey is the most bytes that the key of a document has.
const MaxKey = 512

// Validate returns ErrRefused, with the reason, for a document that no store accepts.
func (d Doc) Validate() error {
	if d.Kind == "" || d.Key == "" || len(d.Key) > MaxKey {
		return fmt.Errorf("%s %.64q: %w: the key has %d bytes and may have 1 to %d", d.Kind, d.Key, ErrRefused, len(d.Key), MaxKey)
	}
	return nil
}

// Validate returns ErrRefused, with the reason, for a change of r that no store accepts.
func (c Change) Validate(r Run) error {
	switch {
	case r.ID == "" || c.Event == "":
		return fmt.Errorf("change %q of run %q: %w: both need an ID", c.Event, r.ID, ErrRefused)
	case c.Run != r.ID:
		return fmt.Errorf("change %q of run %q: %w: it is a change of run %q", c.Event, r.ID, ErrRefused, c.Run)
	}
	return nil
}

// Validate returns ErrRefused, with the first reason, for samples that no store accepts.
func (b Samples) Validate() error {
	if err := b.Origin.Validate(); err != nil {
		return fmt.Errorf("samples of run %q: %w: %w", b.Origin.Run, ErrRefused, err)
	}
	for i, s := range b.Samples {
		if s.Name == "" || s.Seq < 0 || s.Sub < 0 {
			return fmt.Errorf("samples of run %q: %w: samples[%d]: name %q, seq %d, sub %d: a name and numbers from 0 are wanted",
				b.Origin.Run, ErrRefused, i, s.Name, s.Seq, s.Sub)
		}
	}
	return nil
}

// Validate returns ErrRefused, with the first reason, for lines that no store accepts.
func (b Lines) Validate() error {
	if err := b.Origin.Validate(); err != nil {
		return fmt.Errorf("lines of run %q: %w: %w", b.Origin.Run, ErrRefused, err)
	}
	for i, l := range b.Lines {
		if l.Seq < 0 {
			return fmt.Errorf("lines of run %q: %w: lines[%d]: seq %d: a number from 0 is wanted", b.Origin.Run, ErrRefused, i, l.Seq)
		}
	}
	return nil
}

// Validate names the missing fields of an origin.
func (o Origin) Validate() error {
	errs := []error{o.Stream.Validate()}
	if o.Run == "" {
		errs = append(errs, errors.New("run: must not be empty"))
	}
	if o.Attempt < 1 {
		errs = append(errs, fmt.Errorf("attempt: %d, want 1 or more", o.Attempt))
	}
	return errors.Join(errs...)
}

// Validate returns ErrRefused, with the first reason, for points that no store accepts.
func (p RunPoints) Validate() error {
	if p.Run == "" || p.Revision < 0 {
		return fmt.Errorf("points of run %q: %w: a run and a revision from 0 are wanted, not %d", p.Run, ErrRefused, p.Revision)
	}
	if !p.Time.IsZero() && !time.Unix(0, p.Time.UnixNano()).Equal(p.Time) {
		return fmt.Errorf("points of run %q: %w: time %s: a year of 1678 to 2261 is wanted", p.Run, ErrRefused, p.Time.Format(time.RFC3339))
	}
	seen := make(map[string]bool, len(p.Points))
	for i, s := range p.Points {
		id := p.Key(s).ID()
		if s.Metric == "" || seen[id] {
			return fmt.Errorf("points of run %q: %w: points[%d]: metric %q: a name, and one point for each series are wanted",
				p.Run, ErrRefused, i, s.Metric)
		}
		seen[id] = true
	}
	return nil
}

// ValidatePointRuns returns ErrRefused for a number of runs whose points are not read at once.
func ValidatePointRuns(runs []string) error {
	if len(runs) > MaxPointRuns {
		return fmt.Errorf("points of %d runs: %w: at most %d are read at once", len(runs), ErrRefused, MaxPointRuns)
	}
	return nil
}
