//go:build linux

package local

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/lower"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
	"github.com/benchmark-ai/bai/services/internal/control/queue"
)

// registry has the existing jobs and their watchers. Callers may hold a job's lock; the registry takes no such lock.
type registry struct {
	mu       sync.Mutex
	jobs     map[string]*job // by ID
	gangs    map[disk.Attempt]gang
	watchers map[*queue.Queue[disk.Attempt]]struct{}
	version  int64
}

// gang is the common state of the pods of one attempt.
type gang struct {
	lastNumber    int  // last allocated number in the network of the attempt
	deleteObjects bool // its objects go with the last of its jobs
}

func newRegistry() *registry {
	return &registry{
		jobs: map[string]*job{}, gangs: map[disk.Attempt]gang{}, watchers: map[*queue.Queue[disk.Attempt]]struct{}{},
		version: time.Now().UnixNano(),
	}
}

// add adds jobs.
func (r *registry) add(js ...*job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range js {
		r.jobs[j.id] = j
	}
}

// remove removes a job, and reports whether the pod was the last of its Job.
func (r *registry) remove(j *job) (last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, j.id)
	return len(r.podsOf(j.record.Job.UID)) == 0
}

// get returns a job by its ID, nil if there is none.
func (r *registry) get(id string) *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[id]
}

// all returns all jobs, in no order.
func (r *registry) all() []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.jobs))
}

// of returns the jobs of an attempt.
func (r *registry) of(at disk.Attempt) []*job {
	return slices.DeleteFunc(r.all(), func(j *job) bool { return j.attempt != at })
}

// attempts returns all attempts that have a job.
func (r *registry) attempts() []disk.Attempt {
	seen := map[disk.Attempt]struct{}{}
	for _, j := range r.all() {
		seen[j.attempt] = struct{}{}
	}
	return slices.Collect(maps.Keys(seen))
}

// podsOf returns the pods of a Job. The caller holds the lock.
func (r *registry) podsOf(uid types.UID) []*job {
	var js []*job
	for _, j := range r.jobs {
		if j.record.Job.UID == uid {
			js = append(js, j)
		}
	}
	return js
}

// pods returns the pods of a Job, in the order of their numbers.
func (r *registry) pods(uid types.UID) []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	js := r.podsOf(uid)
	slices.SortFunc(js, func(a, b *job) int { return a.record.Index - b.record.Index })
	return js
}

// nextVersion returns a number greater than any before.
func (r *registry) nextVersion() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	return r.version
}

// changed sets the next version of a locked job, and notifies the watchers.
func (r *registry) changed(j *job) {
	j.version = r.nextVersion()
	r.notify(j.attempt)
}

// notify adds an attempt to the queues of all watchers.
func (r *registry) notify(at disk.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.watchers {
		w.Add(at)
	}
}

// watch adds attempts to a queue when they change, until stop is called.
func (r *registry) watch(w *queue.Queue[disk.Attempt]) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers[w] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
	}
}

// allocateNumbers allocates consecutive numbers in an attempt's network for n pods, and returns the first.
func (r *registry) allocateNumbers(at disk.Attempt, n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[at]
	for _, j := range r.jobs {
		if j.attempt == at {
			g.lastNumber = max(g.lastNumber, j.record.Number)
		}
	}
	first := g.lastNumber + 1
	g.lastNumber += n
	r.gangs[at] = g
	return first
}

// hostLines returns the names of the pods and services in the network of an attempt.
func (r *registry) hostLines(at disk.Attempt, services []*corev1.Service) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var peers []lower.Peer
	for _, j := range r.jobs {
		if j.attempt != at || j.record.Number == 0 {
			continue
		}
		peers = append(peers, lower.Peer{
			Job: j.record.Job, Labels: podstatus.Labels(j.record.Job, j.record.Index), Number: j.record.Number,
			Hostname: lower.Hostname(j.record.Job, j.record.Index, j.record.PodName),
		})
	}
	return lower.Hosts(peers, services)
}

// leave records that a job is being removed from disk. Last reports whether this is the attempt's last job to get there, and all whether
// the attempt's objects are to be removed with it.
func (r *registry) leave(j *job, objects bool) (last, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.removingFromDisk = true
	g := r.gangs[j.attempt]
	g.deleteObjects = g.deleteObjects || objects
	r.gangs[j.attempt] = g
	for _, o := range r.jobs {
		if o.attempt == j.attempt && !o.removingFromDisk {
			return false, false
		}
	}
	delete(r.gangs, j.attempt)
	return true, g.deleteObjects
}
