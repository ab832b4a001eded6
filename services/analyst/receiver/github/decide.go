package github

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// The limits of GitHub, in characters.
const (
	maxDescription = 140
	maxContext     = 100
)

// target is where a notice is sent.
type target struct {
	repository string // OWNER/NAME
	commit     string // empty for none
	pull       string // number of a pull request; empty for none
}

// commitStatus is the status of a commit, as the API takes it.
type commitStatus struct {
	State       string `json:"state"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
	Context     string `json:"context"`
}

// targetOf returns where a notice is sent, by the labels of its run, which users choose. The repository is one of those of the settings.
func targetOf(n notice.Notice, repositories []string) (target, error) {
	label := n.Labels[notice.LabelRepository]
	t := target{commit: strings.ToLower(n.Labels[notice.LabelCommit]), pull: n.Labels[notice.LabelPullRequest]}
	hash, number := regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`), regexp.MustCompile(`^[1-9][0-9]{0,8}$`)
	i := slices.IndexFunc(repositories, func(name string) bool {
		return label == "" || strings.EqualFold(name[strings.Index(name, "/")+1:], label)
	})
	switch {
	case t.commit == "" && t.pull == "":
		return t, fmt.Errorf("the run has neither label %s nor label %s", notice.LabelCommit, notice.LabelPullRequest)
	case i < 0:
		return t, fmt.Errorf("label %s is %q, which is none of the repositories of the settings",
			notice.LabelRepository, message.Clean(label))
	case label == "" && len(repositories) > 1:
		return t, fmt.Errorf("the run has no label %s, and the settings have several repositories", notice.LabelRepository)
	case t.commit != "" && !hash.MatchString(t.commit):
		return t, fmt.Errorf("label %s is %q, want the full hash of a commit", notice.LabelCommit, message.Clean(t.commit))
	case t.pull != "" && !number.MatchString(t.pull):
		return t, fmt.Errorf("label %s is %q, want a number", notice.LabelPullRequest, message.Clean(t.pull))
	}
	t.repository = repositories[i]
	return t, nil
}

// statusesOf returns the status of each task that a notice is about. A task has a context of its own, so the status of one hides none of
// another.
func statusesOf(n notice.Notice) (all []commitStatus) {
	add := func(task, state, text string) {
		context := contextOf(task)
		if !slices.ContainsFunc(all, func(s commitStatus) bool { return s.Context == context }) {
			all = append(all, commitStatus{
				State: state, TargetURL: linkTo(n.URL),
				Description: message.Limit(message.Inert(text), maxDescription), Context: context,
			})
		}
	}
	for _, i := range n.Incidents {
		add(i.Rule.Task, stateOf(n, i), message.Headline(i))
	}
	for _, e := range n.Ends {
		state, ok := map[event.Outcome]string{event.Succeeded: "success", event.Failed: "failure"}[e.Outcome]
		if !ok {
			state = "error"
		}
		add(e.Task, state, endText(e))
	}
	return all
}

// stateOf returns the state of a commit with which an incident began. A later commit may have mended it: this one stays as it is.
func stateOf(n notice.Notice, i incident.Incident) string {
	accepted := i.Acked != nil && i.Acked.Accept
	switch {
	case n.Became == incident.Dismissed, n.Became == incident.Resolved && accepted, i.Rule.When == incident.Change:
		return "success"
	}
	return "failure"
}

// endText describes an end with its first number.
func endText(e notice.End) string {
	text := message.EndHeadline(e)
	if len(e.Numbers) > 0 {
		text += ", " + message.NumberLine(e.Numbers[0])
	}
	return text
}

// linkTo returns a URL of the settings that GitHub takes, or "".
func linkTo(url string) string {
	if strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://") {
		return url
	}
	return ""
}
