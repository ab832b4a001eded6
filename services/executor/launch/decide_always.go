package launch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/always"
)

// alwaysSuffix ends the names of the objects that are made for steps at the end of an attempt whose pod is gone, and the value of their
// label of the run: they are no part of the attempt, whose deletion may go on.
const alwaysSuffix = "-always"

// alwaysRef returns a reference to the objects that are made for the steps at the end of an attempt.
func (p Plan) alwaysRef() cluster.Ref {
	r := p.Ref()
	r.Run, r.Job = r.Run+alwaysSuffix, r.Job+alwaysSuffix
	return r
}

// mainPod returns the template of the pod of the main Job, nil if there is none.
func (p Plan) mainPod() *corev1.PodSpec {
	for _, o := range p.Objects {
		if j, ok := o.Object.(*batchv1.Job); ok && p.isMainJob(j) {
			return &j.Spec.Template.Spec
		}
	}
	return nil
}

// alwaysSteps returns the names of the steps that run at every end of the attempt.
func (p Plan) alwaysSteps() []string {
	if s := p.mainPod(); s != nil {
		return always.Steps(*s)
	}
	return nil
}

// stepDeadline returns how long steps may take, as the commands of their containers have it.
func (p Plan) stepDeadline(steps []string) time.Duration {
	var all time.Duration
	for _, c := range p.mainPod().InitContainers {
		if slices.Contains(steps, strings.TrimPrefix(c.Name, pod.ContainerStep)) && len(c.Command) > 3 {
			d, _ := time.ParseDuration(c.Command[3])
			all += d
		}
	}
	return all
}

// alwaysObjects returns the objects of a pod that runs steps at the end of an attempt, and nothing else: the Secrets and ConfigMaps of the
// attempt under other names, and its main Job with the containers of the steps, the collector, and in place of the benchmark a program that
// ends at once, which makes the node end the sidecars. The pod has the claims of the attempt. Its other volumes are empty. Any node with
// the labels of the attempt's may run it. The objects share nothing with p or secrets.
func alwaysObjects(p Plan, secrets []*corev1.Secret, steps []string) []cluster.Object {
	var objects []cluster.Object
	names := map[string]bool{}
	for _, o := range p.objectsWithSecrets(secrets) {
		switch o := o.DeepCopyObject().(type) {
		case *corev1.ConfigMap:
			objects = append(objects, o)
		case *corev1.Secret:
			objects = append(objects, o)
		case *batchv1.Job:
			if p.isMainJob(o) {
				objects = append(objects, o)
			}
		default:
			continue
		}
		names[o.GetName()] = true
	}
	for _, o := range objects {
		o.SetName(o.GetName() + alwaysSuffix)
		o.SetLabels(alwaysLabels(o.GetLabels()))
		if j, ok := o.(*batchv1.Job); ok {
			j.Spec.ActiveDeadlineSeconds, j.Spec.Suspend = nil, nil
			t := &j.Spec.Template
			t.Labels = alwaysLabels(t.Labels)
			maps.DeleteFunc(t.Annotations, func(name, _ string) bool {
				return !strings.Contains(name, "benchmark-ai.dev/") && !strings.Contains(name, "safe-to-evict")
			})
			makeAlwaysPod(&t.Spec, steps, names)
		}
	}
	return objects
}

// alwaysLabels returns the labels of an object of an attempt as those of one that is made for its steps at the end.
func alwaysLabels(labels map[string]string) map[string]string {
	own := maps.Clone(labels)
	own[cluster.LabelRun] += alwaysSuffix
	delete(own, cluster.LabelKueueQueue)
	return own
}

// makeAlwaysPod makes the pod of an attempt one that runs steps at its end only. Its ConfigMaps and Secrets have other names.
func makeAlwaysPod(s *corev1.PodSpec, steps []string, renamed map[string]bool) {
	var kept []corev1.Container
	var idle corev1.Container
	for _, c := range s.InitContainers {
		step, is := strings.CutPrefix(c.Name, pod.ContainerStep)
		switch {
		case c.Name == cluster.ContainerInstall:
			idle = *c.DeepCopy()
			kept = append(kept, c)
		case c.Name == cluster.ContainerCollect:
			kept = append(kept, c)
		case is && c.RestartPolicy != nil && slices.Contains(steps, step):
			kept = append(kept, withoutNeeds(c, steps))
		}
	}
	idle.Name, idle.Command = cluster.ContainerBenchmark, []string{pod.PathIn("", pod.Binary), "version"}
	for i := range idle.VolumeMounts {
		idle.VolumeMounts[i].ReadOnly = true
	}
	s.InitContainers, s.Containers = kept, []corev1.Container{idle}
	s.Affinity, s.TopologySpreadConstraints, s.SchedulerName = nil, nil, ""
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v corev1.Volume) bool {
		return !slices.ContainsFunc(kept, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
		})
	})
	for i, v := range s.Volumes {
		switch {
		case v.ConfigMap != nil && renamed[v.ConfigMap.Name]:
			s.Volumes[i].ConfigMap.Name += alwaysSuffix
		case v.Secret != nil && renamed[v.Secret.SecretName]:
			s.Volumes[i].Secret.SecretName += alwaysSuffix
		}
	}
}

// withoutNeeds returns the container of a step that needs none but the steps beside it: the others have succeeded before.
func withoutNeeds(c corev1.Container, steps []string) corev1.Container {
	end := slices.Index(c.Command, "--")
	needs := slices.DeleteFunc(slices.Clone(always.Needs(c)), func(name string) bool { return !slices.Contains(steps, name) })
	if end >= 0 {
		c.Command = slices.Concat(c.Command[:min(4, end)], needs, c.Command[end:])
	}
	return c
}

