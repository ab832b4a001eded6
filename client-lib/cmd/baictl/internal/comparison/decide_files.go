package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/series"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/judge"
	"github.com/benchmark-ai/bai/services/analyst/judge/compare"
)

// A MismatchError says that two files have nothing to compare.
type MismatchError struct{ Message string }

// Error implements error.
func (e *MismatchError) Error() string { return e.Message }

// Compare compares the series that two files have in common, as the platform compares runs, in
// the order of the new file: those of the named metrics, or all.
func Compare(c compare.Comparer, base, other Side, metrics []string) (*baiv1.CompareRunsResponse, error) {
	withoutCommonPackage(base, other)
	res := &baiv1.CompareRunsResponse{Old: &baiv1.ComparedSide{Operand: base.Operand}, New: &baiv1.ComparedSide{Operand: other.Operand}}
	before := make(map[seriesKey]FileSeries)
	for _, s := range base.wanted(metrics) {
		before[s.key()] = s
	}
	var inputs []compare.Metric
	var onlyNew []string
	for _, s := range other.wanted(metrics) {
		o, ok := before[s.key()]
		if !ok {
			onlyNew = append(onlyNew, s.name())
			continue
		}
		delete(before, s.key())
		s.Direction = cmp.Or(s.Direction, o.Direction)
		res.Series = append(res.Series, &baiv1.SeriesComparison{
			Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, Direction: s.Direction, Old: &baiv1.SideValues{Values: o.Values},
			New: &baiv1.SideValues{Values: s.Values},
		})
		inputs = append(inputs, compare.Metric{Direction: judge.Direction(s.Direction), Base: runs(o.Values), Other: runs(s.Values)})
	}
	var onlyOld []string
	for _, s := range before {
		onlyOld = append(onlyOld, s.name())
	}
	slices.Sort(onlyOld)
	res.Notes = append(aloneNotes(base.Operand, onlyOld), aloneNotes(other.Operand, onlyNew)...)
	if len(inputs) == 0 {
		return nil, &MismatchError{Message: strings.Join(append([]string{fmt.Sprintf("%s and %s have no metric in common", base.Operand,
			other.Operand)}, res.GetNotes()...), "; ")}
	}
	for i, found := range c.Compare(inputs...) {
		fill(res.GetSeries()[i], found)
	}
	return res, nil
}

// withoutCommonPackage removes the label of the package where it says nothing: all series of both
// sides have the same one.
func withoutCommonPackage(sides ...Side) {
	packages := map[string]bool{}
	for _, s := range sides {
		for _, one := range s.Series {
			packages[one.Labels[labelPackage]] = true
		}
	}
	if len(packages) > 1 {
		return
	}
	for _, s := range sides {
		for _, one := range s.Series {
			delete(one.Labels, labelPackage)
		}
	}
}

// wanted returns the series of the given metrics, or all.
func (s Side) wanted(metrics []string) []FileSeries {
	if len(metrics) == 0 {
		return s.Series
	}
	return slices.DeleteFunc(slices.Clone(s.Series), func(one FileSeries) bool { return !slices.Contains(metrics, one.Metric) })
}

// key is the same for two parts of one series.
func (s FileSeries) key() seriesKey { return keyOf(s.identity()) }

func (s FileSeries) name() string { return Name(s.identity()) }

func (s FileSeries) identity() *baiv1.SeriesComparison {
	return &baiv1.SeriesComparison{Metric: s.Metric, Unit: s.Unit, Labels: s.Labels}
}

// seriesKey is the same for two parts of one series, and for no others: the names of two series may be equal.
type seriesKey struct{ metric, unit, labels, cell string }

func keyOf(s *baiv1.SeriesComparison) seriesKey {
	return seriesKey{s.GetMetric(), s.GetUnit(), printer.LabelsKey(s.GetLabels()), s.GetCell()}
}

// mostNames is how many series a sentence names.
const mostNames = 3

// aloneNotes returns a note about the series that only one side has, if there are any.
func aloneNotes(operand string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("only %s has %s", operand, nameList(names))}
}

// nameList returns the first names, and how many more there are.
func nameList(names []string) string {
	if more := len(names) - mostNames; more > 0 {
		names = append(slices.Clone(names[:mostNames]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func runs(values []float64) []compare.Point {
	all := make([]compare.Point, len(values))
	for i, v := range values {
		all[i] = compare.Point{Value: v}
	}
	return all
}

// fill fills in what the comparison of a series came to.
func fill(s *baiv1.SeriesComparison, c compare.Comparison) {
	s.Verdict, s.Reason, s.Test = string(c.Verdict), string(c.Reason), string(c.Test)
	s.P, s.AdjustedP, s.Shows = c.P, c.AdjustedP, c.Shows
	s.LackingOld, s.LackingNew, s.Needed = int32Of(c.LackingBase), int32Of(c.LackingOther), int32Of(c.Needed)
	summarise(s.GetOld(), c.Base.Summary)
	summarise(s.GetNew(), c.Other.Summary)
	if c.Change != nil {
		s.Change = &baiv1.Difference{Value: c.Change.Value, Interval: interval(c.Change.Interval), Relative: c.Scale.Kind != judge.Absolute}
	}
}

func summarise(v *baiv1.SideValues, s judge.Summary) {
	v.N, v.Excluded, v.Median = int32Of(s.N), int32Of(s.Excluded), s.Median
	if s.Interval != nil {
		v.Interval = interval(*s.Interval)
	}
}

func interval(i judge.Interval) *baiv1.Interval {
	return &baiv1.Interval{Low: i.Low, High: i.High, Level: i.Level}
}

func int32Of(n int) int32 { return int32(min(n, 1<<31-1)) } //nolint:gosec // it is in range

// Name returns what identifies a series, for people.
func Name(s *baiv1.SeriesComparison) string { return printer.Clean(series.Name(s)) }
