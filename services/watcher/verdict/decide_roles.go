package verdict

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// endedEarly: a pod has ended before the run, in which it has a part until the run's end, or has failed beside the main job.
func endedEarly(s Observation) (Verdict, bool) {
	if j := s.Seen.Job; j == nil || j.DeletionTimestamp != nil {
		return Verdict{}, false
	}
	dead := s
	dead.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods), func(p corev1.Pod) bool { return !endsTooEarly(s, p) })
	if len(dead.Seen.Pods) == 0 {
		return Verdict{}, false
	}
	for _, cause := range []check{platformStopped, disrupted, podRejected, deletedBeforeEnd(s), initFails, benchmarkFails, sidecarFails} {
		if v, ok := cause(dead); ok {
			return v, true
		}
	}
	i := slices.IndexFunc(dead.Seen.Pods, func(p corev1.Pod) bool { return p.Labels[cluster.LabelEnd] == "" })
	if i < 0 {
		return Verdict{}, false // the job of the pod shows why it failed
	}
	p := dead.Seen.Pods[i]
	c, _ := objects.Container(p, cluster.ContainerBenchmark)
	v := failedVerdict(event.ClassUser, event.EndedEarly, time.Time{}, "the %s has ended before the benchmark did", objects.Describe(p))
	if t := c.State.Terminated; t != nil {
		v.Since = t.FinishedAt.Time
	}
	return v, true
}

// endedUnready: a pod has ended well, and another one still waits until it is ready, which it never is.
func endedUnready(s Observation) (Verdict, bool) {
	over := make(map[string]corev1.Pod)
	for _, p := range s.Seen.Pods {
		if c, _ := objects.Container(p, cluster.ContainerBenchmark); c.State.Terminated != nil {
			over[objects.HostName(p)] = p
		}
	}
	for _, p := range s.Seen.Pods {
		w, waits := objects.Container(p, cluster.ContainerWait)
		if !waits || w.State.Running == nil {
			continue
		}
		for _, host := range objects.AwaitedHosts(p) {
			if other, ended := over[host]; ended {
				c, _ := objects.Container(other, cluster.ContainerBenchmark)
				v := failedVerdict(event.ClassUser, event.EndedEarly, c.State.Terminated.FinishedAt.Time,
					"the %s has ended before the %s found it ready", objects.Describe(other), objects.Describe(p))
				return debounced(s, v, 8*debounce), true // the other one may begin just now
			}
		}
	}
	return Verdict{}, false
}

// endsTooEarly reports whether the end of a pod that has ended says something about the run before the main job has ended.
func endsTooEarly(s Observation, p corev1.Pod) bool {
	switch {
	case ofMainJob(s, p) || !hasEnded(p):
		return false
	case p.Labels[cluster.LabelEnd] == "":
		return true
	}
	c, _ := objects.Container(p, cluster.ContainerBenchmark)
	return p.Status.Phase == corev1.PodFailed || c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
}

// neverReady: all pods run, and one of them waited for the others longer than the descriptor allows.
func neverReady(s Observation) (Verdict, bool) {
	targets, since, ok := readinessWait(s)
	until := since.Add(s.ReadyDeadline)
	if !ok || s.Now.Before(until) {
		return Verdict{}, false
	}
	return failedVerdict(event.ClassUser, event.NotReady, until, "%s did not answer within limits.pending_deadline, %s",
		targets, s.ReadyDeadline), true
}

// readinessWait returns the addresses at which a pod waits for the others, and since when all pods run. It is false if no pod waits, if
// another pod does not run yet, for which there are other rules, and if the descriptor sets no time.
func readinessWait(s Observation) (targets string, since time.Time, ok bool) {
	for _, p := range s.Seen.Pods {
		began, runs := objects.BenchmarkStarted(p)
		if c, waits := objects.Container(p, cluster.ContainerWait); waits && c.State.Running != nil {
			began, runs, ok = c.State.Running.StartedAt, true, true
		}
		if !runs {
			return "", time.Time{}, false
		}
		if began.After(since) {
			since = began.Time
		}
	}
	if p, waits := firstWaiting(s); waits {
		targets = strings.Join(readinessTargets(s, p), ", ")
	}
	return cmp.Or(targets, "another of its pods"), since, ok && s.ReadyDeadline > 0
}

// firstWaiting returns a pod that waits until others are ready, if possible one that waits for none which waits itself.
func firstWaiting(s Observation) (first corev1.Pod, ok bool) {
	hosts := make(map[string]bool)
	var waiting []corev1.Pod
	for _, p := range s.Seen.Pods {
		if c, waits := objects.Container(p, cluster.ContainerWait); waits && c.State.Running != nil {
			waiting, hosts[objects.HostName(p)] = append(waiting, p), true
		}
	}
	for _, p := range waiting {
		if !slices.ContainsFunc(objects.AwaitedHosts(p), func(host string) bool { return hosts[host] }) {
			return p, true
		}
	}
	return first, false
}

