package fetcher

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/benchmark-ai/bai/services/fetcher/source"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// Jobs is a cluster in which Jobs do the transfers.
type Jobs interface {
	cluster.Creator
	cluster.Deleter
	// Observe is that of cluster.Observer.
	Observe(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error)
}

// downloadByJob has a Job of the cluster bring a source, and returns when an answer is
// remembered. One process at a time looks after a Job, under a lease; when that
// one dies, another goes on where it was, and the Job works meanwhile. When
// nobody wants the source any more the Job is ended. The errors are those of
// transfer.
func (f *fetcher) downloadByJob(ctx context.Context, j *download) error {
	name := source.Redact(j.source.URL)
	lease, err := store.Acquire(ctx, f.deps.Store, "fetch-job/"+j.key, f.holder, time.Now(), f.settings.Lease)
	if err != nil {
		return fmt.Errorf("have %s transferred: %w", name, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	release := f.holdLease(ctx, cancel, lease)
	defer release()
	defer cancel(nil)
	s := &supervisor{fetcher: f, download: j}
	err = s.run(ctx)
	if end := context.Cause(ctx); end != nil && err != nil {
		err = end
		if errors.Is(end, errUnwanted) {
			err = errors.Join(err, s.cleanUp(context.WithoutCancel(ctx)))
		}
	}
	if err != nil {
		return fmt.Errorf("have %s transferred: %w", name, err)
	}
	return nil
}

// supervisor looks after the Job of one source.
type supervisor struct {
	*fetcher

	download    *download
	task        Task
	version     int64
	k8sJob      *batchv1.Job
	notStarting bool // it is known, and was said, that the Job does not start
}

func (s *supervisor) run(ctx context.Context) error {
	if resolved, err := s.isResolved(ctx); resolved || err != nil {
		return err
	}
	if err := s.ensureJob(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(s.settings.PollInterval)
	defer tick.Stop()
	for start := time.Now(); ; {
		seen, err := s.deps.Jobs.Observe(ctx, jobRef(s.k8sJob, s.task.Number))
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return fmt.Errorf("look at job %s: %w", s.k8sJob.Name, err)
		}
		stage, why := JobStatus(seen, time.Since(start))
		if err := s.syncProgress(ctx, stage, why); err != nil {
			return err
		}
		resolved, err := s.isResolved(ctx)
		switch {
		case err != nil:
			return err
		case resolved, stage == JobSucceeded: // of what was asked for later the next Job brings the answer
			return s.cleanUp(ctx)
		case stage == JobFailed:
			return errors.Join(s.jobError(why), s.cleanUp(ctx))
		case stage == JobGone:
			return errors.Join(fmt.Errorf("job %s is gone", s.k8sJob.Name), s.cleanUp(ctx))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// isResolved reports whether an answer is remembered that is new enough for all
// who wait.
func (s *supervisor) isResolved(ctx context.Context) (bool, error) {
	a, err := s.sourceState(ctx, s.download.source, s.scheduler.requestedAt(s.download))
	return a.Object != nil || a.Failure != nil, err
}

// ensureJob takes up the Job that is there, or makes one.
func (s *supervisor) ensureJob(ctx context.Context) (err error) {
	s.task, s.version, err = store.Get[Task](ctx, s.deps.Store, store.KindOrder, taskKey(s.download.key))
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.task = Task{Source: s.download.source, RequestedAt: s.scheduler.requestedAt(s.download), Number: int(time.Now().UnixMilli()), Total: -1}
		s.version = 1
		err = store.Create(ctx, s.deps.Store, store.KindOrder, taskKey(s.download.key), s.task)
	case err == nil:
	}
	if err != nil {
		return fmt.Errorf("remember the task: %w", err)
	}
	deadline := s.settings.Sources.Deadline
	if deadline == 0 {
		deadline = maxJobDuration
	}
	s.k8sJob = JobOf(*s.deps.JobTemplate, s.download.key, s.task, source.Redact(s.download.source.URL), deadline)
	err = s.deps.Jobs.Create(ctx, s.k8sJob.DeepCopy())
	if err != nil && !errors.Is(err, cluster.ErrExists) {
		return errors.Join(fmt.Errorf("create job %s: %w", s.k8sJob.Name, err), s.deleteTask(ctx))
	}
	s.deps.Log.Info("transfer by job", zap.String("job", s.k8sJob.Name), zap.Bool("new", err == nil))
	return nil
}

// maxJobDuration is a little more than what a transfer may take, and its retries.
const maxJobDuration = 25 * time.Hour

// syncProgress notes how far the Job says that it has come, and what it waits for, if
// only that it can start: those who wait for it are told that at once.
func (s *supervisor) syncProgress(ctx context.Context, stage JobPhase, why string) error {
	t, _, err := store.Get[Task](ctx, s.deps.Store, store.KindOrder, taskKey(s.download.key))
	if errors.Is(err, store.ErrNotFound) {
		return errLeaseLost
	}
	if err != nil {
		return err
	}
	s.task.StoreFull = t.StoreFull
	s.scheduler.setProgress(s.download, t.Done, t.Total)
	if stage == JobRunning && why != "" && !s.notStarting {
		s.deps.Log.Warn("job does not start", zap.String("job", s.k8sJob.Name), zap.String("why", why))
	}
	if s.notStarting = why != "" && (s.notStarting || stage == JobRunning); s.notStarting {
		t.WaitReason = why
	}
	s.scheduler.setWaitReason(s.download, t.WaitReason)
	return nil
}

func (s *supervisor) jobError(why string) error {
	err := fmt.Errorf("job %s failed: %s", s.k8sJob.Name, why)
	if s.task.StoreFull {
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	}
	return err
}

// cleanUp ends the Job, if it still works, and forgets the task: a Job that goes on
// all the same ends when it sees that.
func (s *supervisor) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if s.k8sJob == nil {
		return nil
	}
	return errors.Join(s.deleteTask(ctx), s.deps.Jobs.Delete(ctx, jobRef(s.k8sJob, s.task.Number)))
}

func (s *supervisor) deleteTask(ctx context.Context) error {
	return s.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: taskKey(s.download.key)})
}

// deleteOrphanJobs ends the Jobs that bring what nobody waits for any more, and that
// nobody looks after: who did so died, and the last of those who waited left.
func (s *DatasetCache) deleteOrphanJobs(ctx context.Context) error {
	wanted := make(map[string]bool)
	err := each(ctx, s, store.KindOrder, openOrderPrefix, func(_ store.Doc, o Order) error {
		for _, from := range o.Sources {
			wanted[from.Key()] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	return each(ctx, s, store.KindOrder, taskKey(""), func(d store.Doc, t Task) error {
		key := t.Source.Key()
		if wanted[key] {
			return nil
		}
		lease, err := store.Acquire(ctx, s.deps.Store, "fetch-job/"+key, s.holder, time.Now(), s.settings.Lease)
		if errors.Is(err, store.ErrHeld) {
			return nil
		}
		if err != nil {
			return err
		}
		err = s.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: d.Key})
		if s.deps.Jobs != nil {
			j := JobOf(*s.deps.JobTemplate, key, t, "", maxJobDuration)
			err = errors.Join(err, s.deps.Jobs.Delete(ctx, jobRef(j, t.Number)))
		}
		return errors.Join(err, store.Release(ctx, s.deps.Store, lease))
	})
}
