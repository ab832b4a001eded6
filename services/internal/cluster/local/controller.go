//go:build linux

package local

import (
	"context"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/runner"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// controller is the job controller: it creates the pods of Jobs, and ends and removes them. The kubelet runs the pods.
type controller struct {
	registry   *registry
	objects    *objects
	resources  *resources
	background *background
	kubelet    *kubelet
	runner     *runner.Runner
	folder     disk.Folder
	log        *zap.Logger
	node       string
}

// addJob adds a Job and all of its pods. Where its attempt has a Service by now,
// they have networks of their own.
func (c *controller) addJob(b *batchv1.Job) error {
	var records []disk.Record
	at, first := disk.AttemptOf(b), 0
	if len(c.objects.services(at)) > 0 {
		first = c.registry.allocateNumbers(at, validate.PodCount(b))
	}
	for i := range validate.PodCount(b) {
		r := disk.Record{Job: b, Index: i, PodName: podName(b, i), PodUID: newUID(), Created: b.CreationTimestamp.Time}
		if first > 0 {
			r.Number = first + i
		}
		records = append(records, r)
	}
	if err := c.folder.AddPods(records); err != nil {
		return err
	}
	js := make([]*job, 0, len(records))
	for _, r := range records {
		js = append(js, newJob(c.node, r))
	}
	c.registry.add(js...)
	for _, j := range js {
		j.mu.Lock()
		c.kubelet.launch(j)
		j.mu.Unlock()
	}
	if first > 0 {
		c.kubelet.updateHostsFiles(at)
	}
	return nil
}

// stateChanged implements jobEvents: it ends a pod that has to end, and finalizes a Job that has ended.
func (c *controller) stateChanged(j *job) {
	if j.deleting != nil || j.halted || !j.record.Stopped.IsZero() {
		c.kubelet.terminate(j)
	}
	if j.over() {
		c.finalize(j)
	}
}

// finalize frees, once, the resources of a locked job that has ended, and removes
// the job after its ttlSecondsAfterFinished.
func (c *controller) finalize(j *job) {
	if j.finalized {
		return
	}
	j.finalized = true
	c.log.Info("a pod has ended", zap.String("run", j.attempt.Run), zap.String("job", j.record.Job.Name))
	if c.resources.release(j) {
		c.background.spawn(func(context.Context) { c.kubelet.launchWaiting("") })
	}
	if validate.IsIndexed(j.record.Job) {
		c.background.spawn(func(context.Context) { c.reconcileIndexedJob(j.record.Job.UID) })
		return
	}
	f := j.facts()
	if ttl := j.record.Job.Spec.TTLSecondsAfterFinished; ttl != nil && f.HasEnded() && j.deleting == nil {
		c.deleteAfterTTL(j, time.Until(f.EndedAt().Add(time.Duration(*ttl)*time.Second)))
	}
}

// shimEnded implements jobEvents: it removes a job whose shim ended before its pod, and the other pods of its Job.
func (c *controller) shimEnded(j *job) {
	switch {
	case j.deleting != nil:
		c.removeAsync(j)
	case !j.record.Stopped.IsZero(): // its end stays visible, even if the shim was killed
		c.finalize(j)
		c.registry.changed(j)
	case !j.over():
		c.log.Warn("a pod's supervisor ended before its pod", zap.String("job", j.record.Job.Name))
		c.removeAsync(j)
		c.background.spawn(func(context.Context) { c.removeSiblings(j) })
	}
}

// deadlinePassed implements jobEvents: a job that could not begin before its
// deadline has ended.
func (c *controller) deadlinePassed(j *job) {
	if j.launched || j.neverStarts() {
		return
	}
	j.record.Expired = time.Now()
	c.neverStart(j)
}

// neverStart stores that a locked job has ended before it started, for the reason in its record.
func (c *controller) neverStart(j *job) {
	if err := shimapi.Write(c.folder.RecordFile(j.id), j.record); err != nil {
		c.log.Warn("cannot write a record", zap.String("job", j.record.Job.Name), zap.Error(err))
	}
	c.finalize(j)
	c.registry.changed(j)
}

// reconcileIndexedJob checks an Indexed Job after one of its pods has ended. A failed pod ends the other ones, and a Job whose pods have
// all ended is removed after its ttlSecondsAfterFinished.
func (c *controller) reconcileIndexedJob(uid types.UID) {
	js := c.registry.pods(uid)
	var ended time.Time
	failed, endedPods := false, 0
	for _, j := range js {
		f := j.lockedFacts()
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
func (c *controller) deleteAfterTTL(j *job, d time.Duration) {
	c.background.after(j, removalTimer, d, func(j *job) {
		if err := c.remove(j, true); err != nil {
			c.log.Error("cannot remove a job that was kept long enough", zap.String("job", j.record.Job.Name), zap.Error(err))
		}
	})
}

// halt ends a locked job's pod, because another pod of its Job has failed or its attempt is over. The pod stays visible.
func (c *controller) halt(j *job) {
	if f := j.facts(); f.HasEnded() || j.halted {
		return
	}
	j.halted = true
	if j.launched {
		c.kubelet.terminate(j)
		return
	}
	j.record.Halted = time.Now()
	c.neverStart(j)
}

// removeSiblings removes the other pods of a removed job.
func (c *controller) removeSiblings(removed *job) {
	for _, j := range c.registry.pods(removed.record.Job.UID) {
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
