package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite/tokenhash"
)

// search finds lines by tokens.
type search struct {
	store  *Store
	hashes []uint32 // of the tokens
	finder *store.Finder
}

func newSearch(s *Store, tokens []string) search {
	return search{store: s, hashes: tokenhash.Of(tokens), finder: store.NewFinder(tokens)}
}

// linesOf appends the next selected lines of src, and moves the position in it: behind all stored lines if fewer selected lines follow than
// there is room for.
func (f search) linesOf(ctx context.Context, src streamRow, at positions, lines []store.Line, limit int) ([]store.Line, error) {
	p := at.at(src)
	if p.Seq >= src.Last {
		return lines, nil
	}
	groups, err := f.segmentGroups(ctx, src, p.Seq)
	for i := 0; err == nil && i < len(groups) && len(lines) < limit; i++ {
		if lines, err = f.linesIn(ctx, src, groups[i], &p, lines, limit); err == nil && len(lines) < limit {
			p.Seq = groups[i].last
		}
	}
	at[src.n] = p
	return lines, err
}

// linesIn appends the selected lines of a group that come after p, and moves p.
func (f search) linesIn(
	ctx context.Context, src streamRow, in segmentGroup, p *position, lines []store.Line, limit int,
) ([]store.Line, error) {
	mayMatch, err := f.mayMatch(ctx, in)
	if err != nil || !mayMatch {
		return lines, err
	}
	err = f.store.query(ctx, func(rows *sql.Rows) error {
		l, err := scanLine(rows, src)
		if err != nil {
			return err
		}
		if p.Seq = l.Seq; f.finder.Matches(l.Text) {
			lines = append(lines, l)
		}
		return stopIf(len(lines) == limit)
	}, readGroupLines, src.n, max(in.first, p.Seq+1), in.last)
	return lines, ignoreError(errStop, err)
}

// errStop ends the reading of rows.
var errStop = errors.New("enough")

func stopIf(stop bool) error {
	if stop {
		return errStop
	}
	return nil
}

func ignoreError(ignored, err error) error {
	if errors.Is(err, ignored) {
		return nil
	}
	return err
}

// seekTail moves the position in each source to before the last selected lines.
func (f search) seekTail(ctx context.Context, sources []streamRow, last int, at positions) error {
	for _, src := range sources {
		groups, err := f.segmentGroups(ctx, src, -1)
		p, remaining := position{Seq: -1}, last
		for i := len(groups) - 1; err == nil && i >= 0 && remaining > 0; i-- {
			p.Seq, remaining, err = f.tailOfGroup(ctx, src, groups[i], remaining)
		}
		if err != nil {
			return err
		}
		at[src.n] = p
	}
	return nil
}

// tailOfGroup returns the sequence number after which the last selected lines of a group come, and how many lines remain to be found before
// the group.
func (f search) tailOfGroup(ctx context.Context, src streamRow, in segmentGroup, last int) (before int64, remaining int, err error) {
	before, remaining = -1, last
	mayMatch, err := f.mayMatch(ctx, in)
	if err != nil || !mayMatch {
		return before, remaining, err
	}
	err = f.store.query(ctx, func(rows *sql.Rows) error {
		var seq int64
		var text string
		if err := rows.Scan(&seq, &text); err != nil || !f.finder.Matches(text) {
			return err
		}
		if remaining--; remaining == 0 {
			before = seq - 1
		}
		return stopIf(remaining == 0)
	}, readGroupLinesBackward, src.n, in.first, in.last)
	return before, remaining, ignoreError(errStop, err)
}

// segmentGroup is a range of a source with overlapping segments.
type segmentGroup struct {
	first, last int64
	segments    []int64 // by number
}

// segmentGroups returns the ranges of a source's segments after a sequence number, in order. No group overlaps another.
func (f search) segmentGroups(ctx context.Context, src streamRow, after int64) (groups []segmentGroup, err error) {
	err = f.store.query(ctx, func(rows *sql.Rows) error {
		var n, first, last int64
		if err := rows.Scan(&n, &first, &last); err != nil {
			return err
		}
		if i := len(groups) - 1; i >= 0 && first <= groups[i].last {
			groups[i].last, groups[i].segments = max(groups[i].last, last), append(groups[i].segments, n)
			return nil
		}
		groups = append(groups, segmentGroup{first, last, []int64{n}})
		return nil
	}, listSegments, src.n, after)
	return groups, err
}

// mayMatch reports whether an area may have lines with all tokens.
func (f search) mayMatch(ctx context.Context, in segmentGroup) (bool, error) {
	for _, n := range in.segments {
		var hashes []byte
		err := f.store.row(ctx, readSegmentHashes, n).Scan(&hashes)
		if errors.Is(err, sql.ErrNoRows) || err == nil && hashes == nil {
			return true, nil // it was merged into another segment, or has no hashes
		}
		has := false
		if err == nil {
			has, err = tokenhash.Contain(hashes, f.hashes)
		}
		if err != nil || has {
			return has, err
		}
	}
	return false, nil
}
