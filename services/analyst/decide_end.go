package analyst

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// Limits of notices of ends.
const (
	maxNumbers = 10
	lateEnd    = 7 * 24 * time.Hour // an end that lies further back is of an import, or comes from a replay: notices are kept longer
)

// endNotified returns the descriptor of a run of whose end somebody is notified, else nil. The end of a run of a set is no news: that of
// the set is.
func endNotified(r store.Run, p store.PointRun, now time.Time) *descriptors.Descriptor {
	other := r.Set != "" || p.Excluded == store.ExcludedImport || points.OutsideHistory(r)
	if other || r.Outcome == "" || r.Ended == nil || now.Sub(*r.Ended) > lateEnd || !strings.Contains(r.Descriptor, "notify") {
		return nil
	}
	d, _ := parser.Parser{Accepted: true}.Parse(r.File, []byte(r.Descriptor))
	if d == nil || len(d.Info.Notify) == 0 {
		return nil
	}
	return d
}

// endOf returns the end of a run, for notices.
func endOf(r store.Run, p store.RunPoints, d *descriptors.Descriptor) notice.End {
	e := notice.End{
		ID: r.ID, Name: r.Name, Namespace: r.Namespace, Task: r.Labels[store.LabelTask], Owner: r.Owner, Labels: r.Labels,
		Outcome: r.Outcome, Reason: r.Reason,
		Message: r.Message, Submitted: r.Created, Ended: *r.Ended, Incomplete: !p.Complete,
	}
	e.Numbers, e.More = headlines(p.Points, d)
	return e
}

// headlines returns the most important values of a run: those of the metrics that its alarms watch or that it declares, others, and its
// times at last. Values of the system's metrics are left out.
func headlines(all []store.Summary, d *descriptors.Descriptor) (numbers []notice.Number, more int) {
	var first []string
	for _, a := range d.Alarms {
		first = append(first, a.Metric)
	}
	if d.Output != nil {
		for _, m := range d.Output.Metrics {
			first = append(first, m.Name)
		}
	}
	rank := func(s store.Summary) int {
		switch i := slices.Index(first, s.Metric); {
		case i >= 0:
			return i
		case strings.HasPrefix(s.Metric, "run."):
			return len(first) + 1
		}
		return len(first)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s store.Summary) bool { return strings.HasPrefix(s.Metric, "system.") })
	slices.SortStableFunc(all, func(a, b store.Summary) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.Metric, b.Metric)) })
	for _, s := range all[:min(len(all), maxNumbers)] {
		numbers = append(numbers, notice.Number{Metric: s.Metric, Unit: s.Unit, Labels: s.Labels, Value: s.Median})
	}
	return numbers, len(all) - len(numbers)
}
