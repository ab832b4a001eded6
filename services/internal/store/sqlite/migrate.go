package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/chunk"
)

// chunkRows brings the samples of a file that has a row for each into chunks.
func chunkRows(ctx context.Context, t tx) error {
	sources, err := t.QueryContext(ctx, "SELECT DISTINCT source FROM samples")
	if err != nil {
		return err
	}
	var all []int64
	for sources.Next() {
		var n int64
		err = errors.Join(err, sources.Scan(&n))
		all = append(all, n)
	}
	if err := errors.Join(err, sources.Err(), sources.Close()); err != nil {
		return err
	}
	t.prepared, err = prepare(ctx, t.Tx, addChunk)
	a := &appender{tx: t}
	for _, n := range all {
		if err == nil {
			err = a.chunkRowsOf(ctx, n)
		}
	}
	if err == nil {
		_, err = t.ExecContext(ctx, "DROP TABLE samples; DROP TABLE names; DROP TABLE traits")
	}
	return err
}

// chunkRowsOf brings the samples of one source into chunks.
func (a *appender) chunkRowsOf(ctx context.Context, source int64) error {
	rows, err := a.QueryContext(ctx, `SELECT m.seq, m.sub, n.name, m.value, m.special, t.unit, m.time, m.step, t.labels
		FROM samples m JOIN names n ON n.n = m.name JOIN traits t ON t.n = m.traits
		WHERE m.source = ? ORDER BY m.seq, m.sub, n.name`, source)
	if err != nil {
		return err
	}
	var samples []event.Sample
	for err == nil && rows.Next() {
		var v event.Sample
		if err = scanRow(rows, &v); err != nil {
			break
		}
		if samples = append(samples, v); len(samples) == chunk.MaxLen {
			err = a.addChunks(ctx, source, chunk.Series{samples})
			samples = samples[:0]
		}
	}
	if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return err
	}
	return a.addChunks(ctx, source, chunk.Series{samples})
}

func scanRow(rows *sql.Rows, v *event.Sample) error {
	var value sql.NullFloat64
	var special sql.NullString
	var step sql.NullInt64
	var labels string
	if err := rows.Scan(&v.Seq, &v.Sub, &v.Name, &value, &special, &v.Unit, &v.Time, &step, &labels); err != nil {
		return err
	}
	if value.Valid {
		v.Value = &value.Float64
	}
	if step.Valid {
		v.Step = &step.Int64
	}
	v.Special = special.String
	if labels == "" {
		return nil
	}
	return json.Unmarshal([]byte(labels), &v.Labels)
}
