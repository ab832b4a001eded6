package series

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// maxOutlook is how many series an outlook names.
const maxOutlook = 3

// Outlook says what a run of a task costs, and on one line which changes of the watched metrics runs can
// show on each side. Both are left out where they are not known.
func Outlook(plan *baiv1.PlanPowerResponse, task string, watched []string, runs int32) (texts []string) {
	if cost := plan.GetRunCost(); cost != nil {
		texts = append(texts, fmt.Sprintf("a run of %s costs about %s, the median of its newest %s",
			task, printer.Money(cost.GetAmount(), cost.GetCurrency()), printer.Plural(cost.GetRuns(), "run")))
	}
	var shown, lacking []string
	for _, p := range Powers(plan) {
		if !slices.Contains(watched, p.GetMetric()) {
			continue
		}
		for _, d := range p.GetDetectable() {
			if p.GetLacking() == 0 && d.GetChange() != nil && d.GetRunsASide() == runs {
				shown = append(shown, p.change(d)+" of "+Name(p))
			}
		}
		if n := p.GetLacking(); n > 0 {
			lacking = append(lacking, fmt.Sprintf("%s needs %s", Name(p), printer.Plural(n, "more run")))
		}
	}
	if len(shown) > 0 {
		texts = append(texts, fmt.Sprintf("its alarms: %s a side show a change of %s", printer.Plural(runs, "run"), firstOf(shown)))
	}
	if len(lacking) > 0 {
		texts = append(texts, "its alarms: before a change is seen, "+firstOf(lacking))
	}
	return texts
}

// firstOf returns the first texts, and how many more there are.
func firstOf(texts []string) string {
	if more := len(texts) - maxOutlook; more > 0 {
		texts = append(slices.Clone(texts[:maxOutlook]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}