// readinessMessage returns for which pods one waits, as far as they have numbers.
func readinessMessage(s Observation) string {
	p, _ := firstWaiting(s)
	targets := readinessTargets(s, p)
	switch {
	case len(targets) == 0 || strings.Contains(targets[0], "://"):
		return "waiting until its other pods are ready"
	case len(targets) == 1:
		return "waiting until " + targets[0] + " is ready"
	}
	return "waiting until " + strings.Join(targets, ", ") + " are ready"
}

// readinessTargets returns the pods, or the addresses, for which a pod waits.
func readinessTargets(s Observation, p corev1.Pod) []string {
	var targets []string
	for _, c := range p.Spec.InitContainers {
		for _, arg := range c.Args {
			if c.Name == cluster.ContainerWait && strings.Contains(arg, "://") {
				targets = append(targets, describeTarget(s, arg))
			}
		}
	}
	if len(targets) > maxNames {
		targets = append(targets[:maxNames], fmt.Sprintf("%d others", len(targets)-maxNames))
	}
	return targets
}

// describeTarget returns an address at which a pod waits, as that of a numbered pod if it is one.
func describeTarget(s Observation, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return target
	}
	host, _, _ := strings.Cut(u.Host, ".")
	jobs := s.Seen.Others
	if s.Seen.Job != nil {
		jobs = append(slices.Clip(jobs), *s.Seen.Job)
	}
	for _, j := range jobs {
		index, ok := strings.CutPrefix(host, j.Name+"-")
		if _, err := strconv.Atoi(index); !ok || err != nil {
			continue
		}
		asked := "port " + u.Port()
		if u.Port() == strconv.Itoa(pod.ReadyPort) {
			asked = "by its file or its log"
		} else if u.Scheme != "tcp" {
			asked += ", " + u.Path
		}
		return fmt.Sprintf("%s %s (%s)", j.Labels[cluster.LabelRole], index, asked)
	}
	return target
}

// awaitedJobs returns the jobs beside the main one whose end the run waits for.
func awaitedJobs(s Observation) []*batchv1.Job {
	var all []*batchv1.Job
	for i := range s.Seen.Others {
		if s.Seen.Others[i].Labels[cluster.LabelEnd] == cluster.EndAwaited {
			all = append(all, &s.Seen.Others[i])
		}
	}
	return all
}

// otherJobFailed: the job of another role has failed, and none of its pods shows why.
func otherJobFailed(s Observation) (Verdict, bool) {
	for i := range s.Seen.Others {
		one := s
		one.Seen.Job, one.Seen.Pods = &s.Seen.Others[i], nil
		c, ok := cluster.Condition(one.Seen.Job, batchv1.JobFailed)
		if !ok {
			continue
		}
		v, late := deadlinePassed(one)
		if !late {
			v = failedVerdict(event.ClassInfra, event.JobDisappeared, time.Time{}, "the job of the %s failed: %s; its pod is gone",
				one.Seen.Job.Labels[cluster.LabelRole], objects.JoinReasonMessage(c.Reason, c.Message))
		}
		v.Since = c.LastTransitionTime.Time
		return debounced(s, v, 8*debounce), true // the status of its pod may come later
	}
	return Verdict{}, false
}

// maxNames is the greatest number of pods that a message names.
const maxNames = 4

// mainPodsOnly returns the observation with only those pods whose end ends the run.
func mainPodsOnly(s Observation) Observation {
	all := s
	s.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods), func(p corev1.Pod) bool { return !endsRun(all, p) })
	s.LastSeen.Pods = slices.DeleteFunc(slices.Clone(s.LastSeen.Pods), func(p corev1.Pod) bool { return !endsRun(all, p) })
	return s
}

// endsRun reports whether the end of the run waits for that of a pod.
func endsRun(s Observation, p corev1.Pod) bool {
	return ofMainJob(s, p) || p.Labels[cluster.LabelEnd] == cluster.EndAwaited
}

// ofMainJob reports whether a pod has the role of the run's main job.
func ofMainJob(s Observation, p corev1.Pod) bool {
	for _, j := range []*batchv1.Job{s.Seen.Job, s.LastSeen.Job} {
		if j != nil && j.Labels[cluster.LabelRole] != "" {
			return p.Labels[cluster.LabelRole] == j.Labels[cluster.LabelRole]
		}
	}
	return true
}

// hasEnded reports whether a pod has ended, or its benchmark with the steps after it.
func hasEnded(p corev1.Pod) bool { return cluster.BenchmarkEnded(p) }
