package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
)

// sizes are numbers of series of one family.
type sizes struct {
	still, changed, grow, steps int
}

// A rate is a number of changes on so many points.
type rate struct {
	count, points int
}

// per1000 is the rate for 1000 points.
func (r rate) per1000() float64 { return 1000 * float64(r.count) / float64(max(1, r.points)) }

func (r *rate) add(other rate) {
	r.count += other.count
	r.points += other.points
}

// A share is a number of cases out of all.
type share struct {
	count, all int
}

// of is the share as a number; that of no cases is NaN.
func (s share) of() float64 { return float64(s.count) / float64(s.all) }

func (s *share) add(is bool) {
	s.all++
	if is {
		s.count++
	}
}

func (s *share) join(other share) {
	s.count += other.count
	s.all += other.all
}

// Counts are how one method did on changed series.
type counts struct {
	hits      share
	bySize    [classes]share
	direction share // of the hits, those with the right sign
	covered   share // of the hits of steps, those whose interval covers the size
	extra     rate  // changes that are no hit
}

// A mark is how one method did.
type mark struct {
	false rate
	counts
}

func (m *mark) add(other mark) {
	m.false.add(other.false)
	m.extra.add(other.extra)
	for i := range m.bySize {
		m.bySize[i].join(other.bySize[i])
	}
	m.hits.join(other.hits)
	m.direction.join(other.direction)
	m.covered.join(other.covered)
}

// An equal is how otava does with that p at which it says as many false changes.
type equal struct {
	p    float64 // of the grid, the largest one with no more of them
	hits float64 // between those of p and of the p before it
}

// A score is how all methods did on one family.
type score struct {
	family   string
	detector mark
	replay   rate
	delays   []int // of a step of 3, in order
	equal    equal
	usual    mark // otava with its default p
	strict   mark // otava with a p of 1e-5
	last     mark
	window   mark
}

// missed is the delay of a step that a replay did not find.
const missed = math.MaxInt

// scoreAll scores all families. The same seed gives the same scores.
func scoreAll(all []family, seed uint64, s sizes) ([]score, error) {
	d, err := changepoint.New(judge.Settings{})
	if err != nil {
		return nil, fmt.Errorf("open the detector: %w", err)
	}
	scores := make([]score, len(all))
	for i, f := range all {
		if scores[i], err = scoreFamily(d, f, newExamples(f, seed<<8+uint64(i), s)); err != nil {
			return nil, fmt.Errorf("score %q: %w", f.name, err)
		}
	}
	return scores, nil
}

func scoreFamily(d changepoint.Detector, f family, s examples) (score, error) {
	result := score{family: f.name, replay: replayed(d, s.grow), delays: delays(d, s.steps)}
	for _, m := range []struct {
		mark   *mark
		method method
	}{
		{&result.detector, byDetector(d)},
		{&result.usual, byOtava(0.001)},
		{&result.strict, byOtava(1e-5)},
		{&result.last, byLast},
		{&result.window, byWindow},
	} {
		var err error
		if m.mark.false, err = falses(m.method, s.still); err != nil {
			return score{}, err
		}
		if m.mark.counts, err = hits(m.method, s.changed); err != nil {
			return score{}, err
		}
	}
	var err error
	result.equal, err = equalOf(result.detector.false, s)
	return result, err
}

// falses returns what a method says of series without a change.
func falses(m method, still []example) (rate, error) {
	var r rate
	for _, s := range still {
		all, err := m(s.rows)
		if err != nil {
			return rate{}, err
		}
		r.count += len(all)
		r.points += len(s.rows)
	}
	return r, nil
}

// hits returns what a method says of series with changes.
func hits(m method, changed []example) (counts, error) {
	var t counts
	for _, s := range changed {
		all, err := m(s.rows)
		if err != nil {
			return counts{}, err
		}
		t.extra.points += len(s.rows)
		t.extra.count += len(all)
		for _, p := range s.planted {
			i := slices.IndexFunc(all, func(f found) bool { return p.near(f.row) })
			t.hits.add(i >= 0)
			t.bySize[p.class()].add(i >= 0)
			if i < 0 {
				continue
			}
			t.hit(p, all[i])
			all = slices.Delete(all, i, i+1)
			t.extra.count--
		}
	}
	return t, nil
}

// hit counts how right a hit is.
func (t *counts) hit(p planted, f found) {
	t.direction.add((p.shift > 0) == (f.shift > 0))
	if !p.ramp() {
		t.covered.add(f.low <= p.shift && p.shift <= f.high)
	}
}

// replayed returns all changes that a replay ever said of series without a change.
func replayed(d changepoint.Detector, grow []example) rate {
	var r rate
	for _, s := range grow {
		replay := d.Replay()
		for _, v := range s.rows {
			replay.Add(v)
		}
		detections, _ := replay.Detections()
		r.count += len(detections)
		r.points += len(s.rows)
	}
	return r
}

// delays returns after how many rows a replay says a step, in order: 0 means with the
// first row of the new level.
func delays(d changepoint.Detector, steps []example) []int {
	const patience = 30
	var all []int
	for _, s := range steps {
		step := s.planted[0]
		replay := d.Replay()
		for _, v := range s.rows[:step.at+patience] {
			replay.Add(v)
		}
		delay := missed
		detections, _ := replay.Detections()
		for _, c := range detections {
			if step.near(c.Index) && c.Seen >= step.at {
				delay = min(delay, c.Seen-step.at)
			}
		}
		all = append(all, delay)
	}
	slices.Sort(all)
	return all
}

// equalOf returns the hits of otava at a rate of false changes. Between two values of p
// it interpolates. Where the largest p says fewer false changes, the hits are those of it.
func equalOf(limit rate, s examples) (equal, error) {
	grid := [...]float64{
		0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12, 1e-15, 1e-20, 1e-30,
	}
	more, i := rate{}, 0
	for ; ; i++ {
		r, err := falses(byOtava(grid[i]), s.still)
		if err != nil {
			return equal{}, err
		}
		if r.count > limit.count && i < len(grid)-1 {
			more = r
			continue
		}
		return between(grid[max(0, i-1)], grid[i], weight(more, r, limit), s)
	}
}

// weight is how much the hits at a higher rate count for those at a limit between two rates.
func weight(higher, lower, limit rate) float64 {
	if limit.count <= lower.count || higher.count <= lower.count {
		return 0
	}
	return float64(limit.count-lower.count) / float64(higher.count-lower.count)
}

// between returns the hits of otava between two values of p.
func between(higher, lower, weight float64, s examples) (equal, error) {
	h, err := hits(byOtava(higher), s.changed)
	if err != nil {
		return equal{}, err
	}
	l, err := hits(byOtava(lower), s.changed)
	if err != nil {
		return equal{}, err
	}
	return equal{p: lower, hits: l.hits.of() + float64((h.hits.of()-l.hits.of())*weight)}, nil
}
