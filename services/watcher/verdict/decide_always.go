package verdict

import (
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/plan/always"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// alwaysFailures returns the text that steps failed which ran at the end of an attempt, empty if none did.
func alwaysFailures(s Observation) string {
	var text strings.Builder
	for _, p := range pods(s) {
		for _, name := range always.Steps(p.Spec) {
			c, _ := objects.Container(p, cluster.ContainerStep+name)
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 && always.Termination(p, name) != nil {
				text.WriteString("; at the end " + stepFailure(name, t).Message)
			}
		}
	}
	return text.String()
}

// MissingSteps returns the steps of an attempt that run at every end and are neither known to have run nor skipped, in the order in which
// they run. An attempt none of whose commands has started has none.
func MissingSteps(l event.Launched, s Observation) []string {
	all, job := pods(s), s.Seen.Job
	if job == nil {
		job = s.LastSeen.Job
	}
	switch {
	case len(l.Always) == 0:
		return nil
	case len(all) > 0 && !slices.ContainsFunc(all, always.Begun):
		return nil
	case len(all) == 0 && job == nil && l.UID == "": // none of its objects was ever seen
		return nil
	case len(all) == 0 && job != nil && job.Status.Active+job.Status.Failed+job.Status.Succeeded == 0:
		return nil
	}
	return always.Missing(l.Always, all)
}

// EndedSteps returns what became of the steps of an attempt that run at every end and have ended, in the order in which they run.
func EndedSteps(l event.Launched, s Observation) []always.StepResult {
	var all []always.StepResult
	ended := always.Ended(l.Always, pods(s))
	for _, name := range l.Always {
		if r, known := ended[name]; known {
			all = append(all, r)
		}
	}
	return all
}

// StepsStatus is the status of an attempt whose end waits for steps, or for whose steps nothing could be done; nil if they have run.
func StepsStatus(l event.Launched, p always.PendingEnd, results always.Results, known bool) *event.Status {
	phase, reason, message := event.PhaseRunning, event.Reason(""), "its end waits for "+stepNames(p.Steps)+": "+p.Message()
	if p.Finished != nil && p.Finished.Outcome == event.Canceled {
		phase = event.PhaseCanceling
	}
	if known {
		if reason, message = event.AlwaysNotRun, results.NotRun(); message == "" {
			return nil
		}
	}
	h := l.Cause("status/always", string(reason)+" "+message)
	h.Time = p.Since.UTC()
	return &event.Status{Header: h, Phase: phase, Reason: reason, Message: message}
}

func stepNames(names []string) string {
	if len(names) == 1 {
		return "step " + names[0]
	}
	return "steps " + strings.Join(names, ", ")
}
