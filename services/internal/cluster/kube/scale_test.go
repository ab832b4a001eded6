package kube_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/test/testbed"
)

// runs is the number of concurrent runs, and perRun how many bytes of memory the cache may take for each.
const (
	runs   = 300
	perRun = 64 << 10
)

func TestWatchKeepsLittleOfEachRun(t *testing.T) {
	testCluster := testbed.API(t)
	scope := testCluster.Namespace(t)
	before := heap()
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope, QPS: 1000, Burst: 1000})
	ctx, cancel := context.WithTimeout(t.Context(), 2*waitTimeout)
	defer cancel()

	var whole, handed atomic.Int64
	all, done := make(chan struct{}), make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	seen := map[string]bool{}
	go func() {
		done <- c.Watch(watching, func(s cluster.Snapshot) {
			handed.Add(1)
			if s.Job != nil && len(s.Pods) == 1 && !seen[s.Ref.Run] {
				seen[s.Ref.Run] = true
				if whole.Add(1) == runs {
					close(all)
				}
			}
		})
	}()
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(16)
	for n := range runs {
		group.Go(func() error { return c.Create(ctx, job(scope, fmt.Sprint("many", n))) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	created := time.Since(began)
	select {
	case <-all:
	case <-ctx.Done():
		t.Fatalf("%d of %d runs were seen with their pods", whole.Load(), runs)
	}
	grown := heap() - before
	t.Logf("%d runs: created in %s, seen with their pods after %s, handed over %d times, %d KiB of heap, %.1f KiB a run",
		runs, created.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), handed.Load(), grown>>10, float64(grown)/runs/1024)
	if grown > runs*perRun {
		t.Errorf("%d bytes a run, want %d at most", grown/runs, perRun)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far from the bound
}

// TestWhatIsOwnedGoesWithItsOwner: the cluster deletes owned objects of every kind without a request for each.
func TestWhatIsOwnedGoesWithItsOwner(t *testing.T) {
	t.Parallel()
	testCluster := testbed.API(t)
	scope := testCluster.Namespace(t)
	c := open(t, kube.Settings{Kubeconfig: testCluster.Kubeconfig, Namespace: scope})
	j := job(scope, "r")
	core := func(kind, name string) (metav1.TypeMeta, metav1.ObjectMeta) {
		return metav1.TypeMeta{APIVersion: "v1", Kind: kind}, metav1.ObjectMeta{Name: name, Namespace: scope, Labels: j.Labels}
	}
	owner, secret, service := &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	owner.TypeMeta, owner.ObjectMeta = core("ConfigMap", "r")
	secret.TypeMeta, secret.ObjectMeta = core("Secret", "r")
	service.TypeMeta, service.ObjectMeta = core("Service", "r-worker")
	for _, o := range []cluster.Object{owner, secret, service, j} {
		if owner.UID != "" {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "r", UID: owner.UID}})
		}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(t.Context(), ref(scope, "r")); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(waitTimeout); ; time.Sleep(50 * time.Millisecond) {
		left := testCluster.Run(t, "-n", scope, "get", "jobs,pods,services,configmaps,secrets", "-l", cluster.LabelRun+"=r", "-o", "name")
		if left == "" {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("left of the run:\n%s", left)
		}
	}
}
