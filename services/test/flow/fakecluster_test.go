package flow_test

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/clustertest"
)

// fakeCluster is a clustertest.Fake that counts writes, and refuses objects while a
// scene wants so.
type fakeCluster struct {
	*clustertest.Fake

	mu         sync.Mutex
	secrets    map[string]map[string][]byte // by run; those of the last attempt
	writes     int                          // creations and deletions that were asked for
	refuseWith *cluster.RefusedError        // for every object, nil for none
	launched   map[string]map[string]bool   // attempts that had a Job, by run
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{
		Fake: clustertest.NewFake(), secrets: make(map[string]map[string][]byte), launched: make(map[string]map[string]bool),
	}
}

// Create implements cluster.Creator. A cluster that refuses takes its time, so that
// other events come before.
func (s *fakeCluster) Create(ctx context.Context, o cluster.Object) error {
	s.mu.Lock()
	s.writes++
	refused := s.refuseWith
	s.mu.Unlock()
	if refused != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
			return refused
		}
	}
	if err := s.Fake.Create(ctx, o); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	run := o.GetLabels()[cluster.LabelRun]
	switch o := o.(type) {
	case *batchv1.Job:
		if s.launched[run] == nil {
			s.launched[run] = make(map[string]bool)
		}
		s.launched[run][o.Labels[cluster.LabelAttempt]] = true
	case *corev1.Secret:
		s.secrets[run] = o.Data
	}
	return nil
}

// Delete implements cluster.Deleter.
func (s *fakeCluster) Delete(ctx context.Context, r cluster.Ref) error {
	s.mu.Lock()
	s.writes++
	s.mu.Unlock()
	return s.Fake.Delete(ctx, r)
}

// refuse has the cluster take no object any more, or take them again.
func (s *fakeCluster) refuse(with *cluster.RefusedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuseWith = with
}

// podSecret returns the secret of the pod of a run, by file.
func (s *fakeCluster) podSecret(run string) map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secrets[run]
}

// writeCount returns how many creations and deletions were asked for so far.
func (s *fakeCluster) writeCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// attempts returns how many attempts of a run had a job.
func (s *fakeCluster) attempts(run string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.launched[run])
}
