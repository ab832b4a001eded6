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

// FiringLog is what is known of the firings of a schedule: the document KindFirings.
type FiringLog struct {
	Fence   int64     `json:"fence"` // of the lease under which it was written
	Until   time.Time `json:"until"` // firings up to then were decided
	Records []Record  `json:"records,omitempty"`
}

// Record is what became of a firing, or of several in a row.
type Record struct {
	Time     time.Time    `json:"time"`
	Last     time.Time    `json:"last,omitzero"`
	Count    int          `json:"count,omitempty"` // zero means 1
	Run      string       `json:"run,omitempty"`
	Reason   event.Reason `json:"reason,omitempty"`
	Message  string       `json:"why,omitempty"`
	Open     bool         `json:"open,omitempty"` // the run was not over when it was last looked at
	Reported bool         `json:"told,omitempty"` // that the run had not ended in time, or nobody minds
	Overdue  bool         `json:"late,omitempty"` // it had not
}

// storedFiringLog is a ledger and the version of its document.
type storedFiringLog struct {
	FiringLog

	version int64
}

// loadFirings returns what is known of a schedule's firings.
func (k *Schedules) loadFirings(ctx context.Context, id string) (storedFiringLog, error) {
	if l, ok := k.firingLogs[id]; ok {
		return l, nil
	}
	l, version, err := store.Get[FiringLog](ctx, k.store, store.KindFirings, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return storedFiringLog{}, fmt.Errorf("read the firings of schedule %s: %w", id, err)
	}
	k.firingLogs[id] = storedFiringLog{l, version}
	return k.firingLogs[id], nil
}

func (f *reconciler) markOverdue(run string) {
	for i, r := range f.firings.Records {
		if r.Run == run {
			f.firings.Records[i].Reported, f.firings.Records[i].Overdue, f.changed = true, true, true
		}
	}
}

func (f *reconciler) addRecord(r Record) {
	all := slices.DeleteFunc(slices.Clone(f.firings.Records), func(old Record) bool { return r.Run != "" && old.Run == r.Run })
	f.firings.Records, f.changed = append(all, r), true
}

// saveFirings keeps what became of firings, unless another process fires by now.
func (f *reconciler) saveFirings(ctx context.Context) error {
	if !f.changed {
		return nil
	}
	id := f.schedule.ID
	delete(f.firingLogs, id)
	if f.firings.Fence > f.lease.Fence {
		f.lease = store.Lease{}
		return errFenced
	}
	f.firings.Fence = f.lease.Fence
	f.firings.Records = trimRecords(f.firings.Records, f.schedule.Rules.History)
	var err error
	if f.firings.version == 0 {
		err = store.Create(ctx, f.store, store.KindFirings, id, f.firings.FiringLog)
		f.firings.version = 1
	} else {
		f.firings.version, err = store.Replace(ctx, f.store, store.KindFirings, id, f.firings.version, f.firings.FiringLog)
	}
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrConflict) {
		return nil // read again at the next look: what was fired is fired once
	}
	if err != nil {
		return fmt.Errorf("keep the firings of schedule %s: %w", id, err)
	}
	f.firingLogs[id] = f.firings
	return nil
}
