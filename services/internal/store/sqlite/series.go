package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/cursor"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/pointvalue"
)

// seriesPosition is the position of a series in the list of all.
type seriesPosition struct{ Namespace, Task, Metric, ID string }

func positionOfSeries(k store.SeriesKey) seriesPosition {
	return seriesPosition{k.Namespace, k.Task, k.Metric, k.ID()}
}

// Series implements store.PointReader.
func (s *Store) Series(ctx context.Context, q store.SeriesQuery, token string, limit int) ([]store.Series, string, error) {
	if err := positive(limit); err != nil {
		return nil, "", err
	}
	purpose, err := s.cursorScope("series", q)
	if err != nil {
		return nil, "", fmt.Errorf("list series: %w: %w", store.ErrRefused, err)
	}
	var after *seriesPosition
	if token != "" {
		b, err := cursor.Decode(purpose, token)
		if err != nil {
			return nil, "", err
		}
		if err := json.Unmarshal(b, &after); err != nil {
			return nil, "", err
		}
	}
	text, args := seriesQuery(q, after, limit+1)
	var page []store.Series
	err = s.query(ctx, func(rows *sql.Rows) error {
		one, err := scanSeries(rows)
		page = append(page, one)
		return err
	}, text, args...)
	if err != nil || len(page) <= limit {
		return page, "", s.wrapError("list series", err)
	}
	last, err := json.Marshal(positionOfSeries(page[limit-1].SeriesKey))
	return page[:limit], cursor.Encode(purpose, last), err
}

// seriesQuery returns the query for series with points, each with its newest point.
func seriesQuery(q store.SeriesQuery, after *seriesPosition, limit int) (text string, args []any) {
	terms := []string{"s.points > 0"}
	where := func(term string, values ...any) { terms, args = append(terms, term), append(args, values...) }
	if q.Namespace != "" {
		where("s.namespace = ?", q.Namespace)
	}
	if q.Task != "" {
		where("s.task = ?", q.Task)
	}
	if prefix := q.MetricPrefix; prefix != "" {
		where("s.metric >= ? AND substr(CAST(s.metric AS BLOB), 1, ?) = ?", prefix, len(prefix), blob(prefix))
	}
	if after != nil {
		where("(s.namespace, s.task, s.metric, s.id) > (?, ?, ?, ?)", after.Namespace, after.Task, after.Metric, after.ID)
	}
	return `SELECT s.doc, s.points, p.time, p.value FROM series s CROSS JOIN points p ON p.series = s.n AND p.counts = 1 AND (p.time, p.run) =
		(SELECT time, run FROM points WHERE series = s.n AND counts = 1 ORDER BY time DESC, run DESC LIMIT 1)
		WHERE ` + strings.Join(terms, " AND ") + " ORDER BY s.namespace, s.task, s.metric, s.id LIMIT ?", append(args, limit)
}

func scanSeries(rows *sql.Rows) (one store.Series, err error) {
	var doc, value []byte
	var newest int64
	if err := rows.Scan(&doc, &one.Points, &newest, &value); err != nil {
		return one, err
	}
	if err := json.Unmarshal(doc, &one.SeriesKey); err != nil {
		return one, err
	}
	if newest != math.MinInt64 { // else the time is the zero value
		one.Newest = time.Unix(0, newest).UTC()
	}
	v, err := pointvalue.Decode(one.SeriesKey, value)
	one.Direction = v.Direction
	return one, err
}
