package launch

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/executor/slots"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/plan"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// Facts is the input of a decision about one attempt.
type Facts struct {
	RunFinished bool  // the run has finished
	Canceled    bool  // the run has a cancel mark
	Plan        *Plan // nil if there is none yet
	// Images are the registry answers for a plan that is to be made.
	Images []cluster.Image
}

// makePlan returns the plan for an attempt that has a slot and the descriptor d. The
// plan either has the objects, or prevents the launch and has the reason.
func makePlan(run event.Fetched, d *descriptors.Descriptor, f Facts, p plan.Planner) Plan {
	if f.RunFinished {
		return Plan{NoLaunch: true, Run: run}
	}
	if f.Canceled {
		return Plan{NoLaunch: true, FinalEvent: CanceledEvent(run.Header), Run: run}
	}
	w, err := p.Objects(transpile.Input{Run: run, Descriptor: d, Images: f.Images})
	if err != nil {
		last := RefusedEvent(run.Header, err)
		return Plan{NoLaunch: true, FinalEvent: &last, Run: run}
	}
	doc := newPlan(run, w)
	doc.Images = f.Images
	return doc
}

// RefusedEvent returns the end of a run that cannot be launched, because of its
// descriptor or because the platform lacks something that the run needs.
func RefusedEvent(h event.Header, err error) event.Finished {
	f := event.Finished{
		Header: h.Cause("finished", ""), Outcome: event.Failed, Class: event.ClassUser,
		Reason: event.LaunchRefused, Message: err.Error(),
	}
	if descriptor, ok := errors.AsType[*refusal.Error](err); ok {
		f.Reason, f.Message = descriptor.Reason, descriptor.Message
	}
	if object, ok := errors.AsType[*cluster.RefusedError](err); ok {
		f.Message, f.Class = object.Error(), cmp.Or(object.Class, f.Class)
		if object.Reason != "" {
			f.Reason = event.Reason(object.Reason)
		}
	}
	return f
}

// CanceledEvent returns the end of a run that was canceled before its launch.
func CanceledEvent(h event.Header) *event.Finished {
	return &event.Finished{
		Header: h.Cause("finished", ""), Outcome: event.Canceled,
		Reason: event.CanceledByUser, Message: "canceled before it was launched",
	}
}

// stopReason is the reason why a launch stops.
type stopReason int

const (
	notStopped   stopReason = iota
	stopCanceled            // the run has a cancel mark
	stopSlotLost            // the run has finished, or the attempt does not hold the slot any more
)

// resumption is the next step of a launch that was interrupted after its plan was
// stored.
type resumption int

const (
	abandon       resumption = iota // the attempt holds no slot
	markEnding                      // the run has finished, and the table does not have that yet
	findObjects                     // the launch was published: missing objects are not created again, since the watcher reports them
	createMissing                   // create the missing objects
	skipCreation                    // the run was canceled: only publish the launch, so that the watcher ends the run
)

// decideResume returns how an interrupted launch continues, given the reason to stop
// and the last transition in the store.
func decideResume(stop stopReason, last slots.Transition) resumption {
	switch {
	case stop == stopSlotLost:
		return abandon
	case last == slots.Terminating:
		return markEnding
	case last == slots.Launched:
		return findObjects
	case stop == stopCanceled:
		return skipCreation
	}
	return createMissing
}

// lastTransition returns the last transition of an attempt in the store, or 0.
func lastTransition(run store.Run, attempt int) slots.Transition {
	switch run.Phase {
	case event.PhaseFinished:
		return slots.Terminating
	case event.PhasePending, event.PhaseRunning, event.PhaseCanceling:
		if run.Attempt == attempt {
			return slots.Launched
		}
	case event.PhaseQueued:
		if run.Attempt == attempt && run.Reason.QueuedInCluster() {
			return slots.Launched
		}
	case event.PhaseSubmitted, event.PhaseFetching, event.PhaseLaunching:
	}
	return 0
}

// allScheduled reports whether every pod of a gang has a node.
func allScheduled(seen cluster.Snapshot, pods int) bool {
	n := 0
	for _, p := range seen.Pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
				n++
			}
		}
	}
	return n >= pods
}

// launchingStatus returns the status of a run that has its slot and the descriptor d;
// noLimits is the reason why the local cluster enforces no limits, or "".
func launchingStatus(p Plan, d *descriptors.Descriptor, planner plan.Planner, noLimits string) event.Status {
	run := p.Run
	h, msg := run.Header, "creating its objects"
	for _, i := range p.Images {
		msg += "; " + entrypointMessage(i)
	}
	if planner.Exec {
		msg = "engine " + planner.Engine + " starts the command (no image)"
	} else if planner.Local() {
		msg = "starting the command with this machine's own programs (no image)"
		if ignored := ignoredKeys(d, noLimits); len(ignored) > 0 {
			msg += "; without effect on this machine: " + strings.Join(ignored, ", ")
		}
	}
	return event.Status{Header: h.Cause("status/launching", ""), Phase: event.PhaseLaunching, Message: msg}
}

