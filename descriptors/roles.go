package descriptors

import "cmp"

// Roles are the roles of the pods of a run: first that of the pods that measure,
// which have the data that name no role.
func (s Strategy) Roles() []string {
	switch s {
	case MPI:
		return []string{"worker", "launcher"}
	case Inference:
		return []string{"client", "server"}
	case SingleNode:
	}
	return []string{"benchmark"}
}

// Reader is the role of the pods that have a source's data.
func (s Strategy) Reader(of Source) string { return cmp.Or(of.Role, s.Roles()[0]) }
