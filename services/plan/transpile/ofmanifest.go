package transpile

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan/inject"
)

// ofManifest returns the objects of a run's manifest and the number of their pods, or nil for a
// run without one.
func ofManifest(builders []builder) (objects []cluster.Object, pods int, err error) {
	b := builders[len(builders)-1]
	if b.in.Descriptor.Hardware.Strategy != descriptors.FromManifest {
		return nil, 0, nil
	}
	in := inject.Input{
		Descriptor: b.in.Descriptor, Kinds: b.settings.Manifests, AnyKind: b.settings.AnyManifests, OneMachine: b.settings.OneMachine,
		Attempt: b.name(), Meta: b.meta(), PodMeta: b.podMeta(), Deadline: b.deadline(), Command: b.execCommand(), Pod: b.podFor,
		Selects: map[string]string{cluster.LabelRun: b.in.Run.Run, cluster.LabelAttempt: strconv.Itoa(b.in.Run.Attempt)},
		TTL:     int64(*seconds32(max(b.settings.RetentionPeriod(), b.in.Descriptor.Limits.Keep.For), 0)),
	}
	if b.settings.Scheduler != volcano {
		in.Queue = b.queue()
	}
	return in.Objects()
}

// podFor returns a pod of the run for a group of pods of an object.
func (b builder) podFor(p inject.Pods) corev1.PodTemplateSpec {
	if len(p.Measured.Command) > 0 {
		b.role.Command, b.role.Args = p.Measured.Command, nil
	} else if len(p.Measured.Args) > 0 {
		b.role.Command = nil
	}
	b.role.OtherPods = p.All - 1
	b.names.Operator = p.Kind.ReplicaIndex
	b.role.Indexed = b.names.Operator || p.Group["completionMode"] == string(batchv1.IndexedCompletion)
	return corev1.PodTemplateSpec{ObjectMeta: b.podMeta(), Spec: b.podSpec()}
}
