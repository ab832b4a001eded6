// Package shimapi is what the local cluster and the supervisor of a pod agree on:
// which files there are, what the supervisor is told to run, and what it says
// of it. It knows nothing of Kubernetes, so that the pod binary stays small.
package shimapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// LockFD is the descriptor of the lock that a supervisor is born with and
// holds as long as it lives.
const LockFD = 3

// NetworkFD is the descriptor of its run's network that the supervisor of a pod
// with a Network is born with.
const NetworkFD = 4

// SocketsFD is the descriptor where a container that is outside its pod's network is
// given sockets of it.
const SocketsFD = 3

// BridgeFD is the descriptor of the listener that a hub is born with.
const BridgeFD = 3

// Names in the directory of a pod.
const (
	PodFile = "pod.json" // a Pod
	Volumes = "volumes"  // what containers mount
	Logs    = "logs"     // the last of what each container wrote, <name>.log and before it <name>.log.1
	Private = "private"  // what stands for Network.Private
	Root    = "root"     // where the containers' roots are, in the supervisor's mount namespace
)

// FrozenGrace is how long a process that was told to end may be stopped by a signal before
// it is killed: it is sent SIGCONT with SIGTERM, and one that is stopped again cannot
// use its grace.
const FrozenGrace = 10 * time.Second

// EnvPodID is the environment variable by which the processes of a pod without
// namespaces are known. Its value is the pod's ID.
const EnvPodID = "BAI_LOCAL_POD"

// Pod is what a supervisor is told to run.
type Pod struct {
	ID           string        `json:"id"`
	State        string        `json:"state"`             // the file that its State is written to, by rename
	Lock         string        `json:"lock"`              // the file that its supervisor has as LockFD, and keeps locked
	Namespaces   bool          `json:"namespaces"`        // it has a PID and a mount namespace of its own
	Binary       string        `json:"binary"`            // the pod binary
	Grace        time.Duration `json:"grace"`             // between SIGTERM and SIGKILL to its main containers
	SidecarGrace time.Duration `json:"owed,omitempty"`    // the same for its sidecars, from the same time; zero, or less than Grace, means Grace
	Deadline     time.Time     `json:"deadline"`          // when it is ended; zero means never
	Network      *Network      `json:"network,omitempty"` // of its own; nil for the machine's
	Volumes      []Volume      `json:"volumes,omitempty"`
	Containers   []Container   `json:"containers"` // init containers and sidecars first, in order
}

// Network is what a pod is in the network of its run, where it has one of its
// own.
type Network struct {
	Number   int      `json:"number"`            // from 1, in the network of its run
	Address  string   `json:"address"`           // of version 4
	Prefix   int      `json:"prefix"`            // bits of the address that all pods of the run share
	Hostname string   `json:"hostname"`          // what the pod is called
	Private  []string `json:"private,omitempty"` // directories that it finds empty, to write to
}

// Request is what a hub is asked: to start the supervisor of a pod. Beside it
// come the supervisor's log and lock, in this order.
type Request struct {
	Args       []string  `json:"args"`
	Namespaces uintptr   `json:"namespaces"` // of its own, as flags of clone
	Ambient    []uintptr `json:"ambient,omitempty"`
}

// Response is what a hub answers.
type Response struct {
	PID     int    `json:"pid,omitzero"`
	Problem string `json:"problem,omitempty"`
}

// Volume is a directory that containers mount.
type Volume struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Memory bool   `json:"memory,omitempty"` // it lies in memory
	Limit  int64  `json:"limit,omitempty"`  // bytes that it may hold in memory; zero means the kernel's own limit
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
	MessagePath    string   `json:"message"`            // the file where it leaves its last words, as it sees it
	FallbackToLogs bool     `json:"log_tail,omitempty"` // where it failed and left none, they are the end of its log
	RunsPodBinary  bool     `json:"ours,omitempty"`     // it runs the pod binary
	CPU            int64    `json:"cpu,omitempty"`      // thousandths of a core that it may use; zero means all
	Memory         int64    `json:"memory,omitempty"`   // bytes that it may use; zero means all
	Groups         []string `json:"groups,omitempty"`   // folders of the cgroups that hold it to these, where the machine allows it
	HiddenDir      string   `json:"hidden,omitempty"`   // a folder of the machine that it finds empty, where the pod has namespaces
	Sockets        bool     `json:"sockets,omitempty"`  // it may ask for sockets of the pod's own network, at descriptor SocketsFD
	HostNetwork    bool     `json:"outside,omitempty"`  // it is in the machine's network, also where the pod has one of its own
}

// Mount is a place where a container sees a volume, or a part of it.
type Mount struct {
	Volume   string `json:"volume"`
	SubPath  string `json:"sub_path,omitempty"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// State is how far a pod has come.
type State struct {
	PID        int               `json:"pid"`   // of the supervisor, as its starter sees it
	StartTicks uint64            `json:"born"`  // when the supervisor began, in ticks since the machine did
	StartedAt  time.Time         `json:"began"` // when it took the pod on
	Containers []ContainerStatus `json:"containers"`
	Stopped    time.Time         `json:"stopped,omitzero"`  // when it began to end the pod before its time
	Deadline   bool              `json:"deadline,omitzero"` // because its deadline had passed
	EndedAt    time.Time         `json:"over,omitzero"`     // when nothing of the pod was left; the last change
}

// ContainerStatus is how far a container has come, in the order of Pod.Containers.
type ContainerStatus struct {
	PID             int          `json:"pid,omitzero"` // while it runs, as the supervisor sees it
	Started         time.Time    `json:"started,omitzero"`
	Restarts        int          `json:"restarts,omitzero"`
	Termination     *Termination `json:"end,omitempty"`   // how it ended, unless it runs again
	LastTermination *Termination `json:"last,omitempty"`  // how it ended the time before
	TermSentAt      time.Time    `json:"termed,omitzero"` // when it was sent SIGTERM
	KillSentAt      time.Time    `json:"killed,omitzero"` // when it was sent SIGKILL
	Frozen          bool         `json:"frozen,omitzero"` // a signal had stopped it when it was looked at last
}

// Termination is how a container ended.
type Termination struct {
	Code    int       `json:"code"`              // as a shell would say it
	Signal  int       `json:"signal,omitempty"`  // that ended it
	OOM     bool      `json:"oom,omitempty"`     // the kernel killed it for want of memory, by all appearance
	Problem string    `json:"problem,omitempty"` // why it could not be started
	Message string    `json:"message,omitempty"` // its last words
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

// Write writes v as JSON to path by rename: whoever reads sees all of it or
// what was there before. It outlives this process; a crash of the machine may
// take the last seconds of it, and takes every pod that ran then.
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

// TempPath returns where Write writes what is to be at path.
func TempPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
}
