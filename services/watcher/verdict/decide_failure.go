package verdict

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Exit codes of a shell, which the entrypoint uses, too.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // and the signal's number
	maxSignal         = 64
)

// maxLastWords is how many characters of a benchmark's last line are repeated.
const maxLastWords = 500

// deadlinePassed: the job ran for longer than its deadline.
func deadlinePassed(s Observation) (Verdict, bool) {
	exceeded := slices.ContainsFunc(s.Seen.Pods, func(p corev1.Pod) bool { return p.Status.Reason == batchv1.JobReasonDeadlineExceeded })
	for _, t := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobFailureTarget} {
		c, ok := cluster.Condition(s.Seen.Job, t)
		exceeded = exceeded || ok && c.Reason == batchv1.JobReasonDeadlineExceeded
	}
	if !exceeded {
		return Verdict{}, false
	}
	message := "timed out (limits.deadline)"
	if j := s.Seen.Job; j != nil && j.Spec.ActiveDeadlineSeconds != nil {
		message = fmt.Sprintf("timed out after %s (limits.deadline)", formatDuration(time.Duration(*j.Spec.ActiveDeadlineSeconds)*time.Second))
	}
	return failedVerdict(event.ClassTimeout, event.DeadlineExceeded, time.Time{}, "%s", message), true
}

// platformStopped: the platform that ran the pods itself was stopped and ended them, and no pod had failed before.
func platformStopped(s Observation) (Verdict, bool) {
	stopped := func(p corev1.Pod) bool { return p.Status.Reason == cluster.ReasonStopped }
	if !slices.ContainsFunc(s.Seen.Pods, stopped) {
		return Verdict{}, false
	}
	others := s
	others.Seen.Pods = slices.DeleteFunc(slices.Clone(s.Seen.Pods), stopped)
	if _, failed := benchmarkFails(others); failed {
		return Verdict{}, false
	}
	return failedVerdict(event.ClassPlatform, event.PlatformStopped, time.Time{}, "the platform was stopped and ended this benchmark (with --keep-pods benchmarks go on)"), true
}

// disrupted: a pod was ended for a reason outside the run.
func disrupted(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		if v, ok := disruption(p); ok {
			return v, true
		}
	}
	return Verdict{}, false
}

func disruption(p corev1.Pod) (Verdict, bool) {
	c, ok := podCondition(p, corev1.DisruptionTarget)
	if !ok || c.Status != corev1.ConditionTrue {
		return Verdict{}, false
	}
	v := failedVerdict(event.ClassInfra, event.Evicted, c.LastTransitionTime.Time, "its pod had to leave node %s: %s", p.Spec.NodeName, joinReasonMessage(c.Reason, c.Message))
	switch c.Reason {
	case corev1.PodReasonPreemptionByScheduler:
		v.Reason = event.Preempted
	case "DeletionByTaintManager", "DeletionByPodGC":
		v.Reason = event.NodeLost
		v.Message = fmt.Sprintf("its pod had to leave node %s, which is lost or drained: %s", p.Spec.NodeName, joinReasonMessage(c.Reason, c.Message))
	case corev1.PodReasonTerminationByKubelet:
		if own, ok := diskLimitEviction(p); ok {
			return own, true
		}
	}
	return v, true
}

// podRejected: a node rejected or evicted a pod.
func podRejected(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		if v, ok := diskLimitEviction(p); ok {
			return v, true
		}
		message := fmt.Sprintf("node %s does not keep its pod: %s", p.Spec.NodeName, joinReasonMessage(p.Status.Reason, p.Status.Message))
		switch r := p.Status.Reason; {
		case r == "NodeLost", r == "NodeShutdown", r == "Shutdown", r == "Terminated":
			return failedVerdict(event.ClassInfra, event.NodeLost, time.Time{}, "%s", message), true
		case r == "Preempting":
			return failedVerdict(event.ClassInfra, event.Preempted, time.Time{}, "%s", message), true
		case r == "Evicted", r == "UnexpectedAdmissionError", r == "NodeAffinity", r == "NodePorts", strings.HasPrefix(r, "OutOf"):
			return failedVerdict(event.ClassInfra, event.Evicted, time.Time{}, "%s", message), true
		}
	}
	return Verdict{}, false
}

// diskLimitEviction: a pod was evicted because it used more disk than its limit, which is its user's fault, not the node's.
func diskLimitEviction(p corev1.Pod) (Verdict, bool) {
	m := p.Status.Message
	if p.Status.Reason != "Evicted" || !strings.Contains(m, "exceed") || strings.Contains(m, "node was low") {
		return Verdict{}, false
	}
	return failedVerdict(event.ClassUser, event.Evicted, time.Time{}, "its pod used more disk than its limit: %s", m), true
}

