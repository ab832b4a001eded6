package fetcher

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Board is a board whose time is an argument.
type Board struct{ *board }

// NewBoard returns a Board.
func NewBoard() Board { return Board{newBoard()} }

// Order takes up an order of which everything is missing.
func (b Board) Order(o Order) {
	b.add(o)
	b.want(o.Submitted.Run, Decide(o, Wanted, nil))
}

// Start begins a transfer, the next one.
func (b Board) Start(ctx context.Context, now time.Time) { b.start(ctx, now) }

// Come has so many bytes of a source come.
func (b Board) Come(s Source, done int64) { b.moved(b.job(s), done, -1) }

// Wait has a source say what it waits for.
func (b Board) Wait(s Source, why string) { b.waits(b.job(s), why) }

// Noted returns what is noted of prefetches at that time.
func (b Board) Noted(now time.Time) []string {
	var all []string
	for _, s := range b.stuck(now, Silence(1), pace) {
		all = append(all, s.Why)
	}
	return all
}

// Tell returns what users are told at that time.
func (b Board) Tell(now time.Time) []event.Event {
	all := b.progress(now, pace)
	for _, s := range b.stuck(now, Silence(len(b.runs())), pace) {
		all = append(all, Still(s.order.Submitted, s.Wait))
	}
	return all
}
