package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// rateComparison is the comparison of two runs that emit a rate, and cost 2 USD each.
func rateComparison(base, other string, old, now float64) *baiv1.CompareRunsResponse {
	one := func(metric, unit, direction string, old, now float64) *baiv1.SeriesComparison {
		return &baiv1.SeriesComparison{
			Metric: metric, Unit: unit, Direction: direction, Verdict: "unclear", Reason: "few_runs", P: 1,
			Old: &baiv1.SideValues{N: 1, Median: old, Samples: 5, Values: []float64{old}}, New: &baiv1.SideValues{N: 1, Median: now, Samples: 5, Values: []float64{now}},
		}
	}
	return &baiv1.CompareRunsResponse{
		Old: &baiv1.ComparedSide{Operand: base, RunIds: []string{base}}, New: &baiv1.ComparedSide{Operand: other, RunIds: []string{other}},
		Series: []*baiv1.SeriesComparison{one("rate", "MB/s", "higher", old, now), one("run.duration", "s", "lower", 10, 11), one("cost.amount", "USD", "lower", 2, 2)},
	}
}

// startWithTwoRuns starts a platform with two runs that differ, and whose repetitions do as factor says.
func startWithTwoRuns(t *testing.T, outcome func(n int) baiv1.Outcome, factor float64) (p *baitest.Platform, old, now string) {
	t.Helper()
	p = baitest.Start(t)
	toml := readOptional(t, "testdata", "good.toml")
	add := func() string {
		return p.Add(&baiv1.Run{Owner: "ann", Labels: map[string]string{"model": "r"}, DescriptorToml: toml, DescriptorFile: "good.toml", Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
	}
	old, now = add(), add()
	p.SetComparison(rateComparison(old, now, 100, 90))
	pairs := 0
	p.OnCompare(func(base, other string) *baiv1.CompareRunsResponse {
		pairs++
		value := 100 + float64(pairs%3)
		return rateComparison(base, other, value, value*factor)
	})
	p.OnSubmit(func(id string) {
		p.SetSummaries(id, &baiv1.GetSummariesResponse{Complete: true})
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: outcome(len(p.Submits()))})
	})
	return p, old, now
}

// checkOrder checks that the runs of two pairs are old, new, new, old, or new, old, old, new.
func checkOrder(t *testing.T, submits []*baiv1.SubmitRunRequest, old, now string) {
	t.Helper()
	order := ""
	for _, s := range submits {
		order += map[string]string{old: "o", now: "n"}[s.GetRerunOf()]
	}
	for i := 0; i+4 <= len(order); i += 4 {
		if four := order[i : i+4]; four != "onno" && four != "noon" {
			t.Errorf("the order is %s", order)
		}
	}
}

func succeeds(int) baiv1.Outcome { return baiv1.Outcome_OUTCOME_SUCCEEDED }

func TestComparedRunsAreRepeatedInPairsUntilTheVerdictStands(t *testing.T) {
	t.Parallel()
	p, old, now := startWithTwoRuns(t, succeeds, 0.9)
	got := runPiped(t, p.Addr(), "compare", old, now, "--rerun", "-o", "wide")
	expect(t, got, 6, "worse")
	for _, want := range []string{"rate (MB/s)", "-10.0 %", "7+7", "signed_ranks", "by 7 pairs that repeat", "the verdict stands"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in\n%s", want, got.out)
		}
	}
	submits := p.Submits()
	if len(submits) != 14 || strings.Contains(got.out, "run.duration") {
		t.Fatalf("%d runs were submitted\n%s", len(submits), got.out)
	}
	checkOrder(t, submits, old, now)
	for _, s := range submits {
		if s.GetCompares() == "" || s.GetCompares() != s.GetLabels()["compares"] || s.GetLabels()["model"] != "r" || s.GetOwner() == "" {
			t.Errorf("%v", s)
		}
	}
	again := runPiped(t, p.Addr(), "compare", old, now, "--rerun", "--max-runs", "30")
	expect(t, again, 6, "worse")
	for i, s := range p.Submits()[14:] {
		if s.GetIdempotencyKey() != submits[i].GetIdempotencyKey() {
			t.Errorf("run %d has another key: %s", i, s.GetIdempotencyKey())
		}
	}
	if n := len(p.Submits()); n != 28 {
		t.Errorf("%d submissions", n)
	}
}

