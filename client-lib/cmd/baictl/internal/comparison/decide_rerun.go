package comparison

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/descriptors"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/sequential"
)

// CostMetric is the metric that says what a run has cost.
const CostMetric = "cost.amount"

// labelCompares is the label of repeated runs with the ID of their comparison, for people.
const labelCompares = "compares"

// A Rerun is two runs that are repeated in pairs. Whoever repeats the same two runs gets the
// same repetitions of them.
type Rerun struct {
	ID       string
	Old, New *baiv1.Run
}

// NewRerun returns the rerun of two runs.
func NewRerun(base, other *baiv1.Run) Rerun {
	sum := sha256.Sum256([]byte(base.GetId() + " " + other.GetId()))
	return Rerun{ID: hex.EncodeToString(sum[:8]), Old: base, New: other}
}

// IsOld reports whether the run with an ordinal, from 0 and two for each pair, repeats the old one.
// The order within pairs is random by the ID, and balanced: old, new, new, old, or new, old, old, new.
func (r Rerun) IsOld(ordinal int) bool {
	pair := ordinal / 2
	sum := sha256.Sum256([]byte(r.ID + " " + strconv.Itoa(pair/2)))
	oldFirst := (sum[0]&1 == 0) == (pair%2 == 0)
	return oldFirst == (ordinal%2 == 0)
}

// Submission returns what submits the run with an ordinal. It is the same run each time.
func (r Rerun) Submission(ordinal int) bai.Submission {
	run := r.New
	if r.IsOld(ordinal) {
		run = r.Old
	}
	labels := maps.Clone(run.GetLabels())
	if labels == nil {
		labels = make(map[string]string)
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return descriptors.ReservedLabel(key) })
	labels[labelCompares] = r.ID
	return bai.Submission{
		Descriptor: []byte(run.GetDescriptorToml()), File: run.GetDescriptorFile(), Namespace: run.GetNamespace(), Labels: labels,
		RerunOf: run.GetId(), Script: run.GetScript().GetSha256(), Compares: r.ID, Key: fmt.Sprintf("compare %s %d", r.ID, ordinal),
	}
}

// ToJudge returns the series of a comparison that repeated runs are judged by: those of the named
// metrics, or without names those that the benchmark emits. The error says what to name instead.
func ToJudge(c *baiv1.CompareRunsResponse, metrics []string) ([]*baiv1.SeriesComparison, error) {
	var all []*baiv1.SeriesComparison
	for _, s := range c.GetSeries() {
		if s.GetCell() != "" {
			return nil, &MismatchError{Message: "the sides are compared cell by cell, and --rerun repeats single runs: name a run of each"}
		}
		if len(metrics) == 0 && !ofPlatform(s.GetMetric()) || slices.Contains(metrics, s.GetMetric()) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, &MismatchError{Message: fmt.Sprintf("%s and %s have no such metric in common: name one of both with --metric",
			c.GetOld().GetOperand(), c.GetNew().GetOperand())}
	}
	return all, nil
}

// ofPlatform reports whether the platform measures a metric itself.
func ofPlatform(metric string) bool {
	return slices.ContainsFunc([]string{"run.", "system.", "cost.", "energy."},
		func(prefix string) bool { return strings.HasPrefix(metric, prefix) })
}

// Pairs are the values of repeated runs, and what they say. A verdict on a series stands: it is that
// of the pairs until then, however many more are made for the other series.
type Pairs struct {
	comparer sequential.Comparer
	series   []*baiv1.SeriesComparison
}

// NewPairs returns the pairs of series, before the first one. The error says that so few runs as
// there may be show nothing, and how many do.
func NewPairs(series []*baiv1.SeriesComparison, minChange float64, maxRuns int) (*Pairs, error) {
	comparer, err := sequential.New(minChange, len(series), maxRuns/2)
	if err != nil {
		return nil, err
	}
	if comparer.Fewest() == 0 {
		all, err := sequential.New(minChange, len(series), sequential.MaxPairs)
		if err != nil {
			return nil, err
		}
		return nil, &MismatchError{Message: fmt.Sprintf("--max-runs %d: fewer than %d runs show no change of %d series (raise it, or name fewer metrics)",
			maxRuns, 2*all.Fewest(), len(series))}
	}
	p := &Pairs{comparer: comparer}
	for _, s := range series {
		p.series = append(p.series, &baiv1.SeriesComparison{
			Metric: s.GetMetric(), Unit: s.GetUnit(), Labels: s.GetLabels(), Direction: s.GetDirection(),
			Verdict: Unclear, Old: &baiv1.SideValues{}, New: &baiv1.SideValues{},
		})
	}
	p.judge()
	return p, nil
}

