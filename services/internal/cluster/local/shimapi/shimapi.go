// Package shimapi is the protocol between the local cluster and the shim of a pod: the names of files, the specification that the shim
// runs, and the state that it writes. It has no types of Kubernetes, so that the pod binary stays small.
package shimapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// LockFD is the descriptor of the lock that a shim inherits and holds as long as it runs.
const LockFD = 3

// NetworkFD is the descriptor of its run's network that the shim of a pod with a Network inherits.
const NetworkFD = 4

// SocketsFD is the descriptor from which a container outside its pod's network gets sockets of that network.
const SocketsFD = 3

// BridgeFD is the descriptor of the listener that a bridge inherits.
const BridgeFD = 3

// Names in the directory of a pod.
const (
	PodFile = "pod.json" // a Pod
	Volumes = "volumes"  // volumes that containers mount
	Logs    = "logs"     // the last output of each container, <name>.log and before it <name>.log.1
	Private = "private"  // sources of Network.Private
	Root    = "root"     // folder of the containers' roots, in the shim's mount namespace
)

// FrozenGrace is how long a process that got SIGTERM may be stopped by a signal before it is killed: it gets SIGCONT with SIGTERM, and a
// process that is stopped again cannot use its grace.
const FrozenGrace = 10 * time.Second

// EnvPodID is the environment variable that identifies the processes of a pod without namespaces. Its value is the pod's ID.
const EnvPodID = "BAI_LOCAL_POD"

// Pod is the specification that a shim runs.
type Pod struct {
	ID           string        `json:"id"`
	State        string        `json:"state"`             // the file that its State is written to, by rename
	Lock         string        `json:"lock"`              // the file that its shim has as LockFD, and holds locked
	Namespaces   bool          `json:"namespaces"`        // the pod has a PID and a mount namespace of its own
	Binary       string        `json:"binary"`            // the pod binary
	Grace        time.Duration `json:"grace"`             // between SIGTERM and SIGKILL to its main containers
	SidecarGrace time.Duration `json:"owed,omitempty"`    // the same for its sidecars, from the same time; at least Grace
	Deadline     time.Time     `json:"deadline"`          // when the pod is ended; zero means never
	Network      *Network      `json:"network,omitempty"` // of its own; nil for the machine's
	Volumes      []Volume      `json:"volumes,omitempty"`
	Containers   []Container   `json:"containers"` // init containers and sidecars first, in order
}

// Network is the place of a pod in the network of its run.
type Network struct {
	Number   int      `json:"number"`            // from 1, in the network of its run
	Address  string   `json:"address"`           // of version 4
	Prefix   int      `json:"prefix"`            // bits of the address that all pods of the run share
	Hostname string   `json:"hostname"`          // hostname of the pod
	MTU      int      `json:"mtu,omitempty"`     // of its link; zero means the kernel's default
	Private  []string `json:"private,omitempty"` // directories that the pod sees empty, and may write to
}

// Request asks a bridge to start the shim of a pod. The descriptors of the shim's log and lock come with it, in this order.
type Request struct {
	Args       []string  `json:"args"`
	Namespaces uintptr   `json:"namespaces"` // of its own, as flags of clone
	Ambient    []uintptr `json:"ambient,omitempty"`
}

// Response is the answer of a bridge.
type Response struct {
	PID     int    `json:"pid,omitzero"`
	Problem string `json:"problem,omitempty"`
}

// Volume is a directory that containers mount.
type Volume struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Memory bool   `json:"memory,omitempty"` // the volume is in memory
	Limit  int64  `json:"limit,omitempty"`  // bytes that it may have in memory; zero means the kernel's own limit
}

// Kind is when a container runs.
type Kind string

// Kinds of containers.
const (
	Init    Kind = "init"    // to its end, before the next
	Sidecar Kind = "sidecar" // from its place among the init containers until the main ones have ended
	Main    Kind = "main"
)

