package fetcher

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Scheduler is a board whose time is an argument.
type Scheduler struct{ *scheduler }

// NewScheduler returns a Board.
func NewScheduler() Scheduler { return Scheduler{newScheduler()} }

// AddOrder takes up an order of which everything is missing.
func (b Scheduler) AddOrder(o Order) {
	b.add(o)
	b.setMissing(o.Submitted.Run, Decide(o, RunActive, nil))
}

// StartNext begins a transfer, the next one.
func (b Scheduler) StartNext(ctx context.Context, now time.Time) { b.startNext(ctx, now) }

// SetProgress has so many bytes of a source come.
func (b Scheduler) SetProgress(s Source, done int64) { b.setProgress(b.downloadFor(s), done, -1) }

// SetWaitReason has a source say what it waits for.
func (b Scheduler) SetWaitReason(s Source, why string) { b.setWaitReason(b.downloadFor(s), why) }

// PrefetchNotes returns what is noted of prefetches at that time.
func (b Scheduler) PrefetchNotes(now time.Time) []string {
	var all []string
	for _, s := range b.staleOrders(now, HeartbeatInterval(1), progressInterval) {
		all = append(all, s.Reason)
	}
	return all
}

// Report returns what users are told at that time.
func (b Scheduler) Report(now time.Time) []event.Event {
	all := b.progress(now, progressInterval)
	for _, s := range b.staleOrders(now, HeartbeatInterval(len(b.runs())), progressInterval) {
		all = append(all, WaitStatus(s.order.Submitted, s.Wait))
	}
	return all
}
