//go:build linux

package local

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/lower"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// job is a pod and the Job that it is of.
type job struct {
	id        string
	attempt   attempt // never changes
	isWaiting atomic.Bool

	mu            sync.Mutex
	record        record
	version       int64
	state         *shimapi.State     // as it was read last
	stateText     []byte             // the same
	waiting       *podstatus.Waiting // why it was not launched
	launched      bool               // it has, or had, a supervisor
	pid           int                // of the supervisor, where it is a child of ours that was not reaped
	shimEnded     bool               // the supervisor has ended
	reaping       bool               // somebody waits for the supervisor's end
	deleting      *deletionMark
	termSent      bool // the supervisor was told to end the pod
	killScheduled bool // and will be killed if it does not
	halted        bool // another pod of its Job has failed, so that it is to end
	finalized     bool // what follows from its end was done
	removing      bool // it is being removed
	removed       bool // nothing of it is left
	timers        []*time.Timer

	removingFromDisk bool // what is left of it is being removed; it belongs to the cluster's lock
}

// attempt tells one attempt of a run from all others.
type attempt struct{ scope, run, number string }

func attemptOf(o metav1.Object) attempt {
	return attempt{o.GetNamespace(), o.GetLabels()[cluster.LabelRun], o.GetLabels()[cluster.LabelAttempt]}
}

func newJob(id string, r record) *job {
	return &job{id: id, record: r, attempt: attemptOf(r.Job)}
}

func (c *Cluster) create(o cluster.Object) error {
	o.SetUID(types.UID(newUID()))
	o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	o.SetResourceVersion(fmt.Sprint(c.nextVersion()))
	switch o := o.(type) {
	case *corev1.ConfigMap:
		return c.addObject(string(o.UID), object{ConfigMap: o.DeepCopy()})
	case *corev1.Secret:
		return c.addObject(string(o.UID), object{Secret: o.DeepCopy()})
	case *corev1.Service:
		return c.addObject(string(o.UID), object{Service: o.DeepCopy()})
	case *batchv1.Job:
		o.Generation = 1
		return c.addJob(o.DeepCopy())
	}
	return nil // accept.Object lets nothing else in
}

func (c *Cluster) addObject(uid string, o object) error {
	if err := shimapi.Write(c.disk.object(uid), o); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[uid] = o
	return nil
}

// addJob adds a Job and all of its pods. Where its attempt has a Service by now,
// they have networks of their own.
func (c *Cluster) addJob(b *batchv1.Job) error {
	var records []record
	first := c.allocateNumbers(attemptOf(b), validate.PodCount(b))
	for i := range validate.PodCount(b) {
		r := record{Job: b, Index: i, PodName: podName(b, i), PodUID: newUID(), Created: b.CreationTimestamp.Time}
		if first > 0 {
			r.Number = first + i
		}
		records = append(records, r)
	}
	if err := c.disk.addPods(records); err != nil {
		return err
	}
	js := make([]*job, 0, len(records))
	c.mu.Lock()
	for _, r := range records {
		js = append(js, newJob(r.id(), r))
		c.jobs[r.id()] = js[r.Index]
	}
	c.mu.Unlock()
	for _, j := range js {
		j.mu.Lock()
		c.launch(j)
		j.mu.Unlock()
	}
	if first > 0 {
		c.updateHostsFiles(js[0].attempt)
	}
	return nil
}

// podName makes a name as Kubernetes does.
func podName(b *batchv1.Job, index int) string {
	if validate.IsIndexed(b) {
		return fmt.Sprintf("%s-%d-%s", b.Name, index, newSuffix())
	}
	return b.Name + "-" + newSuffix()
}

// facts returns what is known of a job that is locked.
func (c *Cluster) facts(j *job) podstatus.Facts {
	f := podstatus.Facts{
		Job: j.record.Job, Index: j.record.Index, PodName: j.record.PodName, PodUID: j.record.PodUID, Node: c.node, IP: j.record.address(), HostIP: ip,
		Version: j.version, State: j.state, Waiting: j.waiting, Expired: j.record.Expired, Halted: j.record.Halted, Grace: grace(j.record.Job),
		Stopped: j.record.Stopped, ShimEnded: j.shimEnded,
	}
	if j.deleting != nil {
		f.Deleting = j.deleting.At
	}
	return f
}

func grace(b *batchv1.Job) time.Duration {
	if g := b.Spec.Template.Spec.TerminationGracePeriodSeconds; g != nil {
		return time.Duration(*g) * time.Second
	}
	return lower.Grace
}

// markChanged notes that something about a locked job has changed, and lets those
// know who watch.
func (c *Cluster) markChanged(j *job) {
	j.version = c.nextVersion()
	c.notify(j.attempt)
}
