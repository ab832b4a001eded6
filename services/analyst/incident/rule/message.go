package rule

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// message returns one sentence of what an incident is about: with the direction, the numbers and
// the version. Its texts may be those of users.
func (w *decision) message(i incident.Incident, e episode) string {
	subject := name(i.Series)
	if s := i.Rule.Statistic; s != "" && s != incident.Median {
		subject = string(s) + " of " + subject
	}
	at := ""
	if v := i.FirstBad.Version; v != "" {
		at = ", since version " + v
	}
	switch i.Rule.When {
	case incident.Failed:
		reason := cmp.Or(w.rows[e.newest].reason, "no reason is known")
		return fmt.Sprintf("%s of %s failed: %s%s", counted(e.newest-e.bad+1, "run", "runs in a row"), i.Series.Task, reason, at)
	case incident.Above, incident.Below:
		return fmt.Sprintf("%s is %s the limit of %s: %s%s", subject, i.Rule.When, number(i.Before, i.Unit), number(i.After, i.Unit), at)
	case incident.Beyond:
		return fmt.Sprintf("%s is beyond baseline %s by %s: %s instead of %s%s", subject, i.Rule.Baseline, share(i),
			number(i.After, i.Unit), number(i.Before, i.Unit), at)
	case incident.Regression, incident.Change, incident.Missing:
	}
	verb := "rose"
	if !e.up {
		verb = "fell"
	}
	by := ""
	if i.Magnitude != nil {
		by = " by " + share(i) + interval(i)
	}
	return fmt.Sprintf("%s %s%s, from %s to %s%s", subject, verb, by, number(i.Before, ""), number(i.After, i.Unit), at)
}

// name returns what a series is, for people.
func name(k store.SeriesKey) string {
	parts := []string{cmp.Or(k.Metric, "runs")}
	for _, key := range slices.Sorted(maps.Keys(k.Labels)) {
		parts = append(parts, key+"="+k.Labels[key])
	}
	text := strings.Join(parts, " ")
	if k.Task != "" {
		text += " of " + k.Task
	}
	if k.Cell != "" {
		text += " (" + k.Cell + ")"
	}
	return text
}

// number returns a number with at most 6 digits.
func number(v float64, unit string) string {
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', 6, 64) + " " + unit)
}

func share(i incident.Incident) string {
	if i.Magnitude == nil {
		return number(math.Abs(i.After-i.Before), i.Unit)
	}
	return percent(i.Size())
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'g', 3, 64) + " %" }

func interval(i incident.Incident) string {
	low, high := float64(i.Interval[0]), float64(i.Interval[1])
	if math.IsNaN(low) || math.IsNaN(high) {
		return ""
	}
	if low < 0 && high > 0 {
		return fmt.Sprintf(" (%s to +%s)", percent(low), percent(high))
	}
	if low, high = math.Abs(low), math.Abs(high); low > high {
		low, high = high, low
	}
	return fmt.Sprintf(" (%s to %s)", percent(low), percent(high))
}
