package executor_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/crashtest"
	"github.com/benchmark-ai/bai/services/plan"
)

// launchGang launches a run with objects of every kind, first in a process that may
// crash, and then in one that does not.
func launchGang(t *testing.T, settings executor.Settings, p *crashtest.Process) *fixture {
	t.Helper()
	w := newFixture(t)
	w.runDuration = time.Hour
	run := fetched("r1")
	run.Descriptor = strings.Replace(descriptor, "cpus = 1", "cpus = 1\nstrategy = \"mpi\"\n[hardware.distributed]\nnum_instances = 2", 1)
	stop := w.startIn(p, settings)
	w.publish(run)
	time.Sleep(time.Second)
	stop()
	stop = w.start(settings)
	time.Sleep(10 * time.Second)
	stop()
	return w
}

func TestInKubernetesOneObjectOwnsAllOthersOfItsRun(t *testing.T) {
	const owner = "ConfigMap bai-r1-1"
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "bai-r1-1", UID: "uid-bai-r1-1-1"}}
	for p := range crashtest.Points() {
		t.Run(p.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := launchGang(t, executor.Settings{Engine: plan.EngineKubernetes}, p)
				wantOwned(t, w, owner, want)
			})
		})
	}
}

func wantOwned(t *testing.T, w *fixture, owner string, want []metav1.OwnerReference) {
	t.Helper()
	left := w.cluster.objectKeys()
	if len(left) < 8 {
		t.Errorf("only %q was created", left)
	}
	for _, key := range left {
		owners := w.cluster.object(key).GetOwnerReferences()
		if key == owner && owners != nil || key != owner && !cmp.Equal(want, owners) {
			t.Errorf("%s is owned by %v", key, owners)
		}
	}
}

func TestOnTheLocalClusterNothingIsOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := launchGang(t, executor.Settings{}, crashtest.New(0, false))
		for _, key := range w.cluster.objectKeys() {
			if owners := w.cluster.object(key).GetOwnerReferences(); owners != nil {
				t.Errorf("%s is owned by %v", key, owners)
			}
		}
	})
}
