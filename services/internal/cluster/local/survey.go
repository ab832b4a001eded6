//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// Survey implements cluster.Surveyor. The local cluster has no permissions. Each object is checked against the supported fields.
func (c *Cluster) Survey(_ context.Context, q cluster.SurveyRequest) (cluster.Survey, error) {
	s := cluster.Survey{
		Name: "this machine, " + c.node + ", whose own programs are run in place of images", LocalMachine: true,
		Permissions: map[cluster.Permission]cluster.Answer{}, Kinds: map[schema.GroupVersionKind]cluster.Answer{},
		Secrets: map[cluster.SecretKey]cluster.Answer{}, PriorityClasses: map[string]cluster.Answer{},
		Programs: map[string]cluster.Answer{},
		Nodes:    []corev1.Node{c.asNode()},
	}
	for _, r := range q.Permissions {
		s.Permissions[r] = cluster.Answer{Yes: true}
	}
	for _, name := range q.PriorityClasses {
		s.PriorityClasses[name] = cluster.Answer{Yes: true, Detail: "it means nothing here"}
	}
	for _, k := range q.Kinds {
		s.Kinds[k] = cluster.Answer{Yes: true} // unsupported objects are refused
	}
	for _, o := range q.Objects {
		if refused := validate.Object(o, c.machineFor(o)); refused != nil {
			s.Refusals = append(s.Refusals, *refused)
		}
	}
	for _, k := range q.Secrets {
		s.Secrets[k] = c.hasSecret(k)
	}
	for _, name := range q.Programs {
		s.Programs[name] = c.hasProgram(name)
	}
	return s, nil
}

// Labels implements cluster.Labeler: the user's secrets are files, which have no labels.
func (*Cluster) Labels(_ context.Context, kind, _, name string) (map[string]string, error) {
	return nil, fmt.Errorf("look at the labels of %s %s: %w", kind, name, cluster.ErrNotFound)
}

// asNode is this machine as a node of a cluster.
func (c *Cluster) asNode() corev1.Node {
	gpus := *resource.NewQuantity(int64(c.resources.count), resource.DecimalSI)
	room := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI), validate.GPU: gpus}
	if n := totalMemory(); n > 0 {
		room[corev1.ResourceMemory] = *resource.NewQuantity(n, resource.BinarySI)
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(c.folder.Dir, &stat); err == nil {
		free := int64(stat.Bavail) * stat.Bsize //nolint:gosec // fewer than 2^63 bytes
		room[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(free, resource.BinarySI)
	}
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: c.node},
		Status: corev1.NodeStatus{
			Allocatable: room, Capacity: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// totalMemory returns how many bytes of memory this machine has; 0 if unknown.
func totalMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}

// hasSecret checks for a value in the folder for secrets. The local cluster pulls no images, so it needs no pull secrets.
func (c *Cluster) hasSecret(k cluster.SecretKey) cluster.Answer {
	if k.Key == "" {
		return cluster.Answer{Yes: true, Detail: "no images are pulled here"}
	}
	if c.settings.Secrets == "" {
		return cluster.Answer{Detail: "the platform has no folder for secrets"}
	}
	_, problem := readSecret(filepath.Join(c.settings.Secrets, k.Name, k.Key))
	return cluster.Answer{Yes: problem == "", Detail: problem}
}

// hasProgram checks for a program as a container would find it.
func (c *Cluster) hasProgram(name string) cluster.Answer {
	if strings.Contains(name, "/") {
		return isExecutable(name)
	}
	for _, e := range c.kubelet.env {
		dirs, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			if a := isExecutable(filepath.Join(dir, name)); a.Yes {
				return a
			}
		}
	}
	if a := isExecutable(filepath.Join("/usr/sbin", name)); a.Yes { // containers find sshd here, too
		return a
	}
	return cluster.Answer{Detail: "it is not on PATH"}
}

func isExecutable(path string) cluster.Answer {
	if _, err := exec.LookPath(path); err != nil {
		if why, ok := errors.AsType[*exec.Error](err); ok && errors.Is(why.Err, fs.ErrNotExist) {
			return cluster.Answer{Detail: path + " is not there"}
		}
		return cluster.Answer{Detail: err.Error()}
	}
	return cluster.Answer{Yes: true, Detail: path}
}

// Runs reports whether pods of a cluster in dir run, or may run, even if this process has no cluster.
func Runs(dir string) bool {
	d := disk.Folder{Dir: dir}
	for _, path := range disk.Matching(filepath.Join(d.StateDir(), "*.lock")) {
		if locked, err := d.IsLocked(strings.TrimSuffix(filepath.Base(path), ".lock")); locked || err != nil {
			return true
		}
	}
	return false
}