// Fewest returns the number of pairs after which there may be a verdict.
func (p *Pairs) Fewest() int { return p.comparer.Fewest() }

// Metrics returns the names of the metrics of the series.
func (p *Pairs) Metrics() []string {
	var names []string
	for _, s := range p.series {
		names = append(names, s.GetMetric())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Add adds the values of a pair, from the comparison of its two runs, to the series without a
// verdict. A series that one of the two lacks has no value there.
func (p *Pairs) Add(c *baiv1.CompareRunsResponse) {
	values := make(map[seriesKey]*baiv1.SeriesComparison)
	for _, s := range c.GetSeries() {
		values[keyOf(s)] = s
	}
	for _, s := range p.series {
		if s.GetVerdict() != Unclear {
			continue
		}
		one := values[keyOf(s)]
		add(s.GetOld(), one.GetOld())
		add(s.GetNew(), one.GetNew())
	}
	p.judge()
}

// add adds the value of a run to those of its side.
func add(side, run *baiv1.SideValues) {
	v := math.NaN()
	if run.GetN() == 1 {
		v = run.GetMedian()
	}
	side.Values = append(side.GetValues(), v)
	side.Samples += run.GetSamples()
}

// judge judges the series without a verdict.
func (p *Pairs) judge() {
	for _, s := range p.series {
		if s.GetVerdict() != Unclear {
			continue
		}
		fill(s, p.comparer.Compare(judge.Direction(s.GetDirection()), s.GetOld().GetValues(), s.GetNew().GetValues()))
	}
}

// Stand reports whether there is a verdict on each series.
func (p *Pairs) Stand() bool {
	return !slices.ContainsFunc(p.series, func(s *baiv1.SeriesComparison) bool { return s.GetVerdict() == Unclear })
}

// Series returns the series with their verdicts.
func (p *Pairs) Series() []*baiv1.SeriesComparison { return p.series }

// A Budget is what repeated runs may cost. Its zero value has no limit.
type Budget struct {
	currency string
	limit    float64
	estimate float64 // of a run
	spent    float64
}

// NewBudget returns a budget in a currency, by the comparison of the two runs that are repeated: a
// repetition is taken to cost what the dearer one has cost. The error says that this is not known, or
// that the fewest pairs of which there may be a verdict cost more.
func NewBudget(limit float64, currency string, c *baiv1.CompareRunsResponse, fewest int) (Budget, error) {
	b := Budget{currency: currency, limit: limit, estimate: math.NaN()}
	other := ""
	for _, s := range c.GetSeries() {
		switch {
		case s.GetMetric() != CostMetric:
		case s.GetUnit() != currency:
			other = s.GetUnit()
		default:
			b.estimate = max(s.GetOld().GetMedian(), s.GetNew().GetMedian())
		}
	}
	switch {
	case other != "" && math.IsNaN(b.estimate):
		return b, &MismatchError{Message: fmt.Sprintf("--max-cost is in %s, and the runs cost %s: give it in %s", currency, other, other)}
	case math.IsNaN(b.estimate):
		return b, &MismatchError{Message: "--max-cost cannot be kept: no cost of these runs is known (use --max-runs, or see docs/cost.md for prices of machines)"}
	}
	if needed := 2 * float64(fewest) * b.estimate; needed > limit {
		return b, &MismatchError{Message: fmt.Sprintf("--max-cost %s: fewer than %d runs show no change, and these cost about %s (raise it)",
			printer.Money(limit, currency), 2*fewest, printer.Money(needed, currency))}
	}
	return b, nil
}

// Spend adds what the runs of a pair have cost: each that has no known cost is taken to cost
// as estimated.
func (b *Budget) Spend(c *baiv1.CompareRunsResponse, runs int) {
	for _, s := range c.GetSeries() {
		if s.GetMetric() != CostMetric || s.GetUnit() != b.currency {
			continue
		}
		for _, side := range []*baiv1.SideValues{s.GetOld(), s.GetNew()} {
			if side.GetN() == 1 {
				b.spent += side.GetMedian()
				runs--
			}
		}
	}
	b.spent += float64(max(runs, 0)) * b.estimate
}

// Allows reports whether a further pair stays within the budget.
func (b *Budget) Allows() bool { return b.currency == "" || b.spent+2*b.estimate <= b.limit }

// Text says what was spent.
func (b *Budget) Text() string { return printer.Money(b.spent, b.currency) }
