// Package kubecluster boots a real Kubernetes on one machine, for tests: a control plane
// and nodes without a container engine of the host's, or the API server and its store
// alone.
//
// A machine of the cluster is one process that is the first in namespaces of its own, so
// the kernel ends all that runs there with it, and takes its mounts and links away. It
// ends when the pipe from its keeper does. The keeper, one process for a cluster, ends
// when the pipe from its owner does, and undoes all other changes: the bridge, control
// groups, kernel settings, folders. So a killed test leaves nothing; and the next keeper
// that starts undoes the leftovers of killed keepers, which it recognises by their
// unlocked files.
//
// Traps, and their solutions:
//   - A sandbox's OOM score cannot be lowered without CAP_SYS_RESOURCE:
//     containerd restricts it.
//   - Control groups of version 1 need failCgroupV1: false and the cgroupfs
//     driver, and each node a group of its own in every hierarchy.
//   - The controller manager ends where it comes before the default roles: it is
//     started when the API server is ready.
//   - The API server reads the service accounts' public key from a certificate.
//   - In one block of CoreDNS "template" would answer before "kubernetes".
//   - Every node reports all cores and all memory of this machine.
//   - Pulling an image fails at once: there is no route out of a node. An image
//     must not be tagged latest, which means that it is to be pulled.
package kubecluster
