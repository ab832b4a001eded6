// Package clustertest is the contract of package cluster as a suite that every
// driver passes.
package clustertest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Cluster is a driver.
type Cluster interface {
	cluster.Creator
	cluster.Ender
	cluster.Observer
	cluster.Occupier
}

// Suite configures the tests. They use runs of their own, so that they may share a cluster with others.
type Suite struct {
	// New returns the cluster to test; it is closed at the end of the test.
	New   func(t *testing.T) Cluster
	Scope string // an existing Kubernetes namespace
	Image string // that has sh, sleep and the like, if containers have images
	// NoNamespaces means that the cluster mounts only the platform's own volumes, and refuses pods that need others.
	NoNamespaces bool
	// NoPrograms means that pods run no programs: the benchmark of a Job ends at once if its script is "exit CODE", and never by itself
	// with any other script.
	NoPrograms bool
	// OneJob means that an attempt has one Job, and another one is refused.
	OneJob bool
	// Timeout is how long a small pod may take from its creation to its end; zero means 20 s.
	Timeout time.Duration
}

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	t.Helper()
	tests := objectTests()
	if !s.NoPrograms {
		maps.Copy(tests, programTests())
	}
	if s.OneJob {
		maps.DeleteFunc(tests, func(name string, _ func(*fixture)) bool { return severalJobs(name) })
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newFixture(t, s))
		})
	}
}

// severalJobs reports whether a test needs an attempt with several Jobs.
func severalJobs(name string) bool {
	return name == theRolesTest || name == theStopTest
}

const (
	theRolesTest = "the jobs of other roles are seen beside the one that is asked for"
	theStopTest  = "stopping ends what runs, and what has ended stays to be seen"
)

// objectTests are about objects and how they end.
func objectTests() map[string]func(*fixture) {
	return map[string]func(*fixture){
		"an object is created once":                                createsOnce,
		"a job that ends well is complete":                         completes,
		"a job that says it failed has failed, with its exit code": fails,
		theRolesTest: roles,
		theStopTest:  stops,
		"deleting ends what runs and takes all objects of the attempt":      deletes,
		"deleting what is not there is no error":                            deletesNothing,
		"a job of another UID is not the one that is looked for":            otherUID,
		"watching hands over what is there, each change, and what has gone": watches,
		"two watchers each see everything":                                  watchesTwice,
		"an annotation of a pod is seen, and that of another pod is not":    annotates,
	}
}

// programTests are about the programs that pods run.
func programTests() map[string]func(*fixture) {
	return map[string]func(*fixture){
		"an object that is not what it should be is refused, by name":            refuses,
		"a job that a signal ended has failed, with 128 and the signal":          signaled,
		"a job whose command does not exist has failed to start":                 notFound,
		"a job whose init container failed has failed, and the rest did not run": initFails,
		"a job over its deadline has failed, and says so":                        deadline,
		"init containers run one after the other, then the main ones":            inOrder,
		"a sidecar begins before the main container and ends after it":           sidecar,
		"sidecars end after the main container, the last one first":              sidecarsEndBackwards,
		"sidecars end by a signal after an init container has failed":            sidecarsOutliveAFailure,
		"a sidecar that crashes is started again":                                crash,
		"containers have the environment that they are written with":             environment,
		"containers have the files that they are written with":                   files,
		"each pod of an indexed job has its number":                              numbers,
		"a pod that fails ends those beside it in its indexed job":               oneFails,
		"the pods of a run find each other by name":                              named,
		"a program in a pod sees an annotation of the pod soon":                  seesAnnotations,
		"a pod is given its grace when it is deleted":                            grace,
		"a pod occupies its node":                                                occupies,
		"a pod that has ended occupies no node":                                  endedOccupiesNothing,
	}
}

// fixture is one test's run on a cluster.
type fixture struct {
	*testing.T

	suite   Suite
	cluster Cluster
	run     string
}

func newFixture(t *testing.T, s Suite) *fixture {
	t.Helper()
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	if s.Timeout == 0 {
		s.Timeout = 20 * time.Second
	}
	bn := &fixture{T: t, suite: s, cluster: s.New(t), run: "t" + hex.EncodeToString(b[:])}
	return bn
}

func (b *fixture) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: b.run + name, Namespace: b.suite.Scope, Labels: map[string]string{
		cluster.LabelRun: b.run, cluster.LabelAttempt: "1", cluster.LabelRole: "benchmark",
	}}
}

func (b *fixture) ref() cluster.Ref {
	return cluster.Ref{Run: b.run, Attempt: 1, Scope: b.suite.Scope, Job: b.run}
}

// sh returns a container that runs a shell script. $D is the path of the platform's own volume.
func (b *fixture) sh(name, script string) corev1.Container {
	return corev1.Container{
		Name: name, Image: b.suite.Image,
		Command: []string{"sh", "-c", "D=${" + pod.EnvDir + ":-" + pod.Dir + "}; " + script},
	}
}

// job returns a Job whose benchmark runs a shell script.
func (b *fixture) job(script string) *batchv1.Job {
	zero, second := int32(0), int64(1)
	meta := b.meta("")
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: meta,
		Spec: batchv1.JobSpec{BackoffLimit: &zero, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &second,
				Containers: []corev1.Container{b.sh(cluster.ContainerBenchmark, script)},
			},
		}},
	}
}

func metaOf(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func (b *fixture) configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: b.meta("-config"), Data: data}
}

func (b *fixture) secret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: b.meta("-secret"), Data: data}
}

// create creates objects, which are deleted with the test.
func (b *fixture) create(objects ...cluster.Object) {
	b.Helper()
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), b.suite.Timeout)
		defer cancel()
		if err := b.cluster.Delete(ctx, b.ref()); err != nil {
			b.Errorf("delete: %v", err)
		}
		for !errors.Is(ignore(b.cluster.Observe(ctx, b.ref())), cluster.ErrNotFound) {
			if !sleep(ctx) {
				b.Error("the job is not gone after it was deleted")
				return
			}
		}
	})
	for _, o := range objects {
		if err := b.cluster.Create(b.Context(), o); err != nil {
			b.Fatalf("create %s: %v", o.GetName(), err)
		}
	}
}

func ignore(_ cluster.Snapshot, err error) error { return err }

// sleep waits a moment, and reports whether ctx still has time.
func sleep(ctx context.Context) bool {
	t := time.NewTimer(3 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// await observes until ok returns true, and returns the snapshot.
func (b *fixture) await(what string, ok func(cluster.Snapshot) bool) cluster.Snapshot {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), b.suite.Timeout)
	defer cancel()
	for {
		seen, err := b.cluster.Observe(ctx, b.ref())
		if err == nil && ok(seen) {
			return seen
		}
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			b.Fatalf("observe: %v", err)
		}
		if !sleep(ctx) {
			b.Fatalf("%s: not seen in time; the last seen was %s (%v)", what, describe(seen), err)
		}
	}
}

// awaitEnd awaits the end of the job.
func (b *fixture) awaitEnd() cluster.Snapshot {
	b.Helper()
	return b.await("the end of the job", hasEnded)
}

// awaitGone waits until no object of the job exists.
func (b *fixture) awaitGone() {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), b.suite.Timeout)
	defer cancel()
	for {
		seen, err := b.cluster.Observe(ctx, b.ref())
		if errors.Is(err, cluster.ErrNotFound) {
			return
		}
		if !sleep(ctx) {
			b.Fatalf("not gone in time; the last seen was %s (%v)", describe(seen), err)
		}
	}
}
