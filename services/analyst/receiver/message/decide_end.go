package message

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// EndHeadline returns what ended, and how.
func EndHeadline(e notice.End) string {
	what, name := "run", Clean(cmp.Or(e.Name, e.ID))
	if e.Set {
		what = "set"
	}
	if e.Task != "" && e.Task != e.Name {
		name += " of " + Clean(e.Task)
	}
	how := map[event.Outcome]string{event.Succeeded: "succeeded", event.Failed: "failed", event.Canceled: "was canceled"}[e.Outcome]
	return fmt.Sprintf("%s %s %s", what, name, cmp.Or(how, "ended"))
}

// endLines returns the details of an end.
func endLines(e notice.End) []string {
	all := []string{"submitted by " + Clean(e.Owner) + ", " + e.Submitted.UTC().Format(time.RFC3339)}
	if e.Ended.After(e.Submitted) {
		all = append(all, "ended "+e.Ended.UTC().Format(time.RFC3339)+", after "+e.Ended.Sub(e.Submitted).Round(time.Second).String())
	}
	if e.Reason != "" {
		all = append(all, "reason "+Clean(string(e.Reason)))
	}
	if e.Message != "" {
		all = append(all, Clean(e.Message))
	}
	if e.Set {
		all = append(all, fmt.Sprintf("runs: %d succeeded, %d failed, %d canceled", e.Runs.Succeeded, e.Runs.Failed, e.Runs.Canceled))
	}
	for _, n := range e.Numbers {
		all = append(all, NumberLine(n))
	}
	if e.More > 0 {
		all = append(all, fmt.Sprintf("and %d more metrics", e.More))
	}
	if e.Incomplete && len(e.Numbers) > 0 {
		all = append(all, "samples may be missing: not all of them were stored")
	}
	return append(all, "baictl "+endVerb(e)+" "+Clean(e.ID))
}

func endVerb(e notice.End) string {
	if e.Set {
		return "set get"
	}
	return "get"
}

// NumberLine returns a number with its name, labels and unit.
func NumberLine(n notice.Number) string {
	name := Clean(n.Metric)
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		labels = append(labels, Clean(key+"="+n.Labels[key]))
	}
	if len(labels) > 0 {
		name += " (" + strings.Join(labels, ", ") + ")"
	}
	return name + " " + number(float64(n.Value), n.Unit)
}
