package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/chunk"
)

// minChunk is how many samples are worth a chunk of their own.
const minChunk = 512

const (
	// The first chunk of a source that ends at some place or later and begins at
	// another or earlier.
	findOverlapping = `SELECT n, stored, chunk FROM chunks WHERE source = ?1 AND last_seq >= ?2
		AND (last_seq, last_sub, last_name) >= (?2, ?3, ?4) AND (first_seq, first_sub, first_name) <= (?5, ?6, ?7)
		ORDER BY last_seq, last_sub, last_name LIMIT 1`
	findPreceding = `SELECT n, stored, chunk FROM chunks WHERE source = ?1 AND last_seq <= ?2 AND (last_seq, last_sub, last_name) < (?2, ?3, ?4)
		ORDER BY last_seq DESC, last_sub DESC, last_name DESC LIMIT 1`
	dropChunk = "DELETE FROM chunks WHERE n = ?"
	addChunk  = `INSERT INTO chunks(source, first_seq, first_sub, first_name, last_seq, last_sub, last_name, stored, chunk)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// mergeSamples merges samples into the chunks of a source, and returns how many are new.
func (a *appender) mergeSamples(ctx context.Context, source int64, young chunk.Series) (int64, error) {
	if len(young) == 0 {
		return 0, nil
	}
	old, err := a.removeOverlapping(ctx, source, young)
	if err != nil {
		return 0, err
	}
	all := young
	if len(old) > 0 {
		all = chunk.Series{chunk.Merge(old, slices.Concat(young...))}
	}
	fresh := int64(all.Count() - len(old))
	if all, err = a.removePreceding(ctx, source, all); err != nil {
		return 0, err
	}
	return fresh, a.addChunks(ctx, source, all)
}

// removeOverlapping removes the chunks that overlap young, and returns their samples.
func (a *appender) removeOverlapping(ctx context.Context, source int64, young chunk.Series) (old []event.Sample, err error) {
	first, last := positionOf(young.First()), positionOf(young.Last())
	for {
		samples, ok, err := a.removeChunk(ctx, chunk.MaxLen, findOverlapping, source, first.Seq, first.Sub, first.Name,
			last.Seq, last.Sub, last.Name)
		if err != nil || !ok {
			return old, err
		}
		old = append(old, samples...)
	}
}

// removePreceding removes the chunk before all and puts its samples in front, as long as that chunk is no larger than all. So a sample is
// rewritten only when its chunk doubles, and a source with small batches has few chunks.
func (a *appender) removePreceding(ctx context.Context, source int64, all chunk.Series) (chunk.Series, error) {
	for all.Count() < minChunk {
		first := positionOf(all.First())
		samples, ok, err := a.removeChunk(ctx, all.Count(), findPreceding, source, first.Seq, first.Sub, first.Name)
		if err != nil || !ok {
			return all, err
		}
		all = slices.Insert(all, 0, samples)
	}
	return all, nil
}

// removeChunk removes the chunk that find finds and returns its samples, unless there is none or it has more than most.
func (a *appender) removeChunk(ctx context.Context, most int, find string, args ...any) (samples []event.Sample, ok bool, err error) {
	var n int64
	var stored int
	var packed []byte
	err = a.row(ctx, find, args...).Scan(&n, &stored, &packed)
	if errors.Is(err, sql.ErrNoRows) || err == nil && stored > most {
		return nil, false, nil
	}
	if err == nil {
		samples, err = chunk.Unpack(packed)
	}
	if err == nil {
		_, err = a.exec(ctx, dropChunk, n)
	}
	return samples, err == nil, err
}

func (a *appender) addChunks(ctx context.Context, source int64, samples chunk.Series) error {
	for part := range samples.Chunks(chunk.MaxLen) {
		packed, err := chunk.Pack(part)
		if err != nil {
			return err
		}
		first, last := positionOf(part.First()), positionOf(part.Last())
		if _, err := a.exec(ctx, addChunk, source, first.Seq, first.Sub, first.Name, last.Seq, last.Sub, last.Name,
			part.Count(), packed); err != nil {
			return err
		}
	}
	return nil
}

// positionOf returns the place after a sample.
func positionOf(s *event.Sample) position {
	return position{Seq: s.Seq, Sub: int64(s.Sub), Name: s.Name}
}
