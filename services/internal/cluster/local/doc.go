// Package local runs benchmarks on this machine: it runs the same objects as a Kubernetes cluster, with the machine's own programs. It
// works on Linux only.
//
// A Job's pod is run by a shim, a process of its own that outlives the platform and writes its state to disk. A restarted platform adopts
// the running pods and reads the results of the ended ones. A pod ends completely with its shim, by the kernel: the shim is the first
// process of the pod's PID namespace. A pod whose shim was killed is gone, and so is its Job. A service manager that stops the platform
// must leave shims alone (systemd: KillMode=process), or it ends all pods.
//
// Containers see this machine's directories, with their volumes mounted over them in a mount namespace of the pod. The driver creates no
// file in the machine's own directories. As root a pod has no user namespace, so that nice, chown and the scheduler's classes work; the
// pods of other users keep their own IDs in a user namespace.
//
// A benchmark sees the folder Settings.Private empty, and cannot write to it; the containers that install, pull and collect see its
// content. A benchmark that runs as root can still reach the disk in other ways.
//
// If the kernel refuses namespaces, or the settings disable them, pods run without: processes find the mounts of the platform's own
// programs by environment variables (pod.EnvDir, pod.EnvSecretDir, pod.EnvMessage), arguments and values that begin with these paths are
// rewritten, /dev/shm is the machine's, and a pod with any other mount is refused as NeedsNamespaces. The shim reaps all descendants of its
// containers, and kills them at the end. If the shim itself is killed, the driver finds the remaining processes by the environment variable
// shimapi.EnvPodID; only a process that both left its session and cleared its environment escapes.
//
// # Supported fields
//
// Of a Job: parallelism and completions (1, or the number of pods of an Indexed one), completionMode, backoffLimit (0),
// activeDeadlineSeconds, ttlSecondsAfterFinished, template. Of its pods: init containers in order, native sidecars (init containers with
// restart policy Always), containers, restartPolicy (Never), terminationGracePeriodSeconds; hostname and subdomain in a network of their
// own; volumes emptyDir (medium; sizeLimit in memory), configMap and secret. Of a container: command, args and env with $(NAME), env from
// fields (metadata.name, .namespace, .uid, .labels['x'], .annotations['x'], spec.nodeName, status.podIP, status.hostIP), from ConfigMaps
// and Secrets, envFrom; volumeMounts with subPath and readOnly; workingDir; terminationMessagePath and Policy; containerPorts, each for one
// attempt at a time if the pod shares the machine's network; a limit of nvidia.com/gpu up to the number of GPUs of the machine, each GPU
// for one pod at a time by CUDA_VISIBLE_DEVICES.
//
// # Networks
//
// The pods of an attempt that has a Service when they are created have networks of their own, which are connected to each other and to no
// other network. The pods find each other, and the Services that select them, under the names that Kubernetes would give them in the domain
// cluster.local: in /etc/hosts, which the driver updates. The benchmark, and the containers that wait for other pods, are in that network
// and have the pod's hostname, a folder of its own for temporary files (TMPDIR), and an empty /run/sshd; the containers that install, pull
// and collect are in the machine's network. The collector gets sockets of the pod's network, to listen and to connect there (package
// sockets). All other pods share the machine's network. The annotation cluster.AnnotationMTU is the MTU of the link of a pod with a
// network of its own, and of its end at the bridge; the machine's links are never changed.
//
// The bridge of an attempt, a process, connects its pods. It ends with the last of them, and they end with it. If the kernel refuses
// networks, a Service is refused as NeedsNamespaces.
//
// A Secret that a variable, or a volume whose name begins with cluster.VolumeSecretFile, names and that was not created is read from
// Settings.Secrets: a folder for each, with a file for each value, which only its owner may read. The pod waits for a missing value, and
// its status says so.
//
// Accepted without effect: image, imagePullPolicy, imagePullSecrets, readinessProbe (a client that waits for a server probes it),
// serviceAccountName, automountServiceAccountToken, nodeSelector, tolerations, affinity, topologySpreadConstraints, priorityClassName,
// priority, preemptionPolicy, schedulerName, runtimeClassName, overhead, enableServiceLinks, dnsPolicy, dnsConfig.searches, hostNetwork,
// shareProcessNamespace, and of security contexts allowPrivilegeEscalation, capabilities, privileged, runAsNonRoot, seccompProfile.
//
// Any other field of an object is refused, with its path: supportedFields of package validate is the list. A container without a command
// needs its image's command, so it is refused as NeedsImage. The benchmark's requests for CPU and memory are also its limits if this
// process can create cgroups, of version 1 or 2: Cluster.Limits returns why it cannot. Separate limits are refused. A container whose
// command begins with pod.ImageBinary runs the pod binary.
//
// A pod waits, with the status that a kubelet would set, while a ConfigMap or Secret that it needs does not exist, or other pods use the
// GPUs.
package local
