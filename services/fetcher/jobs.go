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
	Observe(ctx context.Context, r cluster.Ref) (cluster.Seen, error)
}

// byJob has a Job of the cluster bring a source, and returns when an answer is
// remembered. One process at a time looks after a Job, under a lease; when that
// one dies, another goes on where it was, and the Job works meanwhile. When
// nobody wants the source any more the Job is ended. The errors are those of
// transfer.
func (f *fetcher) byJob(ctx context.Context, j *job) error {
	name := source.Redact(j.source.URL)
	lease, err := store.Acquire(ctx, f.deps.Store, "fetch-job/"+j.key, f.holder, time.Now(), f.settings.Lease)
	if err != nil {
		return fmt.Errorf("have %s transferred: %w", name, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	release := f.keep(ctx, cancel, lease)
	defer release()
	defer cancel(nil)
	s := &supervisor{fetcher: f, job: j}
	err = s.run(ctx)
	if end := context.Cause(ctx); end != nil && err != nil {
		err = end
		if errors.Is(end, errUnwanted) {
			err = errors.Join(err, s.end(context.WithoutCancel(ctx)))
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

	job     *job
	task    Task
	version int64
	made    *batchv1.Job
	stuck   bool // it is known, and was said, that the Job does not start
}

func (s *supervisor) run(ctx context.Context) error {
	if answered, err := s.answered(ctx); answered || err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(s.settings.Look)
	defer tick.Stop()
	for begun := time.Now(); ; {
		seen, err := s.deps.Jobs.Observe(ctx, jobRef(s.made, s.task.Number))
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return fmt.Errorf("look at job %s: %w", s.made.Name, err)
		}
		stage, why := Look(seen, time.Since(begun))
		if err := s.progress(ctx, stage, why); err != nil {
			return err
		}
		answered, err := s.answered(ctx)
		switch {
		case err != nil:
			return err
		case answered, stage == Worked: // of what was asked for later the next Job brings the answer
			return s.end(ctx)
		case stage == Broke:
			return errors.Join(s.broken(why), s.end(ctx))
		case stage == Gone:
			return errors.Join(fmt.Errorf("job %s is gone", s.made.Name), s.end(ctx))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// answered reports whether an answer is remembered that is new enough for all
// who wait.
func (s *supervisor) answered(ctx context.Context) (bool, error) {
	a, err := s.answer(ctx, s.job.source, s.board.asked(s.job))
	return a.Object != nil || a.Failure != nil, err
}

// begin takes up the Job that is there, or makes one.
func (s *supervisor) begin(ctx context.Context) (err error) {
	s.task, s.version, err = store.Get[Task](ctx, s.deps.Store, store.KindOrder, taskKey(s.job.key))
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.task = Task{Source: s.job.source, Asked: s.board.asked(s.job), Number: int(time.Now().UnixMilli()), Total: -1}
		s.version = 1
		err = store.Create(ctx, s.deps.Store, store.KindOrder, taskKey(s.job.key), s.task)
	case err == nil:
	}
	if err != nil {
		return fmt.Errorf("remember the task: %w", err)
	}
	deadline := s.settings.Sources.Deadline
	if deadline == 0 {
		deadline = longestJob
	}
	s.made = JobOf(*s.deps.Job, s.job.key, s.task, source.Redact(s.job.source.URL), deadline)
	err = s.deps.Jobs.Create(ctx, s.made.DeepCopy())
	if err != nil && !errors.Is(err, cluster.ErrExists) {
		return errors.Join(fmt.Errorf("create job %s: %w", s.made.Name, err), s.forget(ctx))
	}
	s.deps.Log.Info("transfer by job", zap.String("job", s.made.Name), zap.Bool("new", err == nil))
	return nil
}

// longestJob is a little more than what a transfer may take, and its retries.
const longestJob = 25 * time.Hour

// progress notes how far the Job says that it has come, and what it waits for, if
// only that it can start: those who wait for it are told that at once.
func (s *supervisor) progress(ctx context.Context, stage Stage, why string) error {
	t, _, err := store.Get[Task](ctx, s.deps.Store, store.KindOrder, taskKey(s.job.key))
	if errors.Is(err, store.ErrNotFound) {
		return errLost
	}
	if err != nil {
		return err
	}
	s.task.Full = t.Full
	s.board.moved(s.job, t.Done, t.Total)
	if stage == Works && why != "" && !s.stuck {
		s.deps.Log.Warn("job does not start", zap.String("job", s.made.Name), zap.String("why", why))
	}
	if s.stuck = why != "" && (s.stuck || stage == Works); s.stuck {
		t.Why = why
	}
	s.board.waits(s.job, t.Why)
	return nil
}

func (s *supervisor) broken(why string) error {
	err := fmt.Errorf("job %s failed: %s", s.made.Name, why)
	if s.task.Full {
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	}
	return err
}

// end ends the Job, if it still works, and forgets the task: a Job that goes on
// all the same ends when it sees that.
func (s *supervisor) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if s.made == nil {
		return nil
	}
	return errors.Join(s.forget(ctx), s.deps.Jobs.Delete(ctx, jobRef(s.made, s.task.Number)))
}

func (s *supervisor) forget(ctx context.Context) error {
	return s.deps.Store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: taskKey(s.job.key)})
}

// abandon ends the Jobs that bring what nobody waits for any more, and that
// nobody looks after: who did so died, and the last of those who waited left.
func (s *Stock) abandon(ctx context.Context) error {
	wanted := make(map[string]bool)
	err := each(ctx, s, store.KindOrder, openOrders, func(_ store.Doc, o Order) error {
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
			j := JobOf(*s.deps.Job, key, t, "", longestJob)
			err = errors.Join(err, s.deps.Jobs.Delete(ctx, jobRef(j, t.Number)))
		}
		return errors.Join(err, store.Release(ctx, s.deps.Store, lease))
	})
}
