package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// RunEnvironment has the environments of a run's pods: one for each container that reported one, of all attempts.
type RunEnvironment struct {
	Pods []PodEnvironment `json:"pods"`
}

// PodEnvironment is the environment of one pod.
type PodEnvironment struct {
	Origin Origin `json:"origin"`

	event.Environment

	// Image is the digest of the image in the run's record: the pods do not report it, and it is not stored here.
	Image string `json:"-"`
}

// With returns the environment with the report of a pod in place of the pod's earlier one, in an order that does not depend on which pod
// reported first. A final report stays; changed says whether the environment has changed.
func (e RunEnvironment) With(p PodEnvironment) (_ RunEnvironment, changed bool) {
	p.Origin.Kind = "" // a pod has one environment for all its streams
	i, found := slices.BinarySearchFunc(e.Pods, p, comparePods)
	if found {
		if e.Pods[i].Final || !p.Final && e.Pods[i].equal(p) {
			return e, false
		}
		pods := slices.Clone(e.Pods)
		pods[i] = p
		return RunEnvironment{Pods: pods}, true
	}
	return RunEnvironment{Pods: slices.Insert(slices.Clone(e.Pods), i, p)}, true
}

func (p PodEnvironment) equal(q PodEnvironment) bool {
	a, errA := json.Marshal(p)
	b, errB := json.Marshal(q)
	return errA == nil && errB == nil && string(a) == string(b)
}

func comparePods(a, b PodEnvironment) int {
	return slices.Compare(a.sortKey(), b.sortKey())
}

// sortKey returns the key that identifies a pod and orders pods.
func (p PodEnvironment) sortKey() []string {
	width := func(n int) string { return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) }
	return []string{width(p.Origin.Attempt), p.Origin.Role, width(p.Origin.Index), p.Origin.Pod, p.Origin.Container}
}

// Attempt returns the pods of an attempt, in order of role and index.
func (e RunEnvironment) Attempt(n int) []PodEnvironment {
	return slices.DeleteFunc(slices.Clone(e.Pods), func(p PodEnvironment) bool { return p.Origin.Attempt != n })
}

// Fingerprint returns a text that is the same for runs whose numbers may be compared, as far as that depends on their environment: the
// image, and for each pod its role, the digest of its image if known, and the machine without the fields that do not affect numbers (see
// comparableMachine). It is empty if no pod has reported its environment.
func Fingerprint(image string, pods []PodEnvironment) string {
	if len(pods) == 0 {
		return ""
	}
	type one struct {
		Role    string        `json:"role"`
		Image   string        `json:"image,omitempty"`
		Machine event.Machine `json:"machine"`
	}
	all := struct {
		Version int    `json:"version"` // version of this structure
		Image   string `json:"image"`
		Pods    []one  `json:"pods"`
	}{Version: 1, Image: image}
	for _, p := range pods {
		all.Pods = append(all.Pods, one{p.Origin.Role, strings.TrimPrefix(p.Image, event.NoImage), comparableMachine(p.Machine)})
	}
	slices.SortFunc(all.Pods, func(a, b one) int { return strings.Compare(jsonText(a), jsonText(b)) })
	sum := sha256.Sum256([]byte(jsonText(all)))
	return hex.EncodeToString(sum[:16])
}

// MachineFingerprint returns a text that is the same for runs on equal machines: the part of Fingerprint without images. It is empty if no
// pod has reported its environment.
func MachineFingerprint(pods []PodEnvironment) string {
	machines := make([]PodEnvironment, len(pods))
	for i, p := range pods {
		machines[i] = PodEnvironment{
			Origin:      Origin{Stream: event.Stream{Role: p.Origin.Role}},
			Environment: event.Environment{Machine: p.Machine},
		}
	}
	return Fingerprint("", machines)
}

// comparableMachine returns the fields of a machine that decide whether numbers compare. The node's name, the container's system, the speed
// of the clock, and the GPU facts that only programs report (their identity and memory, CUDA), which short runs do not ask for, are left
// out; of the kernel the first two numbers count, of the memory whole GiB.
func comparableMachine(m event.Machine) event.Machine {
	m.Node, m.OS, m.MaxMHz, m.CUDA = "", "", 0, ""
	m.Kernel = release(m.Kernel)
	m.Memory = int64(math.Round(float64(m.Memory)/(1<<30))) << 30
	m.GPUs = slices.Clone(m.GPUs)
	for i := range m.GPUs {
		m.GPUs[i].UUID, m.GPUs[i].Memory = "", 0
	}
	return m
}

// release returns the first two numbers of a kernel's release.
func release(kernel string) string {
	parts := strings.SplitN(kernel, ".", 3)
	if len(parts) < 2 {
		return kernel
	}
	minor := strings.IndexFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' })
	if minor < 0 {
		minor = len(parts[1])
	}
	return parts[0] + "." + parts[1][:minor]
}

// jsonText returns v as JSON: v has no maps, so the text is always the same.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "" // cannot happen: v has only texts and finite numbers
	}
	return string(b)
}
