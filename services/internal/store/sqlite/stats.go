package sqlite

import (
	"context"
	"database/sql"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Stats implements store.Counter. It reads the two indices alone.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	c := store.Stats{Phases: make(map[event.Phase]int64), Outcomes: make(map[event.Outcome]int64)}
	err := s.query(ctx, func(rows *sql.Rows) error {
		var of, word string
		var n int64
		if err := rows.Scan(&of, &word, &n); err != nil {
			return err
		}
		if of == "phase" {
			c.Phases[event.Phase(word)] = n
		} else {
			c.Outcomes[event.Outcome(word)] = n
		}
		return nil
	}, `SELECT 'phase', phase, count(*) FROM runs INDEXED BY runs_phase GROUP BY phase
		UNION ALL SELECT 'outcome', outcome, count(*) FROM runs INDEXED BY runs_outcome WHERE outcome > '' GROUP BY outcome`)
	return c, s.wrapError("count runs", err)
}
