package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
	"github.com/benchmark-ai/bai/descriptors/price"
	"github.com/benchmark-ai/bai/descriptors/units"
)

// maxAlarms is how many alarms a descriptor has at most.
const maxAlarms = 100

// alarms checks the alarms, and takes the condition of those that say only a limit.
func (c rules) alarms() {
	if len(c.d.Alarms) > maxAlarms {
		c.r.Fault("alarms", fault.OutOfRange, fmt.Sprintf("has %d alarms, %d at most are taken", len(c.d.Alarms), maxAlarms), "")
	}
	first := map[string]int{}
	for i := range c.d.Alarms {
		a, at := &c.d.Alarms[i], fmt.Sprintf("alarms[%d]", i)
		if c.r.HasError(at) || !c.condition(at, a) {
			continue
		}
		c.alarmMetric(at, *a)
		c.alarmCost(at, *a)
		c.alarmLimit(at, *a)
		c.due(at, *a)
		c.unreadAlarmKeys(at, *a)
		c.receivers(at+".notify", a.Notify)
		c.confirmation(at+".confirm", *a)
		if c.r.HasErrorBelow(at) {
			continue
		}
		key := alarmKey(*a)
		if j, twice := first[key]; twice {
			c.r.Fault(at, fault.SameAlarm, fmt.Sprintf("watches what alarms[%d] watches", j),
				"leave one of the two out; notify takes several receivers")
			continue
		}
		first[key] = i
	}
}

// limitKeys are the keys of limits, which are conditions, too.
func limitKeys() []string { return []string{"above", "below", "beyond"} }

// condition reports whether an alarm has one condition, and one that can be read.
func (c rules) condition(at string, a *descriptors.Alarm) bool {
	if c.r.HasErrorBelow(at) || c.damaged {
		return false
	}
	given := c.given(at, limitKeys()...)
	switch {
	case len(given) > 1:
		c.r.Fault(at+"."+given[1], fault.AlarmConflict, given[0]+" is a condition of this alarm already",
			"write an alarm of its own for each limit")
		return false
	case len(given) == 1 && a.When != "" && string(a.When) != given[0]:
		c.r.Fault(at+"."+given[0], fault.AlarmConflict,
			fmt.Sprintf("the condition of this alarm is %s", a.When), "leave one of the two out")
		return false
	case len(given) == 1:
		a.When = descriptors.Condition(given[0])
	case a.When == "":
		c.r.Fault(at, fault.AlarmCondition, "does not say when", `add when = "regression", or a limit as above = 250`)
		return false
	case a.When.Limit():
		c.r.Fault(at+".when", fault.AlarmCondition, fmt.Sprintf("%s has no limit", a.When), fmt.Sprintf("add %s", limitExample(a.When)))
		return false
	}
	if a.When == descriptors.OnBeyond && a.Baseline == "" {
		c.r.Fault(at, fault.AlarmCondition, "beyond has no baseline", `add baseline = "NAME", as baictl baseline set names it`)
	}
	if a.When != descriptors.OnFailed && a.Metric == "" {
		c.r.Fault(at, fault.AlarmCondition, fmt.Sprintf("when = %q has no metric", a.When), `add metric = "NAME"`)
	}
	return !c.r.HasError(at)
}

func limitExample(w descriptors.Condition) string {
	if w == descriptors.OnBeyond {
		return `beyond = "5%"`
	}
	return fmt.Sprintf("%s = 250", w)
}

