// Package shim runs one pod of the local cluster, in a process of its own that outlives the platform. It works on Linux only.
//
// The shim is the first process of the pod's PID namespace or, if the kernel refuses namespaces, the reaper of all descendants of its
// children: when it ends, so does the whole pod. It writes its state to the file shimapi.Pod.State.
package shim
