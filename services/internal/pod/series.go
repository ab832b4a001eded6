package pod

// MaxSeries is how many different series of samples are kept of one run, one for each
// metric and set of labels; those that say how the machine is used are not counted.
const MaxSeries = 15_000

// Bounds of a sample in a line that client libraries write. The collector refuses what goes beyond them.
const (
	MaxMetricName = 256 // bytes
	MaxLabels     = 32
	MaxLabel      = 256 // bytes of a label's name or value, and of a unit
)

// SeriesLimit is the share of MaxSeries that a pod has beside so many others of its run:
// the pod whose end ends the run has half of them, the others share the rest evenly.
func SeriesLimit(ends bool, others int) int {
	switch {
	case others <= 0:
		return MaxSeries
	case ends:
		return MaxSeries / 2
	}
	return max(1, MaxSeries/2/others)
}