// Container is one program of a pod.
type Container struct {
	Name           string   `json:"name"`
	Kind           Kind     `json:"kind"`
	Args           []string `json:"args"`
	Env            []string `json:"env,omitempty"`
	Dir            string   `json:"dir,omitempty"` // empty means /
	Mounts         []Mount  `json:"mounts,omitempty"`
	MessagePath    string   `json:"message"`            // the file of its termination message, as it sees it
	FallbackToLogs bool     `json:"log_tail,omitempty"` // if it failed without a message, the end of its log is the message
	RunsPodBinary  bool     `json:"ours,omitempty"`     // it runs the pod binary
	CPU            int64    `json:"cpu,omitempty"`      // thousandths of a core that it may use; zero means all
	Memory         int64    `json:"memory,omitempty"`   // bytes that it may use; zero means all
	// folders of the cgroups that enforce these limits and count kills, if the machine allows it
	Groups      []string `json:"groups,omitempty"`
	HiddenDir   string   `json:"hidden,omitempty"`  // a folder of the machine that it sees empty, if the pod has namespaces
	Sockets     bool     `json:"sockets,omitempty"` // it may request sockets of the pod's own network, at descriptor SocketsFD
	HostNetwork bool     `json:"outside,omitempty"` // it is in the machine's network, even if the pod has one of its own
}

// Mount is a path at which a container sees a volume, or a part of it.
type Mount struct {
	Volume   string `json:"volume"`
	SubPath  string `json:"sub_path,omitempty"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// State is how far a pod has come.
type State struct {
	PID        int               `json:"pid"`   // of the shim, as its starter sees it
	StartTicks uint64            `json:"born"`  // when the shim started, in ticks since the machine did
	StartedAt  time.Time         `json:"began"` // when it took over the pod
	Containers []ContainerStatus `json:"containers"`
	Stopped    time.Time         `json:"stopped,omitzero"`  // when it started to end the pod before its time
	Deadline   bool              `json:"deadline,omitzero"` // because its deadline had passed
	EndedAt    time.Time         `json:"over,omitzero"`     // when all processes of the pod had ended; the last change
}

// ContainerStatus is how far a container has come, in the order of Pod.Containers.
type ContainerStatus struct {
	PID             int          `json:"pid,omitzero"` // while it runs, as the shim sees it
	Started         time.Time    `json:"started,omitzero"`
	Restarts        int          `json:"restarts,omitzero"`
	Termination     *Termination `json:"end,omitempty"`   // how it ended, unless it runs again
	LastTermination *Termination `json:"last,omitempty"`  // how it ended the time before
	TermSentAt      time.Time    `json:"termed,omitzero"` // when it was sent SIGTERM
	KillSentAt      time.Time    `json:"killed,omitzero"` // when it was sent SIGKILL
	Frozen          bool         `json:"frozen,omitzero"` // a signal had stopped it at the last check
}

// Termination is how a container ended.
type Termination struct {
	Code    int       `json:"code"`              // exit code as in a shell
	Signal  int       `json:"signal,omitempty"`  // that ended it
	OOM     bool      `json:"oom,omitempty"`     // the kernel killed it for lack of memory, as far as can be seen
	Problem string    `json:"problem,omitempty"` // why it could not be started
	Message string    `json:"message,omitempty"` // its termination message
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
}

// Running reports whether the container runs.
func (s ContainerStatus) Running() bool { return s.PID != 0 }

// Read reads the JSON at path into v.
func Read(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Write writes v as JSON to path by rename: a reader sees all of it or the previous content. The file outlives this process; a crash of the
// machine may lose the last seconds of it, and loses every pod that ran then.
func Write(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(TempPath(path), b, 0o600); err != nil {
		_ = os.Remove(TempPath(path)) // it may take up the last room
		return err
	}
	return os.Rename(TempPath(path), path)
}

// TempPath returns where Write first writes the content of path.
func TempPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
}
