package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/units"
)

// cost finds metrics in cost.per that count nothing.
func (c rules) cost() {
	if c.d.Output == nil || c.r.HasErrorBelow("output") {
		return
	}
	for i, name := range c.d.Cost.Per {
		for _, m := range c.d.Output.Metrics {
			if m.Name == name && units.IsRate(m.Units) {
				c.r.Fault(fmt.Sprintf("cost.per[%d]", i), fault.BadPer,
					fmt.Sprintf("%q is a rate (%s), and no number of things", name, m.Units),
					"name a metric that counts them")
			}
		}
	}
}

// alarmCost finds alarms on a cost or an energy that is not computed.
func (c rules) alarmCost(at string, a descriptors.Alarm) {
	if c.r.HasErrorBelow("cost") {
		return
	}
	for _, prefix := range []string{descriptors.CostPer, descriptors.EnergyPer} {
		if name, ok := strings.CutPrefix(a.Metric, prefix); ok && !slices.Contains(c.d.Cost.Per, name) {
			c.r.Fault(at+".metric", fault.NoPer, fmt.Sprintf("%q is not computed: cost.per does not list %q", a.Metric, name),
				fmt.Sprintf("add [cost] with per = [%q]", name))
		}
	}
}
