//go:build linux

package local

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/lower"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
)

// job is a pod and the Job that it belongs to.
type job struct {
	id        string
	attempt   disk.Attempt // never changes
	node      string       // never changes
	isWaiting atomic.Bool

	mu            sync.Mutex
	record        disk.Record
	version       int64
	state         *shimapi.State     // as it was last read
	stateText     []byte             // the same
	waiting       *podstatus.Waiting // why it was not launched
	launched      bool               // its shim was started
	pid           int                // of the shim, if it is a child of this process that was not reaped
	shimEnded     bool               // the shim has ended
	reaping       bool               // a goroutine waits for the shim's end
	deleting      *disk.DeletionMark
	termSent      bool                      // the shim was sent SIGTERM
	killScheduled bool                      // it will be killed if it does not end
	adoptedAlive  bool                      // its shim ran when the job was adopted
	halted        bool                      // another pod of its Job has failed, or its attempt is over: the pod has to end
	finalized     bool                      // see controller.finalize
	removing      bool                      // its removal has started
	removed       bool                      // it was removed from disk
	timers        map[timerKind]*time.Timer // the last one of each kind

	removingFromDisk bool // the registry's lock protects it
}

func newJob(node string, r disk.Record) *job {
	return &job{id: r.ID(), record: r, attempt: disk.AttemptOf(r.Job), node: node, timers: map[timerKind]*time.Timer{}}
}

// over reports whether the pod of a locked job has ended, by its state.
func (j *job) over() bool { return j.state != nil && !j.state.EndedAt.IsZero() }

// neverStarts reports whether the pod of a locked job will never begin.
func (j *job) neverStarts() bool { return !j.record.Expired.IsZero() || !j.record.Halted.IsZero() }

// address returns that of the pod.
func (j *job) address() string {
	if j.record.Number > 0 {
		return lower.Address(j.record.Number)
	}
	return ip
}

// network returns the pod's own network, nil if the pod shares the machine's.
func (j *job) network() *shimapi.Network {
	if j.record.Number == 0 {
		return nil
	}
	return lower.Network(j.record.Job, j.record.Index, j.record.PodName, j.record.Number)
}

// facts returns the input for the status of a locked job.
func (j *job) facts() podstatus.Facts {
	f := podstatus.Facts{
		Job: j.record.Job, Index: j.record.Index, PodName: j.record.PodName, PodUID: j.record.PodUID,
		Node: j.node, IP: j.address(), HostIP: ip,
		Version: j.version, State: j.state, Waiting: j.waiting, Expired: j.record.Expired,
		Halted: j.record.Halted, Grace: grace(j.record.Job),
		Stopped: j.record.Stopped, ShimEnded: j.shimEnded,
	}
	if j.deleting != nil {
		f.Deleting = j.deleting.At
	}
	return f
}

// lockedFacts locks the job for its facts.
func (j *job) lockedFacts() podstatus.Facts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.facts()
}

// grace returns how long the pods of a Job may take to end.
func grace(b *batchv1.Job) time.Duration {
	if g := b.Spec.Template.Spec.TerminationGracePeriodSeconds; g != nil {
		return time.Duration(*g) * time.Second
	}
	return lower.Grace
}

// podName makes a name as Kubernetes does.
func podName(b *batchv1.Job, index int) string {
	if validate.IsIndexed(b) {
		return fmt.Sprintf("%s-%d-%s", b.Name, index, newSuffix())
	}
	return b.Name + "-" + newSuffix()
}

// newUID returns a random UUID.
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newSuffix returns the end of the name of a Job's pod.
func newSuffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b[:])
}