// alarmMetric finds metrics that the descriptor does not have, or whose direction is not known.
func (c rules) alarmMetric(at string, a descriptors.Alarm) {
	if a.When == descriptors.OnFailed || descriptors.OfPlatform(a.Metric) && !a.When.Directed() || c.r.HasErrorBelow("output") {
		return
	}
	var listed []descriptors.Metric
	var names []string
	parsed := false
	if out := c.d.Output; out != nil {
		listed = out.Metrics
		names = c.namesOf(*out)
		parsed = slices.ContainsFunc(out.Parsers, func(p descriptors.Parser) bool { return finds(p, a.Metric) })
	}
	i := slices.IndexFunc(listed, func(m descriptors.Metric) bool { return m.Name == a.Metric })
	similar := suggest.Find(a.Metric, names)
	switch {
	case i < 0 && !parsed && similar != "" && !descriptors.OfPlatform(a.Metric):
		c.r.Fault(at+".metric", fault.AlarmMetric, fmt.Sprintf("the descriptor has no metric %q", a.Metric),
			fmt.Sprintf("did you mean %q? A metric that the benchmark emits can be listed in [[output.metrics]]", similar))
	case !a.When.Directed() || parsed || descriptors.PlatformDirection(a.Metric) != "" || i >= 0 && listed[i].Direction != "":
	default:
		remedy := `add [[output.metrics]] with its name, its units and direction = "higher" or "lower"`
		if i >= 0 {
			remedy = fmt.Sprintf(`add direction = "higher" or "lower" to output.metrics[%d]`, i)
		}
		if a.When == descriptors.OnRegression {
			remedy += `, or write when = "change"`
		}
		c.r.Fault(at+".metric", fault.NoDirection,
			fmt.Sprintf("%q has no direction: the alarm cannot tell which values are worse", a.Metric), remedy)
	}
}

