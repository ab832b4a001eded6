package rule

import (
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/analyst/incident"
)

// Of returns the rules of a descriptor, in the order of its tables, as rules of its task
// in a namespace. Since is the time of its run, by which points are ordered. Rules without a
// task watch nothing: there are none.
func Of(namespace string, d *descriptors.Descriptor, since time.Time) []incident.Rule {
	if d == nil || d.Info.TaskName == "" {
		return nil
	}
	var all []incident.Rule
	for _, alarm := range d.Alarms {
		a := alarm.Read()
		r := incident.Rule{
			Namespace: namespace, Task: d.Info.TaskName, Metric: a.Metric,
			Statistic: incident.Statistic(a.Statistic), When: incident.When(a.When),
			Unit: a.Unit, Limit: a.Limit(), Baseline: a.Baseline, MinChange: a.MinChange, For: a.Consecutive(), Within: a.Within,
			Notify: a.Notify, Since: since,
		}
		if a.Confirm != nil {
			r.Confirm = &incident.Confirm{
				Pairs: a.Confirm.Pairs, MaxRuns: a.Confirm.Runs(), MaxCost: a.Confirm.MaxCost,
				Deadline: a.Confirm.Deadline,
			}
		}
		all = append(all, r.WithID())
	}
	return all
}
