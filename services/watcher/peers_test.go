package watcher_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher"
)

// peerOf returns a pod of a run of two that waits for addresses, with an address unless that is empty.
func peerOf(name, address string) corev1.Pod {
	p := newPod(scheduled(), runs(cluster.ContainerHosts, 3))
	p.Status.InitContainerStatuses[0].State.Running.StartedAt = metav1.Now()
	p.Name, p.Spec.Hostname, p.Annotations = name, name, map[string]string{cluster.AnnotationPods: "2"}
	if address != "" {
		p.Status.PodIPs = []corev1.PodIP{{IP: address}}
	}
	return p
}

func TestPodsGetTheAddressesOfAllOnceAllHaveOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		l := launchedRun("r1", 0)
		p := w.start(watcher.Settings{})
		p.deliver(l)
		w.cluster.set(refOf(l), cluster.Snapshot{Job: job(), Pods: pods(peerOf("a", "10.1.0.1"), peerOf("b", ""))})
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string(nil), w.cluster.annotated()); diff != "" {
			t.Errorf("before all have one (-want +got):\n%s", diff)
		}
		w.cluster.set(refOf(l), cluster.Snapshot{Job: job(), Pods: pods(peerOf("a", "10.1.0.1"), peerOf("b", "10.1.0.2"))})
		time.Sleep(time.Second)
		p.stop()
		const value = "=a 10.1.0.1\nb 10.1.0.2\n"
		if diff := cmp.Diff([]string{"a" + value, "b" + value}, w.cluster.annotated()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestAddressesThatCouldNotBeSharedAreSharedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.refuseAnnotations(errors.New("forbidden"))
		l := launchedRun("r1", 0)
		p := w.start(watcher.Settings{})
		p.deliver(l)
		w.cluster.set(refOf(l), cluster.Snapshot{Job: job(), Pods: pods(peerOf("a", "10.1.0.1"), peerOf("b", "fd00::2"))})
		time.Sleep(time.Minute)
		want := []string{"bai.status attempt 1: pending: waiting until its 2 pods know each other's addresses"}
		if diff := cmp.Diff(want, w.publishedLines()); diff != "" {
			t.Errorf("the run says (-want +got):\n%s", diff)
		}
		w.cluster.refuseAnnotations(nil)
		time.Sleep(time.Minute)
		p.stop()
		const value = "=a 10.1.0.1\nb fd00::2\n"
		if diff := cmp.Diff([]string{"a" + value, "b" + value}, w.cluster.annotated()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestARunWhosePodsNeverGetAddressesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.cluster.refuseAnnotations(errors.New("forbidden"))
		l := launchedRun("r1", 0)
		p := w.start(watcher.Settings{PendingDeadline: time.Minute})
		p.deliver(l)
		w.cluster.set(refOf(l), cluster.Snapshot{Job: job(), Pods: pods(peerOf("a", "10.1.0.1"), peerOf("b", "fd00::2"))})
		time.Sleep(time.Hour)
		p.stop()
		want := []string{"bai.finished attempt 1: failed platform PendingTooLong: waiting until its 2 pods know each other's addresses; timed out after 1m0s"}
		if diff := cmp.Diff(want, w.endLines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
