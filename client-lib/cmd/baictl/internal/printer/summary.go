package printer

import (
	"cmp"
	"math"
	"slices"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A Summary summarises the samples of one metric, with one unit and one set of labels.
type Summary struct {
	Run        string // run of the samples; empty if runs are merged
	Metric     string
	Unit       string
	Labels     string
	N          int // samples that are numbers
	NotNumbers int // samples that are NaN: they are in nothing else
	Median     float64
	Min, Max   float64
	Mean       float64
	StdDev     float64 // of the sample (n-1); NaN for one value
	Direction  string  // which values are better: higher or lower; empty where no sample says
}

// Samples gathers samples to be summarised. The zero value is empty.
type Samples struct {
	ByRun  bool // each run has summaries of its own
	groups []*group
	byKey  map[key]*group
}

type key struct{ run, metric, unit, labels string }

type group struct {
	key
	labels     string // for people
	values     []float64
	notNumbers int
	direction  string
}

// Add adds a sample of a run.
func (s *Samples) Add(run string, sample *baiv1.Sample) {
	if !s.ByRun {
		run = ""
	}
	k := key{run, sample.GetMetric(), sample.GetUnit(), LabelsKey(sample.GetLabels())}
	g := s.byKey[k]
	if g == nil {
		if s.byKey == nil {
			s.byKey = map[key]*group{}
		}
		g = &group{key: k, labels: Labels(sample.GetLabels())}
		s.byKey[k] = g
		s.groups = append(s.groups, g)
	}
	g.direction = cmp.Or(g.direction, sample.GetDirection())
	if math.IsNaN(sample.GetValue()) {
		g.notNumbers++
		return
	}
	g.values = append(g.values, sample.GetValue())
}

// Summaries are in order of the runs' first appearance, then of the metric's
// name, then of its own first appearance.
func (s *Samples) Summaries() []Summary {
	all := make([]Summary, len(s.groups))
	for i, g := range s.groups {
		all[i] = g.summary()
	}
	first := map[string]int{}
	for _, one := range all {
		if _, seen := first[one.Run]; !seen {
			first[one.Run] = len(first)
		}
	}
	slices.SortStableFunc(all, func(a, b Summary) int {
		return cmp.Or(cmp.Compare(first[a.Run], first[b.Run]), cmp.Compare(a.Metric, b.Metric))
	})
	return all
}

func (g *group) summary() Summary {
	nan := math.NaN()
	s := Summary{
		Run: g.run, Metric: g.metric, Unit: g.unit, Labels: g.labels, N: len(g.values), NotNumbers: g.notNumbers, Direction: g.direction,
		Median: nan, Min: nan, Max: nan, Mean: nan, StdDev: nan,
	}
	if s.N == 0 {
		return s
	}
	slices.Sort(g.values)
	s.Min, s.Max, s.Median = g.values[0], g.values[s.N-1], median(g.values)
	var sum, squares float64
	for _, v := range g.values {
		sum += v
	}
	s.Mean = sum / float64(s.N)
	for _, v := range g.values {
		squares += (v - s.Mean) * (v - s.Mean)
	}
	if s.N > 1 {
		s.StdDev = math.Sqrt(squares / float64(s.N-1))
	}
	return s
}

// median of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}
