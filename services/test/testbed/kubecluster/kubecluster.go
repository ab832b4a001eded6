//go:build linux

package kubecluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Addresses of a cluster with nodes. There is one at a time on a machine.
const (
	bridge       = "bai-bed"
	machines     = "10.201.0" // the bridge's network: the keeper's machine is .254, the control plane .1, nodes from .11
	hostAddress  = machines + ".254"
	controlPlane = machines + ".1"
	podPrefix    = "10.245" // node N has .N.0/24
	services     = "10.97.0.0/16"
	firstService = "10.97.0.1"
	firstNode    = 10 // node 1 is number 11
	maxNodes     = 20
)

// Settings say which cluster is wanted.
type Settings struct {
	Name string // of the cluster, and of its folder below Root
	// Nodes is how many machines run pods. Zero means the API server, its store
	// and the controllers alone, on loopback; any number of such clusters may be
	// up at a time.
	Nodes int
	Bin   string // folder with the program kube, under the name of each of its parts
	// Images are tars that every node has from the beginning. One of them is
	// PauseImage.
	Images  []string
	Timeout time.Duration // how long to wait for a cluster of others to go, and then for this one to be up; zero means 10 min
	// NoControllers leaves the controllers out, where there are no nodes.
	NoControllers bool
	// Scheduler has a cluster without nodes give pods to those that are
	// simulated.
	Scheduler bool
}

// PauseImage is the image of the process that holds the namespaces of a pod.
const PauseImage = "docker.io/local/pause:1"

// Info is how a cluster is reached.
type Info struct {
	Name       string   `json:"name"`
	Dir        string   `json:"dir"`
	Kubeconfig string   `json:"kubeconfig"` // of an administrator
	Server     string   `json:"server"`     // URL of the API server
	Audit      string   `json:"audit"`      // file of audit events, one a line
	Kubectl    string   `json:"kubectl"`
	Host       string   `json:"host"` // address of this machine as pods reach it, empty where there are no nodes
	Nodes      []string `json:"nodes"`
	Keeper     int      `json:"keeper"`    // process ID
	Simulator  string   `json:"simulator"` // kubeconfig of the simulator of nodes; its requests are not audited
}

// Root is the folder of all clusters of this user. It is the same whatever TMPDIR
// is, so that clusters see each other and those that were killed.
func Root() string { return "/tmp/bai-bed-" + strconv.Itoa(os.Getuid()) }

// Dir is the folder of a cluster.
func Dir(name string) string { return filepath.Join(Root(), name) }

// Read returns how a cluster that is up is reached, os.ErrNotExist where it is
// not up.
func Read(name string) (Info, error) {
	var i Info
	b, err := os.ReadFile(filepath.Join(Dir(name), infoFile))
	if err != nil {
		return i, fmt.Errorf("look for the cluster %s: %w", name, err)
	}
	if err := json.Unmarshal(b, &i); err != nil {
		return i, fmt.Errorf("look for the cluster %s: %w", name, err)
	}
	if !isKept(i.Name) {
		return i, fmt.Errorf("look for the cluster %s: its keeper is dead: %w", name, os.ErrNotExist)
	}
	return i, nil
}

// Files of a cluster's folder.
const (
	infoFile    = "info.json"
	lockFile    = "lock"
	changesFile = "left.json"
	readyURL    = "/readyz"
)

func (s Settings) check() error {
	switch {
	case !regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,40}$`).MatchString(s.Name):
		return fmt.Errorf("cluster %q: its name must be of small letters, digits and dashes", s.Name)
	case s.Nodes < 0 || s.Nodes > maxNodes:
		return fmt.Errorf("cluster %s: %d nodes, want 0 to %d", s.Name, s.Nodes, maxNodes)
	case s.Nodes == 0:
		return nil
	case os.Geteuid() != 0:
		return errors.New("a cluster with nodes needs root")
	}
	if _, err := os.Stat("/sys/fs/cgroup/cpu"); err != nil {
		return fmt.Errorf("a cluster with nodes needs control groups of version 1: %w", err)
	}
	return nil
}

func (s Settings) timeout() time.Duration {
	if s.Timeout == 0 {
		return 10 * time.Minute
	}
	return s.Timeout
}

// machineSpec holds the settings of a machine, which its keeper writes to a file.
type machineSpec struct {
	Name          string
	Dir           string // its own folder, which exists
	PKI           string
	Bin           string
	Number        int      // last part of its address
	Nodes         int      // of the cluster
	Images        []string // tars
	Ports         ports    // where there are no nodes
	NoControllers bool
	Scheduler     bool
}

type ports struct{ Etcd, API int }

// sharesHostNetwork reports whether the machine shares the keeper's network.
func (s machineSpec) sharesHostNetwork() bool { return s.Nodes == 0 }

func (s machineSpec) address() string {
	if s.sharesHostNetwork() {
		return "127.0.0.1"
	}
	return machines + "." + strconv.Itoa(s.Number)
}

func (s machineSpec) server() string {
	if s.sharesHostNetwork() {
		return "https://127.0.0.1:" + strconv.Itoa(s.Ports.API)
	}
	return "https://" + controlPlane + ":6443"
}

func (s machineSpec) path(name string) string    { return filepath.Join(s.Dir, name) }
func (s machineSpec) pki(name string) string     { return filepath.Join(s.PKI, name) }
func (s machineSpec) program(name string) string { return filepath.Join(s.Bin, name) }
func nodeAddress(n int) string                   { return machines + "." + strconv.Itoa(firstNode+n) }

func podRange(n int) string { return podPrefix + "." + strconv.Itoa(n) + ".0/24" }
func nodeName(n int) string { return "node" + strconv.Itoa(n) }

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
