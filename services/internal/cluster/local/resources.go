//go:build linux

package local

import (
	"slices"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// resources are the GPUs and ports of the machine, each used by one pod or attempt at a time.
type resources struct {
	count int // of GPUs

	mu    sync.Mutex
	gpus  map[int]string // ID of the job that uses it
	ports map[int32]port // that pods listen on
}

// port is a port on which pods of an attempt listen.
type port struct {
	attempt disk.Attempt
	jobs    map[string]bool // by ID
}

func newResources(gpus int) *resources {
	return &resources{count: gpus, gpus: map[int]string{}, ports: map[int32]port{}}
}

// claimGPUs allocates the GPUs that a locked job requests, if enough are free. GPUs in its record are allocated to it already:
// see adopt and release.
func (r *resources) claimGPUs(j *job) ([]int, bool) {
	want := validate.GPUCount(j.record.Job)
	if want == 0 || len(j.record.GPUs) == want {
		return j.record.GPUs, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var free []int
	for id := 0; id < r.count && len(free) < want; id++ {
		if _, used := r.gpus[id]; !used {
			free = append(free, id)
		}
	}
	if len(free) < want {
		return nil, false
	}
	for _, id := range free {
		r.gpus[id] = j.id
	}
	j.record.GPUs = free
	return free, true
}

// adopt allocates the GPUs and ports that the pods had in the previous process, to those that have not ended. A pod whose shim runs comes
// before one whose shim was killed: the GPUs of the latter may have been given to another pod before its record was removed.
func (r *resources) adopt(jobs []*job) {
	running, others := partition(jobs, func(j *job) bool { return j.adoptedAlive })
	for _, j := range slices.Concat(running, others) {
		switch {
		case !j.launched:
			j.record.GPUs = nil // its start failed
		case !j.over():
			r.adoptGPUs(j)
			r.claimPorts(j)
		}
	}
}

// adoptGPUs allocates the GPUs in a job's record, as far as no other job has them.
func (r *resources) adoptGPUs(j *job) {
	for _, id := range j.record.GPUs {
		if _, used := r.gpus[id]; !used {
			r.gpus[id] = j.id
		}
	}
}

// partition returns the jobs that are in, and the other ones.
func partition(jobs []*job, in func(*job) bool) (yes, no []*job) {
	for _, j := range jobs {
		if in(j) {
			yes = append(yes, j)
		} else {
			no = append(no, j)
		}
	}
	return yes, no
}

// claimPorts allocates the ports on which a locked job's pod listens, if no other attempt uses them: pods without a network of their own
// share the machine's, so that a client of one could reach the server of another.
func (r *resources) claimPorts(j *job) bool {
	if j.record.Number > 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	want := portsOf(j)
	for _, n := range want {
		if p, used := r.ports[n]; used && p.attempt != j.attempt {
			return false
		}
	}
	for _, n := range want {
		if _, used := r.ports[n]; !used {
			r.ports[n] = port{j.attempt, map[string]bool{}}
		}
		r.ports[n].jobs[j.id] = true
	}
	return true
}

// portsOf returns the ports that a job's pod listens on.
func portsOf(j *job) []int32 {
	var want []int32
	for _, container := range j.record.Job.Spec.Template.Spec.Containers {
		for _, p := range container.Ports {
			want = append(want, p.ContainerPort)
		}
	}
	return want
}

// release frees a locked job's GPUs and ports, and reports whether it had any.
func (r *resources) release(j *job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	released := false
	for id, holder := range r.gpus {
		if holder == j.id {
			delete(r.gpus, id)
			released = true
		}
	}
	for n, p := range r.ports {
		delete(p.jobs, j.id)
		if len(p.jobs) == 0 {
			delete(r.ports, n)
			released = true
		}
	}
	if !j.launched {
		j.record.GPUs = nil
	}
	return released
}