// initFails: an init container failed before the benchmark.
func initFails(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		for _, c := range p.Status.InitContainerStatuses {
			t := c.State.Terminated
			if t == nil || t.ExitCode == 0 || c.Name == cluster.ContainerCollect || runsAlways(p, c.Name) {
				continue
			}
			if name, is := stepName(c.Name); is {
				return stepFailure(name, t), true
			}
			return initFailure(c.Name, t), true
		}
	}
	return Verdict{}, false
}

// initFailure is the verdict on a failed init container.
func initFailure(name string, t *corev1.ContainerStateTerminated) Verdict {
	switch {
	case name == cluster.ContainerPull && t.ExitCode == pod.PullUser:
		return failedVerdict(event.ClassUser, event.PullFailed, time.Time{}, "its data sets could not be copied to the machine: %s", clusterMessage(t))
	case name == cluster.ContainerPull:
		return failedVerdict(event.ClassInfra, event.PullFailed, time.Time{}, "its data sets could not be copied to the machine: %s", clusterMessage(t))
	case name == cluster.ContainerMTU:
		return failedVerdict(event.ClassUser, event.InitFailed, time.Time{}, "network.mtu could not be set: %s", clusterMessage(t))
	case name == cluster.ContainerWait:
		return failedVerdict(event.ClassUser, event.NotReady, time.Time{}, "another pod of the run was not ready in time: %s", clusterMessage(t))
	}
	return failedVerdict(event.ClassPlatform, event.InitFailed, time.Time{}, "its pod could not be prepared: container %s: %s", name, clusterMessage(t))
}

// benchmarkFails: the benchmark failed, or was ended. Of several the first to end is the cause.
func benchmarkFails(s Observation) (Verdict, bool) {
	var first *corev1.ContainerStateTerminated
	var limit, subject string
	for _, p := range s.Seen.Pods {
		c, ok := containerStatus(p, cluster.ContainerBenchmark)
		t := c.State.Terminated
		if !ok || t == nil || t.ExitCode == 0 && t.Reason != "OOMKilled" {
			continue
		}
		if first == nil || t.FinishedAt.Before(&first.FinishedAt) {
			first, limit, subject = t, memoryLimit(p), "the "+describePod(p)
		}
	}
	if first == nil {
		return Verdict{}, false
	}
	reason, message := exitReason(first, subject, limit)
	if rank := firstRank(first.Message); rank != "" {
		message += "; " + rank
	}
	return failedVerdict(event.ClassUser, reason, time.Time{}, "%s", message), true
}

// exitReason returns why a process of the user's ended badly.
func exitReason(t *corev1.ContainerStateTerminated, subject, limit string) (event.Reason, string) {
	code := int(t.ExitCode)
	tail, words := "", lastWords(t.Message)
	if words != "" {
		tail = ": " + words
	}
	missing, without := strings.CutPrefix(words, pod.NoResults)
	switch {
	case t.Reason == "OOMKilled":
		return event.OOMKilled, subject + " ran out of memory (OOM)" + limit
	case notStarted(t.Message) != "":
		return event.CommandNotFound, fmt.Sprintf("%s could not start %s (exit code %d)", subject, notStarted(t.Message), code)
	case t.Reason == "StartError", t.Reason == "ContainerCannotRun", code == exitNotFound, code == exitNotExecutable:
		return event.CommandNotFound, fmt.Sprintf("%s's command was not found, or cannot be executed (exit code %d)%s", subject, code, tail)
	case without && code == pod.ExitNoResults:
		return event.NoResults, fmt.Sprintf("%s left no results: %s", subject, missing)
	case hydraSignal(t.Message) != 0:
		n := hydraSignal(t.Message)
		return event.Signaled, fmt.Sprintf("%s was ended by signal %d%s (exit code %d)%s", subject, n, signalName(n), code, tail)
	case code > exitSignal && code <= exitSignal+maxSignal:
		return event.Signaled, fmt.Sprintf("%s was ended by signal %d%s (exit code %d)%s", subject, code-exitSignal, signalName(code-exitSignal), code, tail)
	}
	return event.NonZeroExit, fmt.Sprintf("%s ended with exit code %d%s", subject, code, tail)
}

// formatDuration writes a time as people do: "1h", not "1h0m0s".
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// memoryLimit returns the limit of a pod's benchmark, for people.
func memoryLimit(p corev1.Pod) string {
	for _, c := range p.Spec.Containers {
		if c.Name != cluster.ContainerBenchmark {
			continue
		}
		if q, ok := c.Resources.Limits[corev1.ResourceMemory]; ok {
			return ", " + q.String() + " (hardware.memory)"
		}
		if q, ok := c.Resources.Requests[corev1.ResourceMemory]; ok {
			return "; it asked for " + q.String() + " (hardware.memory)"
		}
	}
	return ""
}

// signalName returns the names of the signals that people meet.
func signalName(n int) string {
	names := map[int]string{1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 13: "PIPE", 15: "TERM"}
	if name, ok := names[n]; ok {
		return " SIG" + name
	}
	return ""
}

