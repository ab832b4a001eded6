package download

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// maxJobDuration is slightly longer than a download with its retries can take.
const maxJobDuration = 25 * time.Hour

// Jobs is a cluster that runs download Jobs.
type Jobs interface {
	cluster.Creator
	cluster.Deleter
	// Observe does the same as cluster.Observer.Observe.
	Observe(ctx context.Context, r cluster.Ref) (cluster.Snapshot, error)
}

// Supervisor downloads sources with Jobs of a cluster.
type Supervisor struct {
	settings dataset.Settings
	cache    *dataset.Cache
	store    dataset.Store
	log      *zap.Logger
	jobs     Jobs
	template *batchv1.Job
}

// NewSupervisor returns a Supervisor that makes Jobs from a template (see CheckJob) and
// fills a cache with the same settings and deps. Without jobs (nil) it only deletes
// tasks.
func NewSupervisor(s dataset.Settings, d dataset.Deps, cache *dataset.Cache, jobs Jobs, template *batchv1.Job) *Supervisor {
	return &Supervisor{settings: s.OrDefault(), cache: cache, store: d.Store, log: d.Log, jobs: jobs, template: template}
}

// LeaseName returns the name of the lease of the supervisor of the source with that
// key.
func (s *Supervisor) LeaseName(key string) string { return "fetch-job/" + key }

func (s *Supervisor) leader(key string) *control.Leader {
	return control.NewLeader(s.store, s.LeaseName(key), rand.Text(), s.settings.Lease, control.LeaderSettings{Log: s.log})
}

// Download downloads a source with a Job, and returns when the source's state is known.
// Only one process at a time supervises a Job, under a lease. If that process crashes,
// the Job continues, and another process supervises it. If ctx ends with ErrUnwanted,
// the Job is deleted. The errors are those of Downloader.Download.
func (s *Supervisor) Download(ctx context.Context, r Request) error {
	err := s.leader(r.Source.Key()).Do(ctx, func(ctx context.Context, _ int64) error {
		v := &supervision{supervisor: s, request: r}
		err := orCause(ctx, v.run(ctx))
		if errors.Is(err, ErrUnwanted) {
			err = errors.Join(err, v.cleanUp(context.WithoutCancel(ctx)))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("have %s transferred: %w", source.Redact(r.Source.URL), err)
	}
	return nil
}

// DeleteOrphans deletes the Jobs whose sources no open order needs and which no process
// supervises. Such Jobs remain if their supervisor crashes and then the last order is
// closed.
func (s *Supervisor) DeleteOrphans(ctx context.Context) error {
	wanted := make(map[string]bool)
	for d, err := range store.All[dataset.Order](ctx, s.store, store.KindOrder, dataset.OpenOrderPrefix) {
		if err != nil {
			return err
		}
		for _, from := range d.Value.Sources {
			wanted[from.Key()] = true
		}
	}
	for d, err := range store.All[Task](ctx, s.store, store.KindOrder, taskKey("")) {
		if err != nil {
			return err
		}
		if wanted[d.Value.Source.Key()] {
			continue
		}
		if err := s.deleteOrphan(ctx, d.Key, d.Value); err != nil && !errors.Is(err, store.ErrHeld) {
			return err
		}
	}
	return nil
}

// deleteOrphan deletes one task and its Job. The error is store.ErrHeld if a process
// supervises the Job.
func (s *Supervisor) deleteOrphan(ctx context.Context, docKey string, t Task) error {
	key := t.Source.Key()
	return s.leader(key).Do(ctx, func(ctx context.Context, _ int64) error {
		err := s.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: docKey})
		if s.jobs == nil {
			return err
		}
		j := JobOf(*s.template, key, t, "", maxJobDuration)
		return errors.Join(err, s.jobs.Delete(ctx, jobRef(j, t.Number)))
	})
}

// supervision supervises the Job of one source under a lease.
type supervision struct {
	supervisor  *Supervisor
	request     Request
	task        Task
	job         *batchv1.Job
	notStarting bool // the Job does not start, and this was logged
}

func (v *supervision) run(ctx context.Context) error {
	if known, err := v.known(ctx); known || err != nil {
		return err
	}
	if err := v.ensureJob(ctx); err != nil {
		return err
	}
	for began := time.Now(); ; {
		if ended, err := v.look(ctx, time.Since(began)); ended || err != nil {
			return err
		}
		if !control.Sleep(ctx, v.supervisor.settings.PollInterval) {
			return ctx.Err()
		}
	}
}