// namesOf are the names of metrics that the output gives.
func (c rules) namesOf(out descriptors.Output) []string {
	names := []string{"run.duration", "run.queued", descriptors.CostAmount, descriptors.EnergyJoules}
	for _, name := range c.d.Cost.Per {
		names = append(names, descriptors.CostPer+name, descriptors.EnergyPer+name)
	}
	for _, m := range out.Metrics {
		names = append(names, m.Name)
	}
	for _, p := range out.Parsers {
		names = slices.AppendSeq(names, maps.Keys(p.Metrics))
		for _, m := range descriptors.ParsedMetrics() {
			if m.Kind == p.Kind && m.Name != "*" {
				names = append(names, m.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// finds reports whether a parser may find a metric.
func finds(p descriptors.Parser, metric string) bool {
	if len(p.Metrics) > 0 {
		_, ok := p.Metrics[metric]
		return ok
	}
	return p.Kind == "auto" || slices.ContainsFunc(descriptors.ParsedMetrics(), func(m descriptors.ParsedMetric) bool {
		return m.Kind == p.Kind && (m.Name == metric || m.Name == "*")
	})
}

// alarmLimit finds limits in a unit that is not that of the metric.
func (c rules) alarmLimit(at string, a descriptors.Alarm) {
	if a.Unit == "" || a.When != descriptors.OnAbove && a.When != descriptors.OnBelow {
		return
	}
	unit := ""
	if c.d.Output != nil {
		for _, m := range c.d.Output.Metrics {
			if m.Name == a.Metric {
				unit = m.Units
			}
		}
	}
	if of := descriptors.PlatformUnit(a.Metric); of != "" {
		unit = of
	}
	if unit == "" || unit == a.Unit || units.Convertible(a.Unit, unit) {
		return
	}
	c.r.Fault(at+".unit", fault.AlarmUnit, fmt.Sprintf("%q cannot be converted to %q, the unit of %s", a.Unit, unit, a.Metric),
		fmt.Sprintf("write unit = %q, or leave it out", unit))
}

// due finds alarms on missing values without a time at which they are due.
func (c rules) due(at string, a descriptors.Alarm) {
	if a.When == descriptors.OnMissing && a.Within == 0 && !c.d.Info.Scheduled() && !c.r.HasError("info.scheduling") {
		c.r.Fault(at, fault.NoDueTime, "nothing says when the next value is due", `add within = "26h", or info.scheduling`)
	}
}

// unreadAlarmKeys warns of keys that an alarm does not read.
func (c rules) unreadAlarmKeys(at string, a descriptors.Alarm) {
	for _, key := range []string{"metric", "min_change", "for", "within", "unit", "baseline", "statistic"} {
		if a.Unread(key) && c.r.Has(at+"."+key) {
			c.r.Warn(at+"."+key, fault.NotRead, fmt.Sprintf("an alarm with when = %q does not read it", a.When), "leave it out")
		}
	}
}

// receivers finds those that the platform does not have for the descriptor's namespace.
func (c rules) receivers(at string, names []string) {
	if c.r.HasErrorBelow(at) {
		return
	}
	for i, name := range names {
		if message, remedy, unknown := c.platform.UnknownReceiver(name); unknown {
			c.r.Fault(fmt.Sprintf("%s[%d]", at, i), fault.NoReceiver, message, remedy)
		}
	}
}

// UnknownReceiver reports whether the platform has no receiver of a name for the namespace, and
// says so.
func (p Platform) UnknownReceiver(name string) (message, remedy string, unknown bool) {
	if p.Receivers == nil || p.Accepted {
		return "", "", false
	}
	usable, namespace := p.usable(p.Receivers)
	usable = append(usable, descriptors.Submitter)
	return fmt.Sprintf("this platform has no receiver %q for the namespace %q", name, namespace),
		"use one of " + strings.Join(usable, ", "),
		!slices.Contains(usable, name)
}

// confirmation finds confirmations that cannot be made.
func (c rules) confirmation(at string, a descriptors.Alarm) {
	if a.Confirm == nil || c.r.HasErrorBelow(at) {
		return
	}
	if !a.When.Confirmable() {
		c.r.Fault(at, fault.NothingToConfirm, fmt.Sprintf("an alarm with when = %q has no values that runs could confirm", a.When),
			"leave it out")
		return
	}
	if n := a.Confirm.MaxRuns; n != nil && *n < 2*a.Confirm.Pairs {
		c.r.Fault(at+".max_runs", fault.FewRuns,
			fmt.Sprintf("%d pairs need %d runs, and %d are allowed", a.Confirm.Pairs, 2*a.Confirm.Pairs, *n),
			fmt.Sprintf("write max_runs = %d or more, or fewer pairs", 2*a.Confirm.Pairs))
	}
	c.budget(at, *a.Confirm)
	for _, image := range unpinnedImages(*c.d) {
		c.r.Fault(at, fault.NotRepeatable,
			fmt.Sprintf("the image %q is one of several, and a tag may name another one when the run is repeated", image),
			"name it by its digest: NAME@sha256:…")
		return
	}
}

// budget finds a limit of cost that cannot be kept.
func (c rules) budget(at string, confirm descriptors.Confirm) {
	limit, err := price.Parse(confirm.MaxCost)
	if err != nil {
		return
	}
	own, err := price.Parse(c.d.Hardware.PricePerHour)
	switch {
	case err != nil && confirm.MaxRuns == nil:
		c.r.Fault(at+".max_cost", fault.NoBudget,
			"the descriptor has no price, and where the settings have none either, max_cost cannot be kept",
			fmt.Sprintf("add max_runs = %d, or hardware.price_per_hour", confirm.Runs()))
	case err == nil && own.Currency() != limit.Currency():
		c.r.Fault(at+".max_cost", fault.NoBudget,
			fmt.Sprintf("is in %s, and hardware.price_per_hour in %s", limit.Currency(), own.Currency()),
			fmt.Sprintf("write both in %s", own.Currency()))
	}
}

// unpinnedImages returns the images of a descriptor that are named by tags, if it has several images: which of them a digest of a run
// belongs to is not known.
func unpinnedImages(d descriptors.Descriptor) []string {
	images := d.Images()
	if len(images) < 2 {
		return nil
	}
	return slices.DeleteFunc(images, func(name string) bool { return strings.Contains(name, "@sha256:") })
}

// alarmKey is the same for alarms that watch the same. Receivers do not matter.
func alarmKey(a descriptors.Alarm) string {
	r := a.Read()
	return fmt.Sprintf("%q %s %v %v %q %d %v %s %q", r.Metric, r.When, r.MinChange, r.Limit(), r.Baseline, r.Consecutive(),
		r.Within, r.Statistic, r.Unit)
}
