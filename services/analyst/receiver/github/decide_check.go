package github

import (
	"cmp"
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Conclusions of check runs.
const (
	success = "success"
	neutral = "neutral"
	failure = "failure"
)

// botSuffix ends the name of the account of an App.
const botSuffix = "[bot]"

// check is what a notice says of a task.
type check struct {
	id      string // of the check run: the same for all notices of a receiver about the task
	name    string
	title   string
	details string // URL; empty for none
	entry   entry
}

// checksOf returns what a notice says of each of its tasks.
func checksOf(n notice.Notice) (all []check) {
	var tasks []string
	for _, i := range n.Incidents {
		tasks = append(tasks, i.Rule.Task)
	}
	for _, e := range n.Ends {
		tasks = append(tasks, e.Task)
	}
	slices.Sort(tasks)
	tasks = slices.Compact(tasks)
	for _, task := range tasks {
		part := partOf(n, task)
		if len(tasks) > 1 { // nothing says of which task the others are
			part.More = 0
		}
		e := entryOf(part)
		e.conclusion = conclusionOf(part)
		all = append(all, check{
			id: incident.ID("check", n.Receiver, n.Namespace, task), name: contextOf(task), title: message.Inert(message.Of(part).Title),
			details: linkTo(n.URL), entry: e,
		})
	}
	return all
}

// partOf returns a notice without what is of other tasks.
func partOf(n notice.Notice, task string) notice.Notice {
	n.Incidents = slices.DeleteFunc(slices.Clone(n.Incidents), func(i incident.Incident) bool { return i.Rule.Task != task })
	n.Ends = slices.DeleteFunc(slices.Clone(n.Ends), func(e notice.End) bool { return e.Task != task })
	return n
}

// contextOf returns the name of the statuses and check runs of a task.
func contextOf(task string) string {
	return message.Limit("benchmark-ai/"+cmp.Or(message.Inert(task), "runs"), maxContext)
}

// conclusionOf returns the conclusion of a notice of one task. A change that nothing calls worse is neutral, and so is a run that was
// canceled.
func conclusionOf(n notice.Notice) string {
	conclusion := success
	for _, i := range n.Incidents {
		one := stateOf(n, i)
		if i.Rule.When == incident.Change && n.Became == incident.Firing {
			one = neutral
		}
		conclusion = worse(conclusion, one)
	}
	for _, e := range n.Ends {
		one, ok := map[event.Outcome]string{event.Succeeded: success, event.Failed: failure}[e.Outcome]
		if !ok {
			one = neutral
		}
		conclusion = worse(conclusion, one)
	}
	return conclusion
}

// worse returns the worse one of two conclusions.
func worse(a, b string) string {
	order := []string{success, neutral, failure}
	return order[max(0, slices.Index(order, a), slices.Index(order, b))]
}

// after returns a check run after a notice: its conclusion is the worst of all that it says.
func (c check) after(is checkRun, receiver string) checkRun {
	summary, _ := edited(is.Output.Summary, receiver, c.entry)
	next := checkRun{
		Name: c.name, ExternalID: c.id, DetailsURL: c.details, Status: "completed", Conclusion: success,
		Output: checkOutput{Title: c.title, Summary: summary},
	}
	for _, e := range entriesOf(summary) {
		next.Conclusion = worse(next.Conclusion, e.conclusion)
	}
	if is.Output.Title != "" && next.Conclusion != c.entry.conclusion { // something else is worse, and gives the title
		next.Output.Title = is.Output.Title
	}
	return next
}
