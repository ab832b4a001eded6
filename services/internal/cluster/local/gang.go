//go:build linux

package local

import (
	"slices"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// gang is what the pods of one attempt have in common. It belongs to the
// cluster's lock.
type gang struct {
	lastNumber    int           // number that was given in the network of the attempt
	bridgeLock    chan struct{} // holds one while somebody talks to what joins them; nil before anybody did
	deleteObjects bool          // its objects go with the last of its jobs
}

// neverStarts reports whether the pod will never begin.
func (r record) neverStarts() bool { return !r.Expired.IsZero() || !r.Halted.IsZero() }

// podsOfJob returns the pods of a Job. The cluster's lock is held.
func (c *Cluster) podsOfJob(uid types.UID) []*job {
	var js []*job
	for _, j := range c.jobs {
		if j.record.Job.UID == uid {
			js = append(js, j)
		}
	}
	return js
}

// podsByIndex returns the pods of a Job, in the order of their numbers.
func (c *Cluster) podsByIndex(uid types.UID) []*job {
	c.mu.Lock()
	defer c.mu.Unlock()
	js := c.podsOfJob(uid)
	slices.SortFunc(js, func(a, b *job) int { return a.record.Index - b.record.Index })
	return js
}

// repairIndexedJobs makes Indexed Jobs whole again after this process began. One whose pods
// are not all there was being made, where none had begun: then nothing of it is
// kept. Else it was being removed, and all of it goes.
func (c *Cluster) repairIndexedJobs() {
	groups := map[types.UID][]*job{}
	for _, j := range c.jobs {
		if validate.IsIndexed(j.record.Job) {
			groups[j.record.Job.UID] = append(groups[j.record.Job.UID], j)
		}
	}
	for _, js := range groups {
		marked := slices.IndexFunc(js, func(j *job) bool { return j.deleting != nil })
		begun := slices.ContainsFunc(js, func(j *job) bool { return j.launched })
		switch {
		case marked >= 0:
			c.markDeleted(js, *js[marked].deleting)
		case len(js) == validate.PodCount(js[0].record.Job):
		case begun:
			c.markDeleted(js, deletionMark{At: time.Now()})
		default:
			for _, j := range js {
				delete(c.jobs, j.id)
				if err := c.disk.removePod(j.id); err != nil {
					c.log.Error("cannot remove a pod's directory", zap.String("job", j.record.Job.Name), zap.Error(err))
				}
			}
		}
	}
}

func (c *Cluster) markDeleted(js []*job, m deletionMark) {
	for _, j := range js {
		if j.deleting != nil {
			continue
		}
		if err := shimapi.Write(c.disk.mark(j.id), m); err != nil {
			c.log.Error("cannot mark a job", zap.String("job", j.record.Job.Name), zap.Error(err))
		}
		j.deleting = &m
	}
}

// reconcileIndexedJob does what follows for an Indexed Job when one of its pods has ended: a
// failure ends the others, and when all have ended the Job goes once it was kept
// long enough.
func (c *Cluster) reconcileIndexedJob(uid types.UID) {
	js := c.podsByIndex(uid)
	var ended time.Time
	failed, endedPods := false, 0
	for _, j := range js {
		f := c.lockedFacts(j)
		failed = failed || f.Failed()
		if f.HasEnded() {
			endedPods++
			ended = f.EndedAt()
		}
	}
	for _, j := range js {
		j.mu.Lock()
		ttl := j.record.Job.Spec.TTLSecondsAfterFinished
		switch {
		case j.removing || j.deleting != nil:
		case failed && endedPods < len(js):
			c.halt(j)
		case endedPods == validate.PodCount(j.record.Job) && ttl != nil:
			c.deleteAfterTTL(j, time.Until(ended.Add(time.Duration(*ttl)*time.Second)))
		}
		j.mu.Unlock()
	}
}

// deleteAfterTTL removes a locked job that has ended, after a time.
func (c *Cluster) deleteAfterTTL(j *job, d time.Duration) {
	c.after(j, d, func(j *job) {
		if err := c.remove(j, true); err != nil {
			c.log.Error("cannot remove a job that was kept long enough", zap.String("job", j.record.Job.Name), zap.Error(err))
		}
	})
}

func (c *Cluster) lockedFacts(j *job) podstatus.Facts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return c.facts(j)
}

// halt ends a locked job's pod, which stays to be seen: another of its Job has
// failed, or its attempt is over.
func (c *Cluster) halt(j *job) {
	if f := c.facts(j); f.HasEnded() || j.halted {
		return
	}
	j.halted = true
	if j.launched {
		c.terminate(j)
		return
	}
	j.record.Halted = time.Now()
	if err := shimapi.Write(c.disk.record(j.id), j.record); err != nil {
		c.log.Warn("cannot write a record", zap.String("job", j.record.Job.Name), zap.Error(err))
	}
	c.finalize(j)
	c.markChanged(j)
}

// removeSiblings removes the other pods of a job that has gone.
func (c *Cluster) removeSiblings(removed *job) {
	for _, j := range c.podsByIndex(removed.record.Job.UID) {
		if j == removed {
			continue
		}
		j.mu.Lock()
		if err := c.remove(j, false); err != nil {
			c.log.Error("cannot remove a pod of a job that is gone", zap.String("job", j.record.Job.Name), zap.Error(err))
		}
		j.mu.Unlock()
	}
}