func TestRepeatedRunsThatDoNotDifferStopAtTheirLimits(t *testing.T) {
	t.Parallel()
	p, old, now := startWithTwoRuns(t, succeeds, 1)
	pairs := 0
	p.OnCompare(func(base, other string) *baiv1.CompareRunsResponse {
		pairs++
		return rateComparison(base, other, 100, 99+float64(pairs%2*2))
	})
	got := runPiped(t, p.Addr(), "compare", old, now, "--rerun", "--max-cost", "31 USD")
	if n := len(p.Submits()); n != 14 || !strings.Contains(strings.Join(strings.Fields(got.out), " "), "a further pair would exceed --max-cost, after 28.00 USD") {
		t.Errorf("%d submissions\n%s", n, got)
	}
	same := runPiped(t, p.Addr(), "compare", old, now, "--rerun", "--min-change", "2%")
	expect(t, same, 0, "")
	if !strings.Contains(same.out, "same") {
		t.Errorf("%s", same)
	}
}

func TestAPairOfWhichARunFailsIsGivenUpAndAnotherOneTakesItsPlace(t *testing.T) {
	t.Parallel()
	p, old, now := startWithTwoRuns(t, func(n int) baiv1.Outcome {
		if n == 2 {
			return baiv1.Outcome_OUTCOME_FAILED
		}
		return baiv1.Outcome_OUTCOME_SUCCEEDED
	}, 0.9)
	got := runPiped(t, p.Addr(), "compare", old, now, "--rerun")
	expect(t, got, 6, "worse")
	if n := len(p.Submits()); n != 16 || !strings.Contains(strings.Join(strings.Fields(got.out), " "), "1 run (01kdyt1q880000000000000004) left out, it failed") {
		t.Errorf("%d submissions\n%s", n, got)
	}
	p, old, now = startWithTwoRuns(t, func(int) baiv1.Outcome { return baiv1.Outcome_OUTCOME_FAILED }, 0.9)
	got = runPiped(t, p.Addr(), "compare", old, now, "--rerun")
	expect(t, got, 0, "")
	if n := len(p.Submits()); n != 3 || !strings.Contains(got.out, "3 pairs in a row have no values") {
		t.Errorf("%d submissions\n%s", n, got)
	}
}

func TestWhoStopsWaitingForRepeatedRunsLearnsHowToGoOn(t *testing.T) {
	t.Parallel()
	p, old, now := startWithTwoRuns(t, succeeds, 0.9)
	p.OnSubmit(func(string) {})
	got := runPiped(t, p.Addr(), "compare", old, now, "--rerun", "--min-change", "2%", "--metric", "rate", "--timeout", "4s")
	expect(t, got, 4, fmt.Sprintf("run 01kdyt1q880000000000000003 goes on (come back: baictl compare %s %s --rerun --max-runs 20 --metric rate --min-change 2%%, end it: baictl cancel 01kdyt1q880000000000000003)", old, now))
}

func TestWhatCannotBeRepeatedIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	p, old, now := startWithTwoRuns(t, succeeds, 0.9)
	for args, want := range map[string]string{
		"--rerun --max-runs 12":           "fewer than 14 runs show no change of 1 series (raise it, or name fewer metrics)",
		"--rerun --max-runs 41":           "want 2 to 40",
		"--max-runs 12":                   "limits of --rerun: add it",
		"--rerun --max-cost 20":           "has no currency",
		"--rerun --max-cost 20_USD":       "fewer than 14 runs show no change, and these cost about 28.00 USD (raise it)",
		"--rerun --max-cost 20_EUR":       "the runs cost USD: give it in USD",
		"--rerun --metric loss":           "have no such metric in common",
		"--rerun -o benchstat":            "files and -o benchstat have none",
		"--rerun --by node --metric rate": "leave one of the two out",
	} {
		line := append([]string{"compare", old, now}, strings.Fields(args)...)
		for i := range line {
			line[i] = strings.ReplaceAll(line[i], "_", " ")
		}
		expect(t, runPiped(t, p.Addr(), line...), 2, want)
	}
	unpriced := rateComparison(old, now, 100, 90)
	unpriced.Series = unpriced.GetSeries()[:2]
	p.SetComparison(unpriced)
	expect(t, runPiped(t, p.Addr(), "compare", old, now, "--rerun", "--max-cost", "20 USD"), 2, "no cost of these runs is known (use --max-runs, or see docs/cost.md for prices of machines)")
	if n := len(p.Submits()); n != 0 {
		t.Errorf("%d runs were submitted", n)
	}
}
