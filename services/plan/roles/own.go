package roles

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// networkOwn ends the name of the Service of the pods of [[roles]].
const networkOwn = "pods"

// own returns the roles of [[roles]] in the order of the file, but for the one with
// the main Job.
func own(in Input) ([]Role, error) {
	d := in.Descriptor
	var all []Role
	hosts := map[string][]string{}
	for _, r := range d.Roles {
		made, err := ownRole(in, r)
		if err != nil {
			return nil, err
		}
		all, hosts[r.Name] = append(all, made), in.Names.Hosts(made)
	}
	ports := portVars(d.Roles)
	for i, r := range d.Roles {
		all[i].Vars = slices.Concat(all[i].Vars, all[i].peerVars(all, hosts), ports)
		all[i].AwaitArgs = in.awaitRoles(r.StartsAfter, hosts)
	}
	n := slices.IndexFunc(all, func(r Role) bool { return r.EndsRun })
	all = append(slices.Delete(slices.Clone(all), n, n+1), all[n])
	all[0].OwnsNames, all[0].Ports = true, []int{pod.ReadyPort} // a Service has a port
	return all, nil
}

// ownRole returns a role of [[roles]], without what it has to know of others.
func ownRole(in Input, r descriptors.Role) (Role, error) {
	ending := in.Descriptor.Ending()
	one := in
	one.Descriptor = in.Descriptor.ForRole(r)
	made, err := benchmark(one, r.Name)
	if err != nil {
		return Role{}, err
	}
	made.Name, made.Replicas, made.Indexed, made.Network = r.Name, r.Replicas, true, networkOwn
	if made.EndsRun = len(ending) > 0 && r.Name == ending[len(ending)-1]; !made.EndsRun {
		made.Steps = nil
	}
	switch {
	case made.EndsRun:
	case slices.Contains(ending, r.Name):
		made.End = cluster.EndAwaited
	case r.Ready == nil:
		made.End = cluster.EndFree
	}
	made.quietArtifacts()
	made.Vars = append(made.Vars, readyVars(r.Ready)...)
	if r.Ready != nil {
		made.listen(portOfURL(readyTarget(*r.Ready, "localhost")))
	}
	return made, nil
}

// quietArtifacts lets any pod of several leave the file of an artifact.
func (r *Role) quietArtifacts() {
	for i := range r.Artifacts {
		r.Artifacts[i].Quiet = true
	}
}

// readyVars returns the variables that have the entrypoint tell when its command is ready,
// if no port of the command does. Kubernetes expands no variables in them.
func readyVars(r *descriptors.Ready) []corev1.EnvVar {
	switch {
	case r == nil:
	case r.File != "":
		return []corev1.EnvVar{{Name: pod.EnvReadyFile, Value: strings.ReplaceAll(r.File, "$", "$$")}}
	case r.Log != "":
		return []corev1.EnvVar{{Name: pod.EnvReadyLog, Value: strings.ReplaceAll(r.Log, "$", "$$")}}
	}
	return nil
}

// portVars returns the variables with the ports at which roles are ready, of those that are
// ready by a port.
func portVars(all []descriptors.Role) []corev1.EnvVar {
	var vars []corev1.EnvVar
	for _, r := range all {
		if r.Ready == nil || r.Ready.Port == nil && r.Ready.HTTP == "" {
			continue
		}
		vars = append(vars, corev1.EnvVar{
			Name:  peerVar(pod.EnvPort, r.Name),
			Value: strconv.Itoa(portOfURL(readyTarget(*r.Ready, "localhost"))),
		})
	}
	return vars
}

// peerVar returns the name of a variable about a role.
func peerVar(prefix, role string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(role, "-", "_"))
}

// peerVars returns the variables that tell a pod which one it is, and where all are.
func (r Role) peerVars(all []Role, hosts map[string][]string) []corev1.EnvVar {
	vars := []corev1.EnvVar{{Name: pod.EnvRole, Value: r.Name}, PodIndexVar(pod.EnvRoleIndex, false)}
	for _, other := range all {
		vars = append(vars, corev1.EnvVar{Name: peerVar(pod.EnvHosts, other.Name), Value: strings.Join(hosts[other.Name], " ")})
	}
	return vars
}

// replicaIndex is the label with the number that the MPI operator gives a worker.
const replicaIndex = "training.kubeflow.org/replica-index"

// PodIndexVar returns a variable with the pod's number within its role. A pod that the MPI operator creates has it as a label.
func PodIndexVar(name string, operator bool) corev1.EnvVar {
	path := "metadata.annotations['batch.kubernetes.io/job-completion-index']"
	if operator {
		path = "metadata.labels['" + replicaIndex + "']"
	}
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// awaitRoles returns the arguments that wait until all pods of some roles are ready.
func (in Input) awaitRoles(names []string, hosts map[string][]string) []string {
	var targets []string
	for _, r := range in.Descriptor.Roles {
		if !slices.Contains(names, r.Name) || r.Ready == nil {
			continue
		}
		for _, h := range hosts[r.Name] {
			targets = append(targets, readyTarget(*r.Ready, h))
		}
	}
	if len(targets) == 0 {
		return nil
	}
	return in.awaitArgs(250*time.Millisecond, 5*time.Second, 1, targets...)
}

// readyTarget returns the address that answers once the pod at a host is ready.
func readyTarget(r descriptors.Ready, host string) string {
	switch {
	case r.Port != nil:
		return tcpTarget(host, *r.Port)
	case r.HTTP != "":
		return "http://" + host + r.HTTP
	}
	return tcpTarget(host, pod.ReadyPort)
}

// tcpTarget returns the address that answers once a host listens on a port.
func tcpTarget(host string, port int) string {
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port))
}
