package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// search finds lines by tokens.
type search struct {
	store  *Store
	marks  []uint32 // of the tokens
	finder *store.Finder
}

func newSearch(s *Store, tokens []string) search {
	return search{store: s, marks: marksOf(tokens), finder: store.NewFinder(tokens)}
}

// linesOf appends what comes next in src, and moves the place in it: past all
// that was there if fewer lines that are meant follow than there is room for.
func (f search) linesOf(ctx context.Context, src source, at places, lines []store.Line, limit int) ([]store.Line, error) {
	p := at.in(src)
	if p.Seq >= src.Last {
		return lines, nil
	}
	areas, err := f.areas(ctx, src, p.Seq)
	for i := 0; err == nil && i < len(areas) && len(lines) < limit; i++ {
		if lines, err = f.linesIn(ctx, src, areas[i], &p, lines, limit); err == nil && len(lines) < limit {
			p.Seq = areas[i].last
		}
	}
	at[src.n] = p
	return lines, err
}

// linesIn appends those that are meant of the lines of an area that come after p,
// and moves p.
func (f search) linesIn(ctx context.Context, src source, in area, p *place, lines []store.Line, limit int) ([]store.Line, error) {
	may, err := f.may(ctx, in)
	if err != nil || !may {
		return lines, err
	}
	err = f.store.query(ctx, func(rows *sql.Rows) error {
		l, err := scanLine(rows, src)
		if err != nil {
			return err
		}
		if p.Seq = l.Seq; f.finder.In(l.Text) {
			lines = append(lines, l)
		}
		return enough(len(lines) == limit)
	}, readArea, src.n, max(in.first, p.Seq+1), in.last)
	return lines, but(errEnough, err)
}

// errEnough ends the reading of rows.
var errEnough = errors.New("enough")

func enough(is bool) error {
	if is {
		return errEnough
	}
	return nil
}

func but(fine, err error) error {
	if errors.Is(err, fine) {
		return nil
	}
	return err
}

// tail moves the place in each source to before the last lines that are meant.
func (f search) tail(ctx context.Context, sources []source, last int, at places) error {
	for _, src := range sources {
		areas, err := f.areas(ctx, src, -1)
		p, left := place{Seq: -1}, last
		for i := len(areas) - 1; err == nil && i >= 0 && left > 0; i-- {
			p.Seq, left, err = f.tailIn(ctx, src, areas[i], left)
		}
		if err != nil {
			return err
		}
		at[src.n] = p
	}
	return nil
}

// tailIn returns the sequence after which the last lines of an area come that are
// meant, and how many of them are left that must lie before it.
func (f search) tailIn(ctx context.Context, src source, in area, last int) (before int64, left int, err error) {
	before, left = -1, last
	may, err := f.may(ctx, in)
	if err != nil || !may {
		return before, left, err
	}
	err = f.store.query(ctx, func(rows *sql.Rows) error {
		var seq int64
		var text string
		if err := rows.Scan(&seq, &text); err != nil || !f.finder.In(text) {
			return err
		}
		if left--; left == 0 {
			before = seq - 1
		}
		return enough(left == 0)
	}, readAreaBack, src.n, in.first, in.last)
	return before, left, but(errEnough, err)
}

// area is where stretches of a source lie that overlap.
type area struct {
	first, last int64
	stretches   []int64 // by number
}

// areas returns where the lines of a source lie after a sequence, in order.
// None overlaps another.
func (f search) areas(ctx context.Context, src source, after int64) (areas []area, err error) {
	err = f.store.query(ctx, func(rows *sql.Rows) error {
		var n, first, last int64
		if err := rows.Scan(&n, &first, &last); err != nil {
			return err
		}
		if i := len(areas) - 1; i >= 0 && first <= areas[i].last {
			areas[i].last, areas[i].stretches = max(areas[i].last, last), append(areas[i].stretches, n)
			return nil
		}
		areas = append(areas, area{first, last, []int64{n}})
		return nil
	}, listStretches, src.n, after)
	return areas, err
}

// may reports whether an area may have lines with all tokens.
func (f search) may(ctx context.Context, in area) (bool, error) {
	for _, n := range in.stretches {
		var marks []byte
		err := f.store.row(ctx, readMarks, n).Scan(&marks)
		if errors.Is(err, sql.ErrNoRows) || err == nil && marks == nil {
			return true, nil // it was taken in by another, or nobody knows
		}
		has := false
		if err == nil {
			has, err = hasMarks(marks, f.marks)
		}
		if err != nil || has {
			return has, err
		}
	}
	return false, nil
}