// look observes the Job, and cleans up if the Job has ended.
func (v *supervision) look(ctx context.Context, age time.Duration) (ended bool, err error) {
	seen, err := v.supervisor.jobs.Observe(ctx, jobRef(v.job, v.task.Number))
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return false, fmt.Errorf("look at job %s: %w", v.job.Name, err)
	}
	phase, why := jobStatus(seen, age)
	if err := v.syncProgress(ctx, phase, why); err != nil {
		return false, err
	}
	known, err := v.known(ctx)
	switch {
	case err != nil:
		return false, err
	case known, phase == jobSucceeded: // the next Job handles later requests
		return true, v.cleanUp(ctx)
	case phase == jobFailed:
		return true, errors.Join(v.jobError(why), v.cleanUp(ctx))
	case phase == jobGone:
		return true, errors.Join(fmt.Errorf("job %s is gone", v.job.Name), v.cleanUp(ctx))
	}
	return false, nil
}

// known reports whether the state of the source satisfies all waiting orders.
func (v *supervision) known(ctx context.Context) (bool, error) {
	state, err := v.supervisor.cache.State(ctx, v.request.Source, v.request.RequestedAt())
	return state.Known(), err
}

// ensureJob continues with the existing Job, or creates one.
func (v *supervision) ensureJob(ctx context.Context) (err error) {
	s, key := v.supervisor, v.request.Source.Key()
	var found bool
	v.task, _, found, err = store.Find[Task](ctx, s.store, store.KindOrder, taskKey(key))
	if err == nil && !found {
		v.task = Task{Source: v.request.Source, RequestedAt: v.request.RequestedAt(), Number: int(time.Now().UnixMilli()), Total: -1}
		err = store.Create(ctx, s.store, store.KindOrder, taskKey(key), v.task)
	}
	if err != nil {
		return fmt.Errorf("remember the task: %w", err)
	}
	deadline := s.settings.Sources.Deadline
	if deadline == 0 {
		deadline = maxJobDuration
	}
	v.job = JobOf(*s.template, key, v.task, source.Redact(v.request.Source.URL), deadline)
	err = s.jobs.Create(ctx, v.job.DeepCopy())
	if err != nil && !errors.Is(err, cluster.ErrExists) {
		return errors.Join(fmt.Errorf("create job %s: %w", v.job.Name, err), v.deleteTask(ctx))
	}
	s.log.Info("transfer by job", zap.String("job", v.job.Name), zap.Bool("new", err == nil))
	return nil
}

// syncProgress passes on the progress that the Job reports, and the reason why it waits
// or does not start.
func (v *supervision) syncProgress(ctx context.Context, phase jobPhase, why string) error {
	t, _, found, err := store.Find[Task](ctx, v.supervisor.store, store.KindOrder, taskKey(v.request.Source.Key()))
	if err != nil {
		return err
	}
	if !found {
		return control.ErrLost
	}
	v.task.StoreFull = t.StoreFull
	v.request.OnProgress(t.Done, t.Total)
	if phase == jobRunning && why != "" && !v.notStarting {
		v.supervisor.log.Warn("job does not start", zap.String("job", v.job.Name), zap.String("why", why))
	}
	if v.notStarting = why != "" && (v.notStarting || phase == jobRunning); v.notStarting {
		t.WaitReason = why
	}
	v.request.OnWait(t.WaitReason)
	return nil
}

func (v *supervision) jobError(why string) error {
	err := fmt.Errorf("job %s failed: %s", v.job.Name, why)
	if v.task.StoreFull {
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	}
	return err
}

// cleanUp deletes the task, and the Job if there is one. A Job that still runs ends
// when it finds its task deleted.
func (v *supervision) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if v.job == nil {
		return nil
	}
	return errors.Join(v.deleteTask(ctx), v.supervisor.jobs.Delete(ctx, jobRef(v.job, v.task.Number)))
}

func (v *supervision) deleteTask(ctx context.Context) error {
	return v.supervisor.store.DeleteDoc(ctx, store.Doc{Kind: store.KindOrder, Key: taskKey(v.request.Source.Key())})
}
