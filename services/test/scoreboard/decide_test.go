package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
	"github.com/benchmark-ai/bai/services/internal/golden"
)

func TestNoiseHasMeanZeroAndSpreadOne(t *testing.T) {
	t.Parallel()
	bursts := map[string]struct{ mean, sd float64 }{ // which come on top
		"bursts":             {0.33, 1.8},
		"mixture AR, bursts": {0.23, 1.45},
	}
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			want, is := bursts[f.name]
			if !is {
				want.sd = 1
			}
			mean, sd := moments(f, 1000)
			if math.Abs(mean-want.mean) > 0.05 || math.Abs(sd-want.sd) > 0.15 {
				t.Errorf("mean %.3f, sd %.3f: want about %v, %v", mean, sd, want.mean, want.sd)
			}
		})
	}
}

// moments are those of the results of many series of 100 rows.
func moments(f family, count int) (mean, sd float64) {
	r := rand.New(rand.NewPCG(1, 2))
	var n, sum, squares float64
	for range count {
		for _, v := range f.draw(r, 100) {
			if !math.IsNaN(v) {
				n, sum, squares = n+1, sum+v, squares+v*v
			}
		}
	}
	mean = sum / n
	return mean, math.Sqrt(squares/n - mean*mean)
}

func TestPlantedChangesAreInTheRows(t *testing.T) {
	t.Parallel()
	flat := family{draw: func(_ *rand.Rand, n int) []float64 { return make([]float64, n) }}
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		e := newExample(r, flat, 100, changes)
		level := 100.0
		for _, p := range e.planted {
			level += p.shift
			if before := e.rows[p.at-1]; math.Abs(before+p.shift-level) > 1e-9 || e.rows[p.at] == before {
				t.Errorf("%+v: the row before it is %v, the level after it %v", p, before, level)
			}
			if got := e.rows[max(p.at, p.end)]; math.Abs(got-level) > 1e-9 {
				t.Errorf("%+v: the level after it is %v, want %v", p, got, level)
			}
		}
	}
}

func TestTheSameSeedGivesTheSamePage(t *testing.T) {
	t.Parallel()
	all, s := families()[:3], sizes{still: 4, changed: 4, grow: 1, steps: 1}
	var pages [2]bytes.Buffer
	for i := range pages {
		scores, err := scoreAll(all, 5, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := report(&pages[i], all, s, scores); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(pages[0].String(), pages[1].String()); diff != "" {
		t.Errorf("the second page is not the first (-first +second):\n%s", diff)
	}
}

func TestAPageSaysItsScores(t *testing.T) {
	t.Parallel()
	quiet := mark{rate{1, 10_000}, counts{
		hits: share{80, 100}, bySize: [classes]share{{5, 20}, {25, 30}, {25, 25}, {25, 25}},
		direction: share{79, 80}, covered: share{40, 50}, extra: rate{2, 10_000},
	}}
	loud := mark{rate{100, 10_000}, counts{hits: share{90, 100}}}
	scores := []score{
		{
			family: "normal", detector: quiet, replay: rate{5, 1000}, delays: []int{4, 8, missed},
			equal: equal{p: 1e-5, hits: 0.7}, usual: loud, strict: quiet, last: loud, window: quiet,
		},
		{
			family: "ties", detector: loud, replay: rate{0, 1000},
			equal: equal{p: 0.2, hits: 0.95}, usual: quiet, strict: loud, last: quiet, window: quiet,
		},
	}
	var page bytes.Buffer
	if err := report(&page, families()[:2], sizes{4, 3, 2, 1}, scores); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/page.md", page.Bytes())
}

func TestIntervalsAreThoseOfTables(t *testing.T) {
	t.Parallel()
	for count, want := range map[int][2]float64{0: {0, 3.689}, 1: {0.0253, 5.572}, 10: {4.795, 18.39}, 100: {81.36, 121.6}} {
		low, high := poisson(count)
		if math.Abs(low-want[0]) > 0.01*want[0] || math.Abs(high-want[1]) > 0.001*want[1] {
			t.Errorf("poisson(%d) = %.4f, %.4f: want %v", count, low, high, want)
		}
	}
	if low, high := wilson(share{8, 10}); math.Abs(low-0.4902) > 0.0001 || math.Abs(high-0.9433) > 0.0001 {
		t.Errorf("wilson(8 of 10) = %.4f, %.4f: want 0.4902, 0.9433", low, high)
	}
}

func TestRulesSayStepsAndCountAnAlarmOnce(t *testing.T) {
	t.Parallel()
	rows := []float64{10, 10.5, 10, 10.5, 10, 10.5, 10, 10.5, 10, 10.5, 10, 10.5, math.NaN(), 20, 20, 20, 20}
	for name, rule := range map[string]method{"last": byLast, "window": byWindow} {
		all, err := rule(rows)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || all[0].row != 13 || all[0].shift < 8 {
			t.Errorf("%s: %+v: want one alarm, of a shift up at row 13", name, all)
		}
	}
}

// A bar is a rate of false changes for each 1000 points that the detector stays below.
type bar struct{ false, replay float64 }

func barOf(family string) bar {
	switch {
	case family == "slow drift":
		return bar{4, 6}
	case family == "bursts", family == "AR(1) 0.8":
		return bar{1.5, 6}
	case strings.HasPrefix(family, "mixture"):
		return bar{1.5, 4}
	}
	return bar{1.5, 3}
}

// A detector that says nothing is below all of them.
const leastHits, leastRight = 0.5, 0.99

func TestTheDetectorStaysWithinItsBars(t *testing.T) {
	t.Parallel()
	d, err := changepoint.New(judge.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			e, want := newExamples(f, 2<<8+uint64(i), sizes{still: 60, changed: 40, grow: 24}), barOf(f.name)
			said, err := falses(byDetector(d), e.still)
			if err != nil {
				t.Fatal(err)
			}
			replay := replayed(d, e.grow)
			below(t, "changes", said, want.false)
			below(t, "changes of a replay", replay, want.replay)
			found, err := hits(byDetector(d), e.changed)
			if err != nil {
				t.Fatal(err)
			}
			if found.hits.of() < leastHits || found.direction.of() < leastRight {
				t.Errorf("it hits %.2f of the changes, with the right sign %.2f: want %v and %v", found.hits.of(), found.direction.of(), leastHits, leastRight)
			}
		})
	}
}

// below fails the test if more than chance takes a rate over its bar, so that a detector
// that is as good as before on other series passes.
func below(t *testing.T, of string, r rate, most float64) {
	t.Helper()
	t.Logf("false %s for each 1000 points: %s", of, rateText(r))
	if low, _ := poisson(r.count); 1000*low/float64(r.points) > most {
		t.Errorf("false %s for each 1000 points: %s: want at most %v", of, rateText(r), most)
	}
}
