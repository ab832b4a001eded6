//go:build linux

package local

import (
	"slices"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/accept"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/status"
)

// gang is what the pods of one attempt have in common. It belongs to the
// cluster's lock.
type gang struct {
	last   int           // number that was given in the network of the attempt
	hub    chan struct{} // holds one while somebody talks to what joins them; nil before anybody did
	doomed bool          // its objects go with the last of its jobs
}

// stillborn reports whether the pod will never begin.
func (r record) stillborn() bool { return !r.Expired.IsZero() || !r.Halted.IsZero() }

// group returns the pods of a Job. The cluster's lock is held.
func (c *Cluster) group(uid types.UID) []*job {
	var js []*job
	for _, j := range c.jobs {
		if j.rec.Job.UID == uid {
			js = append(js, j)
		}
	}
	return js
}

// beside returns the pods of a Job, in the order of their numbers.
func (c *Cluster) beside(uid types.UID) []*job {
	c.mu.Lock()
	defer c.mu.Unlock()
	js := c.group(uid)
	slices.SortFunc(js, func(a, b *job) int { return a.rec.Index - b.rec.Index })
	return js
}

// regroup makes Indexed Jobs whole again after this process began. One whose pods
// are not all there was being made, where none had begun: then nothing of it is
// kept. Else it was being removed, and all of it goes.
func (c *Cluster) regroup() {
	groups := map[types.UID][]*job{}
	for _, j := range c.jobs {
		if accept.Indexed(j.rec.Job) {
			groups[j.rec.Job.UID] = append(groups[j.rec.Job.UID], j)
		}
	}
	for _, js := range groups {
		marked := slices.IndexFunc(js, func(j *job) bool { return j.deleting != nil })
		begun := slices.ContainsFunc(js, func(j *job) bool { return j.launched })
		switch {
		case marked >= 0:
			c.markAll(js, *js[marked].deleting)
		case len(js) == accept.Pods(js[0].rec.Job):
		case begun:
			c.markAll(js, mark{At: time.Now()})
		default:
			for _, j := range js {
				delete(c.jobs, j.id)
				if err := c.disk.removePod(j.id); err != nil {
					c.log.Error("cannot remove a pod's directory", zap.String("job", j.rec.Job.Name), zap.Error(err))
				}
			}
		}
	}
}

func (c *Cluster) markAll(js []*job, m mark) {
	for _, j := range js {
		if j.deleting != nil {
			continue
		}
		if err := spec.Write(c.disk.mark(j.id), m); err != nil {
			c.log.Error("cannot mark a job", zap.String("job", j.rec.Job.Name), zap.Error(err))
		}
		j.deleting = &m
	}
}

// settle does what follows for an Indexed Job when one of its pods has ended: a
// failure ends the others, and when all have ended the Job goes once it was kept
// long enough.
func (c *Cluster) settle(uid types.UID) {
	js := c.beside(uid)
	var ended time.Time
	failed, over := false, 0
	for _, j := range js {
		f := c.factsOf(j)
		failed = failed || f.Failed()
		if f.Over() {
			over++
			ended = f.Ended()
		}
	}
	for _, j := range js {
		j.mu.Lock()
		ttl := j.rec.Job.Spec.TTLSecondsAfterFinished
		switch {
		case j.leaving || j.deleting != nil:
		case failed && over < len(js):
			c.halt(j)
		case over == accept.Pods(j.rec.Job) && ttl != nil:
			c.expireAfter(j, time.Until(ended.Add(time.Duration(*ttl)*time.Second)))
		}
		j.mu.Unlock()
	}
}

// expireAfter removes a locked job that has ended, after a time.
func (c *Cluster) expireAfter(j *job, d time.Duration) {
	c.after(j, d, func(j *job) {
		if err := c.remove(j, true); err != nil {
			c.log.Error("cannot remove a job that was kept long enough", zap.String("job", j.rec.Job.Name), zap.Error(err))
		}
	})
}

func (c *Cluster) factsOf(j *job) status.Facts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return c.facts(j)
}

// halt ends a locked job's pod, which stays to be seen: another of its Job has
// failed, or its attempt is over.
func (c *Cluster) halt(j *job) {
	if f := c.facts(j); f.Over() || j.halted {
		return
	}
	j.halted = true
	if j.launched {
		c.tell(j)
		return
	}
	j.rec.Halted = time.Now()
	if err := spec.Write(c.disk.record(j.id), j.rec); err != nil {
		c.log.Warn("cannot write a record", zap.String("job", j.rec.Job.Name), zap.Error(err))
	}
	c.retire(j)
	c.touch(j)
}

// removeBeside removes the other pods of a job that has gone.
func (c *Cluster) removeBeside(gone *job) {
	for _, j := range c.beside(gone.rec.Job.UID) {
		if j == gone {
			continue
		}
		j.mu.Lock()
		if err := c.remove(j, false); err != nil {
			c.log.Error("cannot remove a pod of a job that is gone", zap.String("job", j.rec.Job.Name), zap.Error(err))
		}
		j.mu.Unlock()
	}
}
