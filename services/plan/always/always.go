// Package always is what the watcher and the executor share about steps that run at the end of an attempt (when = "always").
//
// Such a step runs in the pod of the benchmark, as long as there is one. If an attempt has to end and one of these steps is not known to
// have run, the watcher stores the end that it decided (PendingEnd) in place of publishing it. The executor ends the pod, if there still is
// one, makes another for the steps that are missing, and stores what became of them (Results). Then the watcher publishes the end.
package always

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// PendingEnd is the end of an attempt that waits for steps.
type PendingEnd struct {
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`
	Engine  string    `json:"engine,omitempty"` // key of the engine; empty for the default one
	Steps   []string  `json:"steps"`            // that are not known to have run, in the order in which they run
	Since   time.Time `json:"since"`            // when the end was decided

	// Ended has the other steps, which are known to have ended. Ends that earlier versions stored lack it.
	Ended []StepResult `json:"ended,omitempty"`

	// One of the two is set, and is published once the steps have run.
	Finished *event.Finished `json:"finished,omitempty"`
	Retried  *event.Retried  `json:"retried,omitempty"`
}

// Message returns the message of the end.
func (p PendingEnd) Message() string {
	if p.Finished != nil {
		return p.Finished.Message
	}
	if p.Retried != nil {
		return p.Retried.Message
	}
	return ""
}

// End returns the event of the end, with what became of the steps.
func (p PendingEnd) End(r Results) []event.Event {
	switch {
	case p.Finished != nil:
		e := *p.Finished
		e.Message, e.Collectors = e.Message+r.message(), union(e.Collectors, r.Collectors)
		return []event.Event{e}
	case p.Retried != nil:
		e := *p.Retried
		e.Message, e.Collectors = e.Message+r.message(), union(e.Collectors, r.Collectors)
		return []event.Event{e}
	}
	return nil
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Results are what became of the steps of a PendingEnd.
type Results struct {
	Steps      []StepResult `json:"steps"`
	Collectors []string     `json:"collectors,omitempty"` // UIDs of the pods that were made for them, whose data are awaited
}

// StepResult is what became of a step.
type StepResult struct {
	Name    string `json:"name"`
	Problem string `json:"problem,omitempty"` // of a step that has run and failed: how
	NotRun  string `json:"not_run,omitempty"` // why the step could not be run; empty if it was, or was skipped
	Skipped bool   `json:"skipped,omitempty"` // the step does not run, because one that it needs has failed
}

// Succeeded reports whether the step has run and did not fail.
func (r StepResult) Succeeded() bool { return r.Problem == "" && r.NotRun == "" && !r.Skipped }

// NotRun returns why steps did not run, for people; empty if all of them did.
func (r Results) NotRun() string {
	var all []string
	for _, s := range r.Steps {
		if s.NotRun != "" {
			all = append(all, "step "+s.Name+", which always runs, did not run: "+s.NotRun)
		}
	}
	return strings.Join(all, "; ")
}

// message returns the text about steps that failed or did not run, empty if there are none.
func (r Results) message() string {
	var text strings.Builder
	for _, s := range r.Steps {
		if s.Problem != "" {
			text.WriteString("; at the end step " + s.Name + " " + s.Problem)
		}
	}
	if notRun := r.NotRun(); notRun != "" {
		text.WriteString("; " + notRun)
	}
	return text.String()
}

// Steps returns the names of the steps that run at the end of a pod, in the order in which they run: the node ends the last sidecar first.
func Steps(s corev1.PodSpec) []string {
	var names []string
	for _, c := range slices.Backward(s.InitContainers) {
		if name, is := strings.CutPrefix(c.Name, cluster.ContainerStep); is && c.RestartPolicy != nil {
			names = append(names, name)
		}
	}
	return names
}

// Termination returns how the container of a step of a pod ended, nil if the step is not known to have run to its end: the container
// could not be started, or was killed, perhaps before it ran the command.
func Termination(p corev1.Pod, step string) *corev1.ContainerStateTerminated {
	i := slices.IndexFunc(p.Status.InitContainerStatuses,
		func(c corev1.ContainerStatus) bool { return c.Name == cluster.ContainerStep+step })
	if i < 0 {
		return nil
	}
	const killed, terminated = 137, 143
	t := p.Status.InitContainerStatuses[i].State.Terminated
	switch {
	case t == nil, t.StartedAt.IsZero(), slices.Contains([]string{"StartError", "ContainerCannotRun", "ContainerStatusUnknown"}, t.Reason):
		return nil
	case (t.ExitCode == killed || t.ExitCode == terminated) && t.Reason != "OOMKilled":
		return nil
	}
	return t
}

// Needs returns the steps that the container of a step at the end needs, as its command has them.
func Needs(c corev1.Container) []string {
	end := slices.Index(c.Command, "--")
	if end < 4 {
		return nil
	}
	return c.Command[4:end]
}

// neededIn returns the steps that a step of a pod needs.
func neededIn(p corev1.Pod, step string) []string {
	i := slices.IndexFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == cluster.ContainerStep+step })
	if i < 0 {
		return nil
	}
	return Needs(p.Spec.InitContainers[i])
}

// Ended returns the results of the steps that are known to have run to their end in pods, or to be skipped, by name. It takes all steps of
// an attempt, in the order in which they run.
func Ended(steps []string, pods []corev1.Pod) map[string]StepResult {
	ended := map[string]StepResult{}
	for _, p := range pods {
		maps.Copy(ended, endedIn(p, steps))
	}
	return ended
}

// endedIn returns the results of steps in one pod. The container of a step that was skipped ends with exit code 0, too: one that the step
// needs did not succeed in the pod. If that one is not known to have run to its end, both have yet to run.
func endedIn(p corev1.Pod, steps []string) map[string]StepResult {
	ended := map[string]StepResult{}
	for _, name := range steps {
		t := Termination(p, name)
		if t == nil {
			continue
		}
		if t.ExitCode != 0 {
			ended[name] = StepResult{Name: name, Problem: describeFailure(t)}
			continue
		}
		r, known := StepResult{Name: name}, true
		for _, need := range neededIn(p, name) {
			other, needKnown := ended[need]
			known, r.Skipped = known && needKnown, r.Skipped || needKnown && !other.Succeeded()
		}
		if known || r.Skipped {
			ended[name] = r
		}
	}
	return ended
}

// describeFailure returns how a step failed.
func describeFailure(t *corev1.ContainerStateTerminated) string {
	words := strings.TrimSpace(t.Message)
	if i := strings.LastIndexByte(words, '\n'); i >= 0 {
		words = words[i+1:]
	}
	const most = 500
	if r := []rune(strings.ToValidUTF8(words, "\uFFFD")); len(r) > most {
		words = string(r[:most]) + "…"
	}
	text := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	if words != "" {
		text += ": " + words
	}
	return text
}

// Begun reports whether a command of the user's has started in a pod before its end: a step or the benchmark.
func Begun(p corev1.Pod) bool {
	atEnd := Steps(p.Spec)
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		step, is := strings.CutPrefix(c.Name, cluster.ContainerStep)
		started := c.State.Running != nil || c.State.Terminated != nil && !c.State.Terminated.StartedAt.IsZero()
		if started && (c.Name == cluster.ContainerBenchmark || is && !slices.Contains(atEnd, step)) {
			return true
		}
	}
	return false
}

// Missing returns the steps that are neither known to have run in one of the pods nor to be skipped. It takes all steps of an attempt, in
// the order in which they run.
func Missing(steps []string, pods []corev1.Pod) []string {
	var missing []string
	ended := Ended(steps, pods)
	for _, step := range steps {
		if _, known := ended[step]; !known {
			missing = append(missing, step)
		}
	}
	return missing
}
