package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Ledger is what is known of the firings of a schedule: the document KindFirings.
type Ledger struct {
	Fence   int64     `json:"fence"` // of the lease under which it was written
	Until   time.Time `json:"until"` // firings up to then were decided
	Records []Record  `json:"records,omitempty"`
}

// Record is what became of a firing, or of several in a row.
type Record struct {
	Time   time.Time    `json:"time"`
	Last   time.Time    `json:"last,omitzero"`
	Count  int          `json:"count,omitempty"` // zero means 1
	Run    string       `json:"run,omitempty"`
	Reason event.Reason `json:"reason,omitempty"`
	Why    string       `json:"why,omitempty"`
	Open   bool         `json:"open,omitempty"` // the run was not over when it was last looked at
	Told   bool         `json:"told,omitempty"` // that the run had not ended in time, or nobody minds
	Late   bool         `json:"late,omitempty"` // it had not
}

// kept is a ledger and the version of its document.
type kept struct {
	Ledger

	version int64
}

// ledger returns what is known of a schedule's firings.
func (k *Schedules) ledger(ctx context.Context, id string) (kept, error) {
	if l, ok := k.known[id]; ok {
		return l, nil
	}
	l, version, err := store.Get[Ledger](ctx, k.store, store.KindFirings, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return kept{}, fmt.Errorf("read the firings of schedule %s: %w", id, err)
	}
	k.known[id] = kept{l, version}
	return k.known[id], nil
}

func (f *firing) late(run string) {
	for i, r := range f.ledger.Records {
		if r.Run == run {
			f.ledger.Records[i].Told, f.ledger.Records[i].Late, f.changed = true, true, true
		}
	}
}

func (f *firing) note(r Record) {
	all := slices.DeleteFunc(slices.Clone(f.ledger.Records), func(old Record) bool { return r.Run != "" && old.Run == r.Run })
	f.ledger.Records, f.changed = append(all, r), true
}

// keep keeps what became of firings, unless another process fires by now.
func (f *firing) keep(ctx context.Context) error {
	if !f.changed {
		return nil
	}
	id := f.schedule.ID
	delete(f.known, id)
	if f.ledger.Fence > f.lease.Fence {
		f.lease = store.Lease{}
		return errFence
	}
	f.ledger.Fence = f.lease.Fence
	f.ledger.Records = trim(f.ledger.Records, f.schedule.Rules.History)
	var err error
	if f.ledger.version == 0 {
		err = store.Create(ctx, f.store, store.KindFirings, id, f.ledger.Ledger)
		f.ledger.version = 1
	} else {
		f.ledger.version, err = store.Replace(ctx, f.store, store.KindFirings, id, f.ledger.version, f.ledger.Ledger)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return nil // read again at the next look: what was fired is fired once
	}
	if err != nil {
		return fmt.Errorf("keep the firings of schedule %s: %w", id, err)
	}
	f.known[id] = f.ledger
	return nil
}