// sidecarFails: the benchmark succeeded, and the collector failed.
func sidecarFails(s Observation) (Verdict, bool) {
	for _, p := range s.Seen.Pods {
		c, ok := containerStatus(p, cluster.ContainerCollect)
		if !ok {
			continue
		}
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil && t.ExitCode != 0 {
				return failedVerdict(event.ClassPlatform, event.SidecarFailed, time.Time{}, "the collector of its output failed: %s", clusterMessage(t)), true
			}
		}
	}
	return Verdict{}, false
}

// clusterMessage returns the exit code of a container with its last line.
func clusterMessage(t *corev1.ContainerStateTerminated) string {
	s := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" {
		s += ", " + t.Reason
	}
	if w := lastWords(t.Message); w != "" {
		s = w + " (" + s + ")"
	}
	return s
}

// lastWords returns the last line with words, not a frame of dashes. If mpirun has printed a framed message of its own, it returns the
// program's last line before the frame.
func lastWords(message string) string {
	var w string
	message = beforeHydra(message)
	framed := strings.Contains(message, "mpirun") || strings.Contains(message, "prterun") || strings.Contains(message, "Primary job")
	for line := range strings.Lines(strings.ToValidUTF8(message, "\uFFFD")) {
		line = strings.TrimSpace(line)
		if framed && len(line) >= 40 && strings.Trim(line, "-") == "" {
			if w != "" {
				break
			}
			framed = false // the program has printed no line
		}
		if strings.ContainsFunc(line, isWordRune) {
			w = line
		}
	}
	if r := []rune(w); len(r) > maxLastWords {
		return string(r[:maxLastWords]) + "…"
	}
	return w
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// waitingReason returns the reason for which a container waits, empty for one that passes by itself, and whether it never passes.
func waitingReason(reason string) (r event.Reason, hopeless bool) {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return event.ImagePullBackOff, false
	case "InvalidImageName", "ErrImageNeverPull":
		return event.ImagePullBackOff, true
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError":
		return event.ConfigError, false
	case "CrashLoopBackOff":
		return event.SidecarFailed, false
	}
	return "", false
}

// forbidden reports whether a pod will always be refused for this reason. A quota may become free later.
func forbidden(message string) bool {
	return (strings.Contains(message, "is forbidden") || strings.Contains(message, "is invalid") || strings.Contains(message, "denied the request")) &&
		!strings.Contains(message, "exceeded quota")
}

// unplaceable reports whether a scheduler's message means that no node is of the requested kind, busy or not, or that a claim does not
// exist.
func unplaceable(message string) bool {
	if strings.Contains(message, "persistentvolumeclaim ") && strings.Contains(message, " not found") {
		return true
	}
	return strings.Contains(message, "didn't match Pod's node affinity/selector") &&
		!strings.Contains(message, "Insufficient") && !strings.Contains(message, "Too many pods")
}

// tooLarge reports whether a scheduler's message means that every node is too small for the request even if empty: it lacks resources, and
// preemption would free none. Unhealthy nodes may be larger.
func tooLarge(message string) bool {
	m := regexp.MustCompile(`^0/(\d+) nodes are available: .*preemption: 0/\d+ nodes are available: (\d+) Preemption is not helpful`).FindStringSubmatch(message)
	return len(m) == 3 && m[1] == m[2] && strings.Contains(message, "Insufficient ") && !strings.Contains(message, "{node.kubernetes.io/")
}

// notStarted names the program that an mpirun could not start, and the host, if the mpirun of Open MPI (4, 5), MPICH or Intel MPI names
// them in its last lines; else it is empty.
func notStarted(message string) string {
	var program, host, why string
	for _, says := range []string{
		`(?s)was unable to find the specified executable(?P<why>) file.*\n\s*Node: +(?P<host>\S+)\s+Executable: +(?P<program>[^\n]+)`,
		`(?s)was unable to launch the specified(?P<why>) application as it could not access\s+or execute an executable:\s+Executable: +(?P<program>[^\n]+)\s+Node: +(?P<host>\S+)`,
		`\[proxy:[0-9:]+@(?P<host>[^\]\s]+)\] .*execvp error on file (?P<program>.+) \((?P<why>[^()]+)\)`,
	} {
		r := regexp.MustCompile(says)
		if m := r.FindStringSubmatch(message); m != nil {
			program, host, why = strings.TrimSpace(m[r.SubexpIndex("program")]), m[r.SubexpIndex("host")], m[r.SubexpIndex("why")]
		}
	}
	if program == "" || strings.HasPrefix(path.Base(program), "hydra_") { // mpirun's own
		return ""
	}
	return fmt.Sprintf("%q on %s: %s", program, host, cmp.Or(strings.ToLower(why), "mpirun did not find it, or may not execute it"))
}
