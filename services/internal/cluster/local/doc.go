// Package local runs benchmarks on this machine: it carries out the same
// objects that a Kubernetes cluster would, with the machine's own programs. It
// works on Linux only.
//
// A Job's pod is run by a supervisor, a process of its own that outlives the
// platform and writes how far it has come to disk. When the platform begins
// again it adopts what still runs and takes note of what has ended. With its
// supervisor a pod ends whole, by the kernel: the supervisor is the first
// process of the pod's PID namespace. A pod whose supervisor was killed is
// gone, and so is its Job. A service manager that ends the platform must leave
// supervisors alone (systemd: KillMode=process), or it ends all pods.
//
// Containers see this machine's directories, with their volumes mounted over
// them in a mount namespace of the pod. Nothing is created in the machine's own
// directories. As root there is no user namespace, so that nice, chown and the
// scheduler's classes work; other users keep their own IDs in one.
//
// A benchmark finds the folder Settings.Private empty, and cannot write there; what
// installs, pulls and collects sees it. One that runs as root is not kept from other
// ways to the disk.
//
// Where the kernel refuses namespaces, or the settings do, pods run without:
// what the platform's own programs mount is found by environment variables
// (pod.EnvDir, pod.EnvSecretDir, pod.EnvMessage), arguments and values that
// begin with these places are rewritten, /dev/shm is the machine's, and a pod
// that mounts anything else is refused as NeedsNamespaces. The supervisor
// reaps, and in the end kills, whatever comes from its containers; should it be
// killed itself, what it leaves is known by the environment variable shimapi.EnvPodID,
// and only a process that both left its session and cleared its environment
// escapes.
//
// # What is carried out
//
// Of a Job: parallelism and completions (1, or as many as there are pods of an
// Indexed one), completionMode, backoffLimit (0), activeDeadlineSeconds,
// ttlSecondsAfterFinished, template. Of its pods: init containers in order,
// native sidecars (init containers with restart policy Always), containers,
// restartPolicy (Never), terminationGracePeriodSeconds; hostname and subdomain in
// a network of their own; volumes emptyDir (medium; sizeLimit in memory),
// configMap and secret. Of a container: command, args and env with $(NAME), env
// from fields (metadata.name, .namespace, .uid, .labels['x'],
// .annotations['x'], spec.nodeName, status.podIP, status.hostIP), from
// ConfigMaps and Secrets, envFrom; volumeMounts with subPath and readOnly;
// workingDir; terminationMessagePath and Policy; containerPorts, each to one
// attempt at a time where it is the machine's; a limit of nvidia.com/gpu up to
// what the machine has, each GPU to one pod at a time by CUDA_VISIBLE_DEVICES.
//
// # Networks
//
// The pods of an attempt that has a Service when they are created have networks of
// their own, which are joined and lead nowhere else. They find each other, and
// the Services that select them, under the names that Kubernetes would give them
// in the domain cluster.local: in /etc/hosts, which is kept current. Their
// benchmark, and what waits for others, is in that network and has the pod's
// hostname, a folder of its own for temporary files (TMPDIR), and an empty
// /run/sshd; what installs, pulls and collects is in the machine's. What collects is
// given sockets of the pod's network, to listen and to connect there (package
// sockets). All other pods share the machine's network.
//
// The pods of an attempt are joined by its hub, a process that ends with the last
// of them, and they with it. Where the kernel refuses networks, a Service is
// refused as NeedsNamespaces.
//
// A Secret that a variable names and nobody created is looked for in
// Settings.Secrets: a folder for each, in it a file for each value, which its
// owner alone may read. What is missing there is said, and waited for.
//
// Accepted without a meaning here: image, imagePullPolicy, imagePullSecrets,
// readinessProbe (who waits for a server asks it), serviceAccountName, automountServiceAccountToken, nodeSelector,
// tolerations, affinity, topologySpreadConstraints, priorityClassName,
// priority, preemptionPolicy, schedulerName, runtimeClassName, overhead,
// enableServiceLinks, dnsPolicy, dnsConfig.searches, hostNetwork, shareProcessNamespace, and of security contexts allowPrivilegeEscalation, capabilities,
// privileged, runAsNonRoot, seccompProfile.
//
// Whatever else an object has is refused, with the field's path: validate.SupportedFields
// is the list. A container without a command needs its image's, so it is
// refused as NeedsImage. What the benchmark asks for of CPU and memory is also its
// limit where this process may make cgroups, of version 1 or 2: Cluster.Limits says
// why it may not. Limits of their own are refused. A container whose command begins with pod.ImageBinary is given
// the pod binary there.
//
// A pod waits, and says so as a kubelet would, while a ConfigMap or Secret that
// it needs is not there, or other pods have the GPUs.
package local
