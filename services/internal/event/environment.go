package event

// Environment is the environment of one pod of a run, as the container of its benchmark
// sees it. Empty and zero fields are unknown.
type Environment struct {
	Platform string            `json:"platform,omitempty"` // version of the platform's programs in the pod
	Machine  Machine           `json:"machine"`
	Tools    map[string]string `json:"tools,omitempty"`   // program → its own version
	Unknown  []string          `json:"unknown,omitempty"` // what is unknown and why, for the user to read
	Final    bool              `json:"final,omitempty"`   // nothing more will be found out
}

// Machine is the machine of a benchmark.
type Machine struct {
	Node         string  `json:"node,omitempty"`
	Kernel       string  `json:"kernel,omitempty"`       // 6.8.0-45-generic
	Architecture string  `json:"architecture,omitempty"` // amd64
	OS           string  `json:"os,omitempty"`           // of the container
	CPUModel     string  `json:"cpu_model,omitempty"`
	CPUs         int     `json:"cpus,omitempty"`         // logical ones of the machine
	CPUsAllowed  int     `json:"cpus_allowed,omitempty"` // those that the container may run on
	Cores        int     `json:"cores,omitempty"`        // physical ones
	Sockets      int     `json:"sockets,omitempty"`
	MaxMHz       float64 `json:"max_mhz,omitempty"`
	Governor     string  `json:"governor,omitempty"` // how the clock follows the load
	Turbo        string  `json:"turbo,omitempty"`    // on or off
	Memory       int64   `json:"memory,omitempty"`   // bytes
	NUMANodes    int     `json:"numa_nodes,omitempty"`
	CPULimit     float64 `json:"cpu_limit,omitempty"`    // of the container, processors; 0 is none
	MemoryLimit  int64   `json:"memory_limit,omitempty"` // of the container, bytes; 0 is none
	GPUs         []GPU   `json:"gpus,omitempty"`
	GPUDriver    string  `json:"gpu_driver,omitempty"`
	CUDA         string  `json:"cuda,omitempty"`       // that the driver supports
	Hypervisor   string  `json:"hypervisor,omitempty"` // where the machine is a virtual one
}

// GPU is one GPU that the container sees.
type GPU struct {
	Model  string `json:"model"`
	Memory int64  `json:"memory,omitempty"` // bytes
	UUID   string `json:"uuid,omitempty"`
}
