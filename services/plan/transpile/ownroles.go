package transpile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// networkRoles ends the name of the Service of the pods of [[roles]].
const networkRoles = "pods"

// ownRoles returns the roles of [[roles]] in the order of the file, but for the one with
// the main Job.
func ownRoles(in Input, s Settings) ([]role, error) {
	d := in.Descriptor
	var roles []role
	for _, r := range d.Roles {
		made, err := ownRole(in, r)
		if err != nil {
			return nil, err
		}
		roles = append(roles, made)
	}
	hosts := map[string][]string{}
	for _, r := range roles {
		hosts[r.name] = builder{in: in, settings: s, role: r}.hosts()
	}
	for i, r := range d.Roles {
		roles[i].vars = append(roles[i].vars, roles[i].peerVars(roles, hosts)...)
		roles[i].awaitArgs = s.rolesReady(d, r.StartsAfter, hosts)
	}
	n := slices.IndexFunc(roles, func(r role) bool { return r.endsRun })
	roles = append(slices.Delete(slices.Clone(roles), n, n+1), roles[n])
	roles[0].ownsNames, roles[0].ports = true, []int{pod.ReadyPort} // a Service has a port
	return roles, nil
}

// ownRole returns a role of [[roles]], without what it has to know of others.
func ownRole(in Input, r descriptors.Role) (role, error) {
	ending := in.Descriptor.Ending()
	one := in
	one.Descriptor = in.Descriptor.ForRole(r)
	made, err := benchmarkRole(one, r.Name)
	if err != nil {
		return role{}, err
	}
	made.name, made.replicas, made.indexed, made.network = r.Name, r.Replicas, true, networkRoles
	made.endsRun = len(ending) > 0 && r.Name == ending[len(ending)-1]
	switch {
	case made.endsRun:
	case slices.Contains(ending, r.Name):
		made.end = cluster.EndAwaited
	case r.Ready == nil:
		made.end = cluster.EndFree
	}
	for i := range made.artifacts {
		made.artifacts[i].Quiet = true // any role may leave the file
	}
	made.vars = append(made.vars, readyVars(r.Ready)...)
	return made, nil
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

// peerVars returns the variables that tell a pod which one it is, and where all are.
func (r role) peerVars(all []role, hosts map[string][]string) []corev1.EnvVar {
	vars := []corev1.EnvVar{{Name: pod.EnvRole, Value: r.name}, builder{role: r}.podIndexVar(pod.EnvRoleIndex)}
	for _, other := range all {
		name := pod.EnvHosts + strings.ToUpper(strings.ReplaceAll(other.name, "-", "_"))
		vars = append(vars, corev1.EnvVar{Name: name, Value: strings.Join(hosts[other.name], " ")})
	}
	return vars
}

// rolesReady returns the arguments that wait until all pods of some roles are ready.
func (s Settings) rolesReady(d *descriptors.Descriptor, names []string, hosts map[string][]string) []string {
	var targets []string
	for _, r := range d.Roles {
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
	return s.awaitArgs(250*time.Millisecond, 5*time.Second, 1, targets...)
}

// readyTarget returns the address that answers once the pod at a host is ready.
func readyTarget(r descriptors.Ready, host string) string {
	switch {
	case r.Port != nil:
		return fmt.Sprintf("tcp://%s:%d", host, *r.Port)
	case r.HTTP != "":
		return "http://" + host + r.HTTP
	}
	return fmt.Sprintf("tcp://%s:%d", host, pod.ReadyPort)
}
