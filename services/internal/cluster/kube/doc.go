// Package kube is the driver of Kubernetes clusters.
//
// It creates and deletes objects, and never changes them. It reads state in two ways: Observe asks the API server, and Watch uses a cache
// that one list and watch of each kind keeps up to date, for all runs and all callers together. It reads only objects with the label of a
// run, and deletes only those.
//
// Any number of clusters, in any number of processes, may work on the same namespace: they share no state outside the cluster.
//
// It works with Kubernetes 1.34 and 1.35: its API suites are run against both, its contract, which needs nodes, against 1.35.
//
// The driver has its permissions from the roles in deploy/kubernetes. Its errors name a missing permission.
package kube
