// Package kube is the driver of Kubernetes clusters.
//
// Objects are created and deleted, never changed. What is there is seen in two
// ways: Observe asks the API server, and Watch hands over what one list and watch
// of each kind keeps up to date, for all runs and all callers together. Only what
// carries the label of a run is looked at, and only that is ever deleted.
//
// Any number of clusters, in any number of processes, may work on the same
// namespace: none of them keeps anything that another would have to know.
//
// It works with Kubernetes 1.34 and 1.35: its API suites are run against both, its
// contract, which needs nodes, against 1.35.
//
// What the driver may do is granted by roles, which deploy/kubernetes holds. A
// verb that is forbidden is named with what would have to be granted.
package kube
