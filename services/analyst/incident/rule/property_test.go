package rule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/rule"
	"github.com/benchmark-ai/bai/services/internal/simtest"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// open are the incidents that go on, by what they are about.
func (w *watcher) open() []string {
	var all []string
	for _, i := range w.all() {
		if !i.State.Over() {
			all = append(all, fmt.Sprint(i.FirstBad.Run, " ", i.Direction, " ", i.State, " ", i.Message))
		}
	}
	return slices.Sorted(slices.Values(all))
}

func TestPointsInAnyOrderLateOrTwiceEndInTheSameIncidents(t *testing.T) {
	for name, r := range map[string]incident.Rule{"regression": regression(), "below": below()} {
		t.Run(name, func(t *testing.T) {
			for seed := range simulations(t) {
				random := rand.New(rand.NewPCG(uint64(seed), 3))
				all := stepped(random)
				var twice []store.Point
				for _, i := range random.Perm(len(all)) {
					twice = append(twice, slices.Repeat(all[i:i+1], 1+i%2)...)
				}
				inOrder, shuffled := watch(t, r).addAt(at(len(all)), all), watch(t, r).addAt(at(len(all)), twice)
				if diff := cmp.Diff(inOrder.open(), shuffled.open()); diff != "" {
					t.Errorf("seed %d: %s\n%v\n%v", seed, diff, inOrder.became(), shuffled.became())
				}
			}
		})
	}
}

// addAt adds points one after the other, all at one time.
func (w *watcher) addAt(now time.Time, all []store.Point) *watcher {
	w.t.Helper()
	for _, p := range all {
		w.points = append(w.points, p)
		w.decide(now)
	}
	return w
}

// stepped are points with some changes of their level.
func stepped(random *rand.Rand) []store.Point {
	levels := [][2]float64{{100, 12 + float64(random.IntN(8))}}
	for range 1 + random.IntN(3) {
		levels = append(levels, [2]float64{[]float64{100, 90, 80}[random.IntN(3)], 8 + float64(random.IntN(6))})
	}
	return series(noisy(random.Uint64(), 1, levels...)...)
}

func below() incident.Rule {
	r := above()
	r.When, r.Limit = incident.Below, 95
	return r.WithID()
}

// simulations returns how many series each kind of noise has.
func simulations(tb testing.TB) int {
	tb.Helper()
	return simtest.Count(tb, 8)
}

// With the detector alone, as points come, 0.5 to 3 changes of 1,000 points of noise are false.
func TestNoiseFiresOnceIn1000PointsAtMost(t *testing.T) {
	const length = 120
	for name, next := range map[string]func(r *rand.Rand, before float64) float64{
		"independent":                    func(r *rand.Rand, _ float64) float64 { return r.NormFloat64() },
		"depends on the point before it": func(r *rand.Rand, before float64) float64 { return 0.5*before + r.NormFloat64() },
		"heavy tails":                    func(r *rand.Rand, _ float64) float64 { return r.NormFloat64() / max(0.2, r.Float64()) },
	} {
		t.Run(name, func(t *testing.T) {
			fired, suspected := 0, 0
			for seed := range simulations(t) {
				r, v := rand.New(rand.NewPCG(uint64(seed), 7)), 0.0
				w := watch(t, regression())
				for i := range length {
					v = next(r, v)
					w.add(point(i, 100+v))
				}
				fired += notified(w.all())
				suspected += len(w.all())
			}
			t.Logf("of %d points: %d suspected, %d fired", length*simulations(t), suspected, fired)
			if most := length * simulations(t) / 1000; fired > most {
				t.Errorf("%d fired, %d at most", fired, most)
			}
		})
	}
}

func TestAStepOfThreeStandardDeviationsFires(t *testing.T) {
	fired, delay := 0, 0
	for seed := range simulations(t) {
		w := watch(t, regression())
		values := noisy(uint64(seed), 1, [2]float64{100, 30}, [2]float64{97, 15})
		for i, v := range values {
			if w.add(point(i, v)); notified(w.all()) > 0 {
				fired, delay = fired+1, delay+i-29
				break
			}
		}
	}
	t.Logf("%d of %d fired, after %.1f points", fired, simulations(t), float64(delay)/float64(max(1, fired)))
	if fired*10 < simulations(t)*9 {
		t.Errorf("%d of %d fired", fired, simulations(t))
	}
}

// Inputs that nothing makes have finite answers that can be stored.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 201, 202}, uint8(0), uint8(2))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaazzzzzzzzzzzzzzzz"), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, values []byte, when, count uint8) {
		conditions := []incident.When{incident.Regression, incident.Change, incident.Above, incident.Below, incident.Beyond, incident.Failed, incident.Missing, "other"}
		r := above()
		r.When, r.For = conditions[int(when)%len(conditions)], int(count%4)
		w := watch(t, r.WithID())
		w.edit = func(in *rule.Input) {
			in.Baseline = in.Points[:min(3, len(in.Points))]
			for i, p := range in.Points {
				in.Runs = append(in.Runs, rule.EndedRun{Run: p.Run, Time: p.Time, Failed: i%3 == 0})
			}
			in.Expected = at(2)
		}
		for i, b := range values[:min(60, len(values))] {
			w.points = append(w.points, odd(i, b))
			w.decide(at(i))
		}
	})
}

// odd is a point that may be infinite, without a number, on another machine, or out of order.
func odd(i int, b byte) store.Point {
	p := point(i, float64(b))
	switch b % 16 {
	case 1:
		p = point(i, inf())
	case 2:
		p = point(i, nan())
	case 3:
		p.Machine = "m2"
	case 4:
		p.Time = p.Time.Add(-5 * time.Hour)
	case 5:
		p = point(i, -float64(b))
	}
	return p
}

// One more point of a series costs the newest 500 points, whatever the history.
func BenchmarkOneMorePoint(b *testing.B) {
	w := watch(b, regression())
	w.points = series(noisy(1, 1, [2]float64{100, 250}, [2]float64{92, 250})...)
	w.decide(at(500))
	in := w.input(at(501))
	for b.Loop() {
		rule.Decide(in)
	}
}
