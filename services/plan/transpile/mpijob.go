package transpile

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
)

// mpiJob returns the MPIJob of a run, with the same pods that two Jobs would have. The
// pods bring their own keys, hosts and launch commands, so a benchmark measures the
// same with and without the operator. The operator gives the workers their names on the
// network, starts the launcher, and reports its end.
func mpiJob(builders []builder) *mpijob.Job {
	launcher := builders[len(builders)-1]
	same := launcher.job() // for the fields that do not concern pods
	j := &mpijob.Job{ObjectMeta: same.ObjectMeta}
	j.APIVersion, j.Kind = mpijob.APIVersion, mpijob.Kind
	slots := launcher.role.Slots
	j.Spec = mpijob.Spec{
		SlotsPerWorker: int32(slots), //nolint:gosec // a descriptor has at most some thousands
		RunPolicy: mpijob.RunPolicy{
			CleanPodPolicy: "Running", BackoffLimit: same.Spec.BackoffLimit, Suspend: same.Spec.Suspend,
			TTLSecondsAfterFinished: same.Spec.TTLSecondsAfterFinished, ActiveDeadlineSeconds: same.Spec.ActiveDeadlineSeconds,
		},
		ReplicaSpecs:     map[string]mpijob.Replica{},
		SSHAuthMountPath: "/etc/mpi-keys", // the operator's keys are not used, and the default is root's home
	}
	for _, b := range builders {
		name := mpijob.Worker
		if b.role.EndsRun {
			name = mpijob.Launcher
		}
		j.Spec.ReplicaSpecs[name] = b.replica()
	}
	return j
}

// replica returns a role as a replica of an MPIJob. The operator decides when pods are
// retried, and gives them their names.
func (b builder) replica() mpijob.Replica {
	template := corev1.PodTemplateSpec{ObjectMeta: b.podMeta(), Spec: b.podSpec()}
	template.Spec.RestartPolicy, template.Spec.Hostname, template.Spec.Subdomain = "", "", ""
	return mpijob.Replica{Replicas: int32(b.role.Replicas), RestartPolicy: string(corev1.RestartPolicyNever), Template: template} //nolint:gosec // as above
}

// jobs returns the objects that run the roles of a run: one Job for each role, or one
// MPIJob if the settings use the operator.
func jobs(builders []builder) []cluster.Object {
	if builders[0].names.Operator {
		return []cluster.Object{mpiJob(builders)}
	}
	all := make([]cluster.Object, 0, len(builders))
	for _, b := range builders {
		all = append(all, b.job())
	}
	return all
}
