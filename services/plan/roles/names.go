package roles

import "fmt"

// Names are the names of the objects of an attempt of a run.
type Names struct {
	Attempt  string // of the role that ends the run, with which all others begin
	Scope    string // Kubernetes namespace
	Operator bool   // Kubeflow's MPI operator creates the pods, and the Service that gives them names
}

// Of returns the name of the objects of a role.
func (n Names) Of(r Role) string {
	if r.EndsRun {
		return n.Attempt
	}
	return n.Attempt + "-" + r.Name
}

// Shared returns the name of an object that all roles use.
func (n Names) Shared(suffix string) string { return n.Attempt + "-" + suffix }

// Subdomain returns the subdomain of all pods of a run that have names, which is the name
// of its headless Service.
func (n Names) Subdomain(r Role) string {
	if n.Operator {
		return n.Attempt
	}
	return n.Shared(r.Network)
}

// Host returns the name of the role's Service on the network.
func (n Names) Host(r Role) string { return n.Of(r) + "." + n.Scope + ".svc" }

// Hosts returns the names of the role's indexed replicas on the network.
func (n Names) Hosts(r Role) []string {
	hosts := make([]string, 0, r.Replicas)
	for i := range r.Replicas {
		hosts = append(hosts, fmt.Sprintf("%s-%d.%s.%s.svc", n.Of(r), i, n.Subdomain(r), n.Scope))
	}
	return hosts
}
