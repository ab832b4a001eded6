// Package shim runs one pod of the local cluster, in a process of its own
// that outlives the platform. It works on Linux only.
//
// The supervisor is the first process of the pod's PID namespace, or, where the
// kernel refuses namespaces, the reaper of all that its children leave behind:
// when it ends, so does all of the pod. What it knows it writes to the file
// that spec.Pod.State names, before anybody could miss it.
package shim
