//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// adopt takes over the jobs and objects of the previous process, and returns the number of jobs. It is called before any other method.
func (c *controller) adopt() (int, error) {
	c.objects.adopt()
	if err := c.adoptPods(); err != nil {
		return 0, err
	}
	c.removeOrphanedStates()
	c.removeOrphanedNetworks()
	jobs := c.registry.all()
	for _, j := range jobs {
		j.mu.Lock()
		c.resume(j)
		j.mu.Unlock()
	}
	for _, at := range c.registry.attempts() {
		c.kubelet.updateHostsFiles(at)
	}
	return len(jobs), nil
}

// adoptPods takes over pods, and their resources.
func (c *controller) adoptPods() error {
	entries, err := os.ReadDir(c.folder.Pods())
	if err != nil {
		return err
	}
	for _, e := range entries {
		j, err := c.load(e.Name())
		if disk.Unknown(err) {
			return fmt.Errorf("adopt pod %q: %w", e.Name(), err)
		}
		if err != nil {
			c.log.Error("a pod's directory cannot be read, it is removed", zap.String("id", e.Name()), zap.Error(err))
			_ = c.folder.RemovePod(e.Name())
			continue
		}
		c.registry.jobs[j.id] = j
	}
	c.repairIndexedJobs()
	for _, j := range c.registry.jobs {
		c.objects.take(disk.Key{Kind: "Job", Scope: j.attempt.Scope, Name: j.record.Job.Name})
	}
	c.resources.adopt(c.registry.all())
	return nil
}

// load reads a job from disk. An error for which disk.Unknown holds does not mean that its folder is damaged.
func (c *controller) load(id string) (*job, error) {
	var r disk.Record
	if err := shimapi.Read(c.folder.RecordFile(id), &r); err != nil {
		return nil, err
	}
	if r.Job == nil || r.ID() != id {
		return nil, errors.New("its record is that of another")
	}
	j := newJob(c.node, r)
	var m disk.DeletionMark
	switch err := shimapi.Read(c.folder.MarkFile(id), &m); {
	case err == nil:
		j.deleting = &m
	case disk.Unknown(err):
		return nil, err
	}
	r.Job.CreationTimestamp = metav1.NewTime(r.Created)
	j.version = c.registry.version
	var err, errLock error
	j.state, j.stateText, err = c.folder.ReadState(id)
	j.adoptedAlive, errLock = c.folder.IsLocked(id)
	j.launched = j.state != nil || j.adoptedAlive
	return j, errors.Join(errLock, err)
}

// removeOrphanedStates removes the states of pods that do not exist.
func (c *controller) removeOrphanedStates() {
	entries, _ := os.ReadDir(c.folder.StateDir())
	for _, e := range entries {
		id, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), "."), ".")
		if c.registry.jobs[id] == nil {
			_ = os.Remove(filepath.Join(c.folder.StateDir(), e.Name()))
		}
	}
}

// removeOrphanedNetworks removes the networks of attempts that are gone.
func (c *controller) removeOrphanedNetworks() {
	inUse := map[string]bool{}
	for _, j := range c.registry.jobs {
		inUse[c.folder.Network(j.attempt)] = true
	}
	for _, dir := range disk.Matching(filepath.Join(c.folder.Networks(), "*")) {
		if !inUse[dir] {
			c.background.spawn(func(ctx context.Context) { c.runner.RemoveNetwork(ctx, dir) })
		}
	}
}

// resume continues with a locked job where the previous process stopped.
func (c *controller) resume(j *job) {
	switch {
	case !j.launched && j.deleting != nil:
		c.removeAsync(j)
	case !j.launched && !j.neverStarts():
		j.record.Stopped = time.Time{} // no container of it had started
		c.kubelet.launch(j)
	case !j.launched:
		c.finalize(j)
	default:
		c.stateChanged(j)
		c.kubelet.check(j)
		c.kubelet.awaitDeadline(j)
	}
}

// repairIndexedJobs repairs Indexed Jobs that lack pods. If no pod of such a Job was launched, its creation was interrupted, and its
// folders are removed. Else its deletion was interrupted, and it is marked as deleted.
func (c *controller) repairIndexedJobs() {
	groups := map[types.UID][]*job{}
	for _, j := range c.registry.jobs {
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
			c.markDeleted(js, disk.DeletionMark{At: time.Now()})
		default:
			for _, j := range js {
				delete(c.registry.jobs, j.id)
				if err := c.folder.RemovePod(j.id); err != nil {
					c.log.Error("cannot remove a pod's directory", zap.String("job", j.record.Job.Name), zap.Error(err))
				}
			}
		}
	}
}

// markDeleted marks the jobs of a Job that have no mark yet.
func (c *controller) markDeleted(js []*job, m disk.DeletionMark) {
	for _, j := range js {
		if j.deleting != nil {
			continue
		}
		if err := shimapi.Write(c.folder.MarkFile(j.id), m); err != nil {
			c.log.Error("cannot mark a job", zap.String("job", j.record.Job.Name), zap.Error(err))
		}
		j.deleting = &m
	}
}