// outageStatus returns the status of a run whose launch waits because the cluster of its
// engine does not answer. Statuses of different times have different IDs.
func outageStatus(h event.Header, engine string, failure error, now time.Time) event.Status {
	return event.Status{
		Header: h.Cause("status/launching", "outage at "+strconv.FormatInt(now.UnixMilli(), 10)), Phase: event.PhaseLaunching,
		Message: fmt.Sprintf("engine %s does not answer, trying again: %v", engine, failure),
	}
}

// entrypointMessage returns a message about the entrypoint of an image: the registry's
// answer, or why there is none.
func entrypointMessage(i cluster.Image) string {
	if i.UnreadReason == "" {
		return fmt.Sprintf("image %s runs its entrypoint, as its registry gives it for %s", i.Name, i.Digest)
	}
	return fmt.Sprintf("the entrypoint of image %s is not known, so that the output is read from the container's log: %s", i.Name,
		i.UnreadReason)
}

// ignoredKeys returns the keys of a descriptor that the local cluster accepts and
// ignores; noLimits is the reason why it enforces no limits, or "".
func ignoredKeys(d *descriptors.Descriptor, noLimits string) []string {
	ignored := ignoredHardwareKeys("hardware", d.Hardware, noLimits)
	ignored = append(ignored, ignoredNetworkKeys(d)...)
	if d.Env.Privileged {
		ignored = append(ignored, "env.privileged")
	}
	if d.Env.ImagePullSecret != "" {
		ignored = append(ignored, "env.image_pull_secret")
	}
	if d.Env.PullPolicy != "" {
		ignored = append(ignored, "env.pull_policy")
	}
	if d.Server != nil && d.Server.Env.PullPolicy != "" {
		ignored = append(ignored, "server.env.pull_policy")
	}
	if d.Server != nil {
		ignored = append(ignored, ignoredHardwareKeys("server.hardware", d.Server.Hardware, noLimits)...)
	}
	for i, r := range d.Roles {
		own := descriptors.Hardware{CPUs: r.CPUs, Memory: r.Memory}
		ignored = append(ignored, ignoredHardwareKeys(fmt.Sprintf("roles[%d]", i), own, noLimits)...)
	}
	return ignored
}

// ignoredNetworkKeys does the same as ignoredKeys, for the table network. Pods of a run with
// several have networks of their own there.
func ignoredNetworkKeys(d *descriptors.Descriptor) []string {
	var ignored []string
	several := d.Pods() > 1
	if d.Network.HostNetwork && several {
		ignored = append(ignored, "network.host_network")
	}
	if d.Network.Attachment != "" {
		ignored = append(ignored, "network.attachment")
	}
	if d.Network.MTU > 0 && !several {
		ignored = append(ignored, "network.mtu (the pod is in the network of the machine)")
	}
	return ignored
}

// ignoredHardwareKeys does the same as ignoredKeys, for one hardware table.
func ignoredHardwareKeys(table string, h descriptors.Hardware, noLimits string) []string {
	var ignored []string
	because := ""
	if noLimits != "" {
		because = " (no limits: " + noLimits + ")"
	}
	for _, key := range []struct {
		name, because string
		set           bool
	}{
		{"cpus", because, h.CPUs != "" && because != ""},
		{"memory", because, h.Memory != "" && because != ""},
		{"requests.ephemeral-storage", "", h.Requests["ephemeral-storage"] != ""},
		{"limits.ephemeral-storage", "", h.Limits["ephemeral-storage"] != ""},
		{"node_selector", "", len(h.NodeSelector) > 0},
		{"tolerations", "", len(h.Tolerations) > 0},
		{"placement", "", h.Placement != ""},
		{"priority", "", h.Priority != ""},
		{"queue", "", h.Queue != ""},
		{"apart", " (all pods are on this machine and use loopback)", h.Apart != "" && h.Strategy != descriptors.SingleNode},
		{"together", "", h.Together != "" && h.Strategy != descriptors.SingleNode},
	} {
		if key.set {
			ignored = append(ignored, table+"."+key.name+key.because)
		}
	}
	return ignored
}

// launchedEvent returns the event for the created objects of an attempt.
func launchedEvent(p Plan, uid, engine string) event.Launched {
	return event.Launched{
		Header: p.Run.Cause("launched", ""), Cluster: engine, Scope: p.Scope, Job: p.Job, UID: uid,
		Retries: p.Retries, PendingDeadline: p.PendingDeadline, Always: p.alwaysSteps(),
	}
}