// stepsState is what is known of the pods that run the steps of an ended attempt.
type stepsState struct {
	All   []string            // steps at the end of the attempt, in the order in which they run
	Steps []string            // those that the end waits for
	Ended []always.StepResult // those that are known to have ended before
	First cluster.Snapshot    // of the attempt
	Own   cluster.Snapshot    // of the objects that were made for the steps
	Made  time.Time           // when these were made; zero if they were not
	Now   time.Time
	Since time.Time // since when the end waits

	Lost    time.Duration // how long a pod may outlast its deletion
	Pending time.Duration // how long a pod may wait for a node, images and volumes
	Longest time.Duration // how long any pod may take until it has ended
}

// stepsAction is what is to be done about the steps of an ended attempt. Exactly one field is set.
type stepsAction struct {
	Stop    bool     // end the pods of the attempt
	Wait    bool     // look again soon
	Make    []string // make the objects for these steps
	Results *always.Results
}

// decideSteps decides about the steps of an ended attempt. First its own pods have to end, which run the steps if they can. What is missing
// then runs in a pod that is made once.
func decideSteps(s stepsState, needs func(step string) []string) stepsAction {
	for _, p := range s.First.Pods {
		lost := p.DeletionTimestamp != nil && s.Now.After(cluster.DeletionDeadline(p).Add(s.Lost)) || s.Now.After(s.Since.Add(s.Longest))
		if cluster.Alive(p) && !lost {
			return stepsAction{Stop: true}
		}
	}
	results, missing := resultsOf(s, s.First.Pods, needs)
	if len(missing) == 0 {
		return stepsAction{Results: &always.Results{Steps: results}}
	}
	if s.Made.IsZero() && s.Own.Job == nil {
		return stepsAction{Make: missing}
	}
	why := notRunReason(s)
	if why == "" {
		return stepsAction{Wait: true}
	}
	var all always.Results
	all.Steps, missing = resultsOf(s, slices.Concat(s.First.Pods, s.Own.Pods), needs)
	for _, name := range missing {
		all.Steps = append(all.Steps, always.StepResult{Name: name, NotRun: why})
	}
	all.Collectors = startedCollectors(s.Own.Pods)
	return stepsAction{Results: &all}
}

// resultsOf returns the results of the steps that have run in pods, or never will, and the names of the others. A step never will if one
// that it needs has not succeeded, whether the end waits for that one or it ended before.
func resultsOf(s stepsState, pods []corev1.Pod, needs func(step string) []string) (results []always.StepResult, missing []string) {
	ended := always.Ended(s.All, pods)
	for _, r := range s.Ended {
		ended[r.Name] = r
	}
	failed := func(step string) bool {
		r, known := ended[step]
		return known && !r.Succeeded()
	}
	for _, name := range s.All {
		r, known := ended[name]
		if !known && slices.ContainsFunc(needs(name), failed) {
			r, known = always.StepResult{Name: name, Skipped: true}, true
			ended[name] = r
		}
		switch {
		case !slices.Contains(s.Steps, name):
		case known:
			results = append(results, r)
		default:
			missing = append(missing, name)
		}
	}
	return results, missing
}

// notRunReason returns why steps did not run that the pod which was made for them has not run; empty while that may change.
func notRunReason(s stepsState) string {
	if s.Own.Job == nil && len(s.Own.Pods) == 0 {
		return "the pod that was made for the steps was deleted"
	}
	_, complete := cluster.Condition(s.Own.Job, batchv1.JobComplete)
	_, failed := cluster.Condition(s.Own.Job, batchv1.JobFailed)
	switch {
	case complete || failed:
		return "the pod that was made for the steps ended before that" + podReason(s.Own.Pods)
	case s.Now.After(s.Made.Add(s.Pending)) && !slices.ContainsFunc(s.Own.Pods, ranInstall):
		return fmt.Sprintf("the pod that was made for the steps could not be started in %s%s", s.Pending, podReason(s.Own.Pods))
	case s.Now.After(s.Made.Add(s.Longest)):
		return fmt.Sprintf("the pod that was made for the steps did not end in %s", s.Longest)
	}
	return ""
}

// ranInstall reports whether the first container of a pod has started.
func ranInstall(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == cluster.ContainerInstall && (c.State.Running != nil || c.State.Terminated != nil)
	})
}

// podReason returns what the status of a pod says about its state, as the end of a sentence.
func podReason(pods []corev1.Pod) string {
	for _, p := range pods {
		if p.Status.Reason != "" {
			return fmt.Sprintf(" (%s: %s)", p.Status.Reason, p.Status.Message)
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return fmt.Sprintf(" (%s: %s)", c.Reason, c.Message)
			}
		}
		for _, c := range p.Status.InitContainerStatuses {
			if w := c.State.Waiting; w != nil && w.Message != "" {
				return fmt.Sprintf(" (%s: %s)", w.Reason, w.Message)
			}
		}
	}
	return ""
}

// startedCollectors returns the UIDs of the pods whose collector has started.
func startedCollectors(pods []corev1.Pod) []string {
	var uids []string
	for _, p := range pods {
		for _, c := range p.Status.InitContainerStatuses {
			if c.Name == cluster.ContainerCollect && (c.State.Running != nil || c.State.Terminated != nil) {
				uids = append(uids, string(p.UID))
			}
		}
	}
	return uids
}
