package confirm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/incident/confirm"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// fell is an incident of a rate that fell by 8 %, for which the points say 6 to 10 %.
func fell() incident.Incident {
	m := store.Float(-0.08)
	i := incident.Incident{
		ID: "i", Rule: incident.Rule{Confirm: &incident.Confirm{Pairs: 5, MaxRuns: 12, Deadline: time.Hour}}, State: incident.Confirming,
		Kind: "step", Direction: "down", Before: 100, After: 92, Unit: "MB/s", Magnitude: &m, Interval: [2]store.Float{-0.1, -0.06},
	}
	return i
}

// measured gives the runs of a confirmation values: old and next by pair.
func measured(r confirm.Request, p confirm.Progress, old, next []float64) map[string]float64 {
	values := make(map[string]float64)
	for _, one := range p.Runs {
		of := next
		if confirm.SideOf(r.ID, one.Ordinal) == incident.SideOld {
			of = old
		}
		if pair := one.Ordinal / 2; pair < len(of) {
			values[one.Run] = of[pair]
		}
	}
	return values
}

func TestWhatRunsSayOfAnIncident(t *testing.T) {
	good, bad := []float64{100, 101, 99, 100, 102}, []float64{92, 93, 91, 92, 92}
	nan := math.NaN()
	for name, tt := range map[string]struct {
		states    string
		old, next []float64
		change    func(*incident.Incident, *confirm.Request, *confirm.Progress)
		want      string
	}{
		"nothing yet":                       {"", nil, nil, nil, ": "},
		"nothing after four pairs of five":  {"ssssssss", good, bad, nil, ": "},
		"nothing while a value is to come":  {"ssssssssss", good, bad[:4], nil, ": "},
		"the new edition is slower":         {"ssssssssss", good, bad, nil, "confirmed: in 5 pairs of runs the new edition is lower by 8.04 %"},
		"the editions are equal":            {"ssssssssss", good, good, nil, "noise: 5 pairs of runs do not show it: the new edition is higher by 0 %"},
		"the new edition is faster":         {"ssssssssss", bad, good, nil, "environment: in 5 pairs of runs the old edition, run now, has values like the new one: 92 MB/s instead of 100 MB/s"},
		"the old edition is as slow now":    {"ssssssssss", bad, bad, nil, "environment: in 5 pairs of runs the old edition, run now, has values like the new one: 92 MB/s instead of 100 MB/s"},
		"one pair of five tells otherwise":  {"ssssssssss", good, []float64{92, 93, 101, 92, 92}, nil, "insufficient: 5 pairs of runs of 5 tell neither that the editions differ nor that they do not"},
		"two pairs end it if they disagree": {"ssss", good, []float64{101, 90}, nil, "insufficient: 2 pairs of runs of 5 tell neither that the editions differ nor that they do not"},
		"the difference is too small": {"ssssssssss", good, []float64{99, 100, 98, 99, 101}, func(i *incident.Incident, _ *confirm.Request, _ *confirm.Progress) {
			i.Rule.MinChange = 0.02
		}, "noise: in 5 pairs of runs the new edition is lower by 0.995 %, which is less than min_change"},
		"runs fail": {"f.f.f.ssssssss", good, bad, func(_ *incident.Incident, r *confirm.Request, p *confirm.Progress) {
			p.Done = confirm.Decide(*r, *p, nil, now).Done
		}, "insufficient: 2 pairs of runs of 5 have values: no pair is left of max_runs = 12"},
		"runs have no such metric": {"ssssssssss", good, []float64{92, nan, 91, 92, 92}, func(_ *incident.Incident, r *confirm.Request, p *confirm.Progress) {
			p.Done = confirm.Decide(*r, *p, nil, now).Done
		}, "insufficient: 4 pairs of runs of 5 have values: all 5 pairs are there"},
		"the runs take too long":     {"ssr", good, bad, func(_ *incident.Incident, r *confirm.Request, _ *confirm.Progress) { r.Deadline = now }, "insufficient: 1 pair of runs of 5 have values: the deadline is over"},
		"the last run still goes on": {"sssssssssr", good, bad, nil, ": "},
		"values around 0": {"ssssssssss", []float64{0, 1, -1, 0, 1}, []float64{-8, -7, -9, -8, -7}, func(i *incident.Incident, _ *confirm.Request, _ *confirm.Progress) {
			i.Before, i.After, i.Magnitude, i.Interval = 0, -8, nil, [2]store.Float{store.Float(nan), store.Float(nan)}
		}, "confirmed: in 5 pairs of runs the new edition is lower by 8 MB/s"},
		"a limit is compared with the last good value": {"ssssssssss", good, bad, func(i *incident.Incident, _ *confirm.Request, _ *confirm.Progress) {
			i.Kind, i.Before, i.LastGood = "", 95, &incident.Point{Value: 101}
		}, "confirmed: in 5 pairs of runs the new edition is lower by 8.04 %"},
		"six of eight pairs are enough if all agree": {"ssssssssssss", append(good, 100), append(bad, 91), func(i *incident.Incident, _ *confirm.Request, _ *confirm.Progress) {
			i.Rule.Confirm = &incident.Confirm{Pairs: 8}
		}, "confirmed: in 6 pairs of runs the new edition is lower by 8.46 %"},
	} {
		t.Run(name, func(t *testing.T) {
			i, r, p := fell(), request(), ran(tt.states)
			if tt.change != nil {
				tt.change(&i, &r, &p)
			}
			old, next := tt.old, tt.next
			if name == "runs fail" { // the first three pairs were given up
				old, next = append([]float64{0, 0, 0}, old...), append([]float64{0, 0, 0}, next...)
				p.Runs = p.Runs[:7]
			}
			c := confirm.Judge(i, r, p, measured(r, p, old, next), now)
			if got := fmt.Sprintf("%s: %s", c.Verdict, c.Why); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestLooksAfterEachPairKeepTheLevelOfBothTestsAlsoWithADrift(t *testing.T) {
	for pairs, trials := range map[int]int{5: 4000, 8: 2000, 12: 300} {
		confirmed, noise := 0, 0
		for seed := range uint64(trials) { //nolint:gosec // it is small
			if verdict, _ := simulate(seed, pairs, 0, 1); verdict == incident.VerdictConfirmed {
				confirmed++
			}
			if verdict, _ := simulate(seed+1<<32, pairs, 0.06, 1); verdict == incident.VerdictNoise {
				noise++
			}
		}
		t.Logf("%d pairs: confirmed %.3f of A/A, noise %.3f of changes as large as the points say at least", pairs, float64(confirmed)/float64(trials), float64(noise)/float64(trials))
		most := 0.05 + 3*math.Sqrt(0.05*0.95/float64(trials)) // three standard errors
		if float64(max(confirmed, noise)) > most*float64(trials) {
			t.Errorf("%d pairs: %d and %d of %d are wrong", pairs, confirmed, noise, trials)
		}
	}
}

func TestMostRegressionsAreConfirmedAndMostNoiseIsDismissed(t *testing.T) {
	for _, tt := range []struct {
		pairs           int
		sd              float64
		confirmed, none float64
	}{{5, 0.02, 0.95, 0.85}, {5, 0.03, 0.85, 0.6}, {8, 0.03, 0.95, 0.9}, {8, 0.04, 0.85, 0.7}} {
		confirmed, noise, runs := 0, 0, 0
		const trials = 500
		for seed := range uint64(trials) {
			verdict, n := simulate(seed, tt.pairs, 0.08, tt.sd/0.02)
			if runs += n; verdict == incident.VerdictConfirmed {
				confirmed++
			}
			if verdict, _ := simulate(seed+1<<32, tt.pairs, 0, tt.sd/0.02); verdict == incident.VerdictNoise {
				noise++
			}
		}
		t.Logf("%d pairs, sd %.0f %%: confirmed %.2f of 8 %%, with %.1f runs; noise %.2f of A/A", tt.pairs, 100*tt.sd, float64(confirmed)/trials, float64(runs)/trials, float64(noise)/trials)
		if float64(confirmed) < tt.confirmed*trials || float64(noise) < tt.none*trials {
			t.Errorf("%+v: confirmed %d, noise %d", tt, confirmed, noise)
		}
	}
}

// simulate confirms an incident of 8 % with runs that differ by a share, with noise of 2 % times a factor, and a drift of two standard
// deviations over ten runs. It looks after each pair.
func simulate(seed uint64, pairs int, differ, noise float64) (v incident.Verdict, runs int) {
	random := rand.New(rand.NewPCG(seed, uint64(pairs)))
	i, r := fell(), request()
	i.Rule.Confirm = &incident.Confirm{Pairs: pairs}
	r.ID, r.Pairs, r.MaxRuns = fmt.Sprint(seed), pairs, 2*pairs
	var p confirm.Progress
	values := make(map[string]float64)
	for {
		next := confirm.Decide(r, p, nil, now)
		if p.Done = next.Done; next.Ordinal < 0 {
			return confirm.Judge(i, r, p, values, now).Verdict, len(p.Runs)
		}
		one := confirm.SubmittedRun{Ordinal: next.Ordinal, Run: fmt.Sprint(next.Ordinal), State: confirm.Succeeded}
		p.Runs = append(p.Runs, one)
		level := 100.0
		if confirm.SideOf(r.ID, one.Ordinal) == incident.SideNew {
			level *= 1 - differ
		}
		sd := 0.02 * noise
		values[one.Run] = level * (1 + sd*(random.NormFloat64()+2*float64(one.Ordinal)/10))
		if one.Ordinal%2 == 1 {
			if v := confirm.Judge(i, r, p, values, now).Verdict; v != "" {
				return v, len(p.Runs)
			}
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 100.0, 92.0)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0.0, math.Inf(1))
	f.Fuzz(func(t *testing.T, bytes []byte, before, after float64) {
		i, r := fell(), request()
		i.Before, i.After = before, after
		special := []float64{0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324}
		var p confirm.Progress
		values := make(map[string]float64)
		for n, b := range bytes[:min(len(bytes), 40)] {
			one := confirm.SubmittedRun{Ordinal: n, Run: fmt.Sprint(n), State: []confirm.State{confirm.Succeeded, confirm.Succeeded, confirm.Failed, confirm.Running}[b>>6]}
			p.Runs = append(p.Runs, one)
			values[one.Run] = float64(b)
			if int(b%32) < len(special) {
				values[one.Run] = special[b%32]
			}
		}
		c := confirm.Judge(i, r, p, values, now)
		if (c.Verdict == "") != (c.Why == "") || len(c.Runs) != len(p.Runs) {
			t.Errorf("%+v", c)
		}
		for _, run := range c.Runs {
			if run.Value != nil && (math.IsNaN(float64(*run.Value)) || math.IsInf(float64(*run.Value), 0)) {
				t.Errorf("%+v", run)
			}
		}
	})
}
