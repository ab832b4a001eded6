package changepoint

import (
	"math"
	"slices"
)

// The filter of spikes is Hampel's: values are compared with the running median of
// medianWidth rows, so that fewer than half of them in a row are no level, unless they are
// the first or the last ones of the series. A deviation counts up to clipAt scales, less and less from taperFrom on, and nothing
// from taperTo on (Hampel et al. 1986, Robust Statistics, 2.6).
const (
	medianWidth = 13
	clipAt      = 3.0
	taperFrom   = 4.0
	taperTo     = 6.0

	// The standard deviation of normal values, by the median of absolute deviations and by
	// their mean.
	medianToSigma = 1.4826
	meanToSigma   = 1.2533
)

// withoutSpikes returns values with what spikes is taken off, values in which spikes count
// as much as what is no spike can, and how many were spikes. The spread of rows is that
// of the second: where it grows, the first make it too small.
func withoutSpikes(values []float64) (clean, wide []float64, spikes int) {
	medians, deviations := runningMedians(values)
	sorted := slices.Clone(deviations)
	slices.Sort(sorted)
	scale := scaleOf(sorted)
	levelEnds(values, medians, deviations, scale)
	clean, wide = slices.Clone(values), slices.Clone(values)
	for i, m := range medians {
		if deviations[i] <= clipAt*scale {
			continue
		}
		if deviations[i] >= taperTo*scale {
			spikes++
			wide[i] = m + math.Copysign(taperTo*scale, values[i]-m)
		}
		clean[i] = m + math.Copysign(scale*counted(deviations[i]/scale), values[i]-m)
	}
	return clean, wide, spikes
}

// levelEnds makes MinSide rows or more at an end of the series a level of its own, where all
// of them are as far from the running median as spikes, on one side of it, and as near to
// each other as other rows are: so many in a row are no burst. Within the series, the rows
// behind them say whether they are.
func levelEnds(values, medians, deviations []float64, scale float64) {
	n := len(values)
	far := func(i, as int) bool {
		return deviations[i] >= taperTo*scale && (values[i] > medians[i]) == (values[as] > medians[as])
	}
	head, tail := 0, n
	for head < min(medianWidth/2, n) && far(head, 0) {
		head++
	}
	for tail > max(n-medianWidth/2, head) && far(tail-1, n-1) {
		tail--
	}
	for _, rows := range [...][2]int{{0, head}, {tail, n}} {
		level := slices.Clone(values[rows[0]:rows[1]])
		slices.Sort(level)
		if len(level) < MinSide || level[len(level)-1]-level[0] > taperTo*scale {
			continue
		}
		for i := rows[0]; i < rows[1]; i++ {
			medians[i] = middle(level)
			deviations[i] = math.Abs(values[i] - medians[i])
		}
	}
}

// scaleOf returns the spread of sorted deviations: of those that are not 0, unless they
// are so few that they may all be spikes.
func scaleOf(sorted []float64) float64 {
	n := len(sorted)
	first := n
	for i, d := range sorted {
		if d > 0 {
			first = i
			break
		}
	}
	if other := sorted[first:]; len(other) >= n/5 && len(other) > 0 {
		return medianToSigma * other[len(other)/2]
	}
	return meanToSigma * mean(sorted)
}

// counted is how much of a deviation above clipAt counts, in scales.
func counted(deviation float64) float64 {
	switch {
	case deviation <= taperFrom:
		return clipAt
	case deviation >= taperTo:
		return 0
	}
	return clipAt * (taperTo - deviation) / (taperTo - taperFrom)
}

// runningMedians returns the medians of the medianWidth rows around each row, at the ends
// of the nearest ones, and how far values are from them.
func runningMedians(values []float64) (medians, deviations []float64) {
	n := len(values)
	medians, deviations = make([]float64, n), make([]float64, n)
	var window [medianWidth]float64
	w := window[:copy(window[:], values)]
	insertionSort(w)
	last := 0 // the first row of the window
	for i := range values {
		if from := max(0, min(i-medianWidth/2, n-medianWidth)); from > last {
			replace(w, values[last], values[last+medianWidth])
			last = from
		}
		medians[i] = middle(w)
		deviations[i] = math.Abs(values[i] - medians[i])
	}
	return medians, deviations
}

// replace puts a value in place of another one among sorted values.
func replace(w []float64, old, v float64) {
	i := 0
	for w[i] != old {
		i++
	}
	for ; i+1 < len(w) && w[i+1] < v; i++ {
		w[i] = w[i+1]
	}
	for ; i > 0 && w[i-1] > v; i-- {
		w[i] = w[i-1]
	}
	w[i] = v
}

// insertionSort is the fastest for so few values.
func insertionSort(w []float64) {
	for i := 1; i < len(w); i++ {
		v, j := w[i], i
		for ; j > 0 && w[j-1] > v; j-- {
			w[j] = w[j-1]
		}
		w[j] = v
	}
}

// middle returns the median of sorted values.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}

// standard returns values around their median, none larger than 1.
func standard(values []float64) (z []float64, center, scale float64) {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	center = middle(sorted)
	scale = max(sorted[len(sorted)-1]/2-center/2, center/2-sorted[0]/2) // halves, for sums that overflow
	z = make([]float64, len(values))
	if scale == 0 {
		return z, center, 0
	}
	for i, v := range values {
		z[i] = (v/2 - center/2) / scale
	}
	return z, center, 2 * scale
}

// scores returns normal scores: the quantile of a normal distribution for the rank of each
// value. Equal values have the same.
func scores(values []float64) []float64 {
	const limit = 2 // the few largest ranks say little about a level
	n := len(values)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return a - b
	})
	z := make([]float64, n)
	for from := 0; from < n; {
		to := from
		for to < n && values[order[to]] == values[order[from]] {
			to++
		}
		q := math.Sqrt2 * math.Erfinv(float64(from+to)/float64(n)-1)
		for _, i := range order[from:to] {
			z[i] = max(-limit, min(limit, q))
		}
		from = to
	}
	return z
}
