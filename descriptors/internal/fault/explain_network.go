package fault

func network() []Explanation {
	const (
		head = "[hardware]\ncpus = 1\n"
		mpi  = head + "strategy = \"mpi\"\n[ml]\nbenchmark_code = \"IMB-MPI1 PingPong\"\n[network]\n"
		rdma = "rdma = { resource = \"rdma/hca_shared_devices_a\" }\n"
	)
	return []Explanation{
		{
			OtherRight, "a right that the platform does not let pods have",
			"Pods in the network of their nodes (network.host_network), pods that set the MTU of their link (network.mtu, NET_ADMIN) and pods that lock memory (network.rdma, IPC_LOCK) can disturb other pods of their nodes, or reach what others cannot. The platform's settings say which of these rights pods of a namespace may have, as in [executor.pods.allow.\"team\"] rights = [\"host_network\"]; without an entry there are none. With executor.pods.security = \"privileged\", env.privileged is such a right, too. So the platform says this when it validates a descriptor, at submit and preflight, and baictl validate does not.",
			"[network]\nhost_network = true",
			"[network]\nhost_network = false",
		},
		{
			NetworkConflict, "two keys of network that exclude each other",
			"With host_network the pods have no network of their own: another network cannot take its place, and its MTU is that of the node, which no run changes.",
			"[network]\nhost_network = true\nmtu = 9000",
			"[network]\nmtu = 9000",
		},
		{
			NotMPI, "a transport of MPI without MPI",
			"Transport sets variables of Open MPI, whose processes strategy mpi starts. Another program takes its transport from options of its own.",
			head + "[network]\ntransport = \"tcp\"",
			mpi + "transport = \"tcp\"",
		},
		{
			NoRDMA, "transport rdma without devices",
			"The processes would find no RDMA device in their pods. rdma names the resource by which a device plugin counts them.",
			mpi + "transport = \"rdma\"",
			mpi + rdma + "transport = \"rdma\"",
		},
		{
			SameResource, "a resource that two keys give",
			"A container has one amount of each resource. cpus, memory and gpus stand for a request and a limit of cpu, memory and gpu_resource; rdma stands for those of its resource. To give a request that is less than the limit, leave out cpus or memory.",
			"[hardware]\nmemory = \"8GiB\"\nrequests = { memory = \"4GiB\" }",
			"[hardware]\nlimits = { memory = \"8GiB\" }\nrequests = { memory = \"4GiB\" }",
		},
		{
			UnequalResource, "a request that does not go with its limit",
			"No request is more than its limit. Extended resources and hugepages have a limit always, and the cluster takes no other request than that.",
			"[hardware]\ncpus = 1\nrequests = { \"intel.com/sriov\" = 1 }",
			"[hardware]\ncpus = 1\nlimits = { \"intel.com/sriov\" = 1 }",
		},
		{
			HugepagesAlone, "hugepages alone",
			"The cluster gives large pages only to containers that ask for CPUs or memory, too.",
			"[hardware]\nlimits = { hugepages-2Mi = \"64MiB\" }",
			"[hardware]\nmemory = \"1GiB\"\nlimits = { hugepages-2Mi = \"64MiB\" }",
		},
	}
}
