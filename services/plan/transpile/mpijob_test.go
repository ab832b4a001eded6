package transpile_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/internal/mpijob"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// operatorSettings returns the settings of a platform whose cluster has the MPI
// operator.
func operatorSettings() transpile.Settings {
	s := settings
	s.MPIOperator = true
	return s
}

func mpiJobOf(t *testing.T, p transpile.Workload) *mpijob.Job {
	t.Helper()
	j, ok := p.Objects[len(p.Objects)-1].(*mpijob.Job)
	if !ok || j.Name != p.Job {
		t.Fatalf("the last object is %T, want the MPIJob %s", p.Objects[len(p.Objects)-1], p.Job)
	}
	return j
}

func TestWhereThereIsAnOperatorARunOfStrategyMPIIsAnMPIJob(t *testing.T) {
	p := objects(t, input(t, examples+"/mpi.toml"), operatorSettings())
	golden.Check(t, filepath.Join("testdata", "mpijob.yaml"), manifest(t, p.Objects))
	j := mpiJobOf(t, p)
	for _, o := range p.Objects {
		switch o.(type) {
		case *batchv1.Job, *corev1.Service:
			t.Errorf("%T %s is the operator's to make", o, o.GetName())
		}
	}
	if again, ok := j.DeepCopyObject().(*mpijob.Job); !ok || !cmp.Equal(j, again) {
		t.Error("its copy is another")
	}
}

func TestThePodsOfAnMPIJobAreThoseOfTheJobs(t *testing.T) {
	in := input(t, examples+"/mpi.toml")
	native, with := objects(t, in, settings), objects(t, in, operatorSettings())
	j := mpiJobOf(t, with)
	if native.Pods != with.Pods || native.Job != with.Job {
		t.Errorf("%d pods of %s, without the operator %d of %s", with.Pods, with.Job, native.Pods, native.Job)
	}
	for _, o := range native.Objects {
		job, ok := o.(*batchv1.Job)
		if !ok {
			continue
		}
		name := mpijob.Worker
		if job.Name == native.Job {
			name = mpijob.Launcher
		}
		want := job.Spec.Template
		// The operator sets these fields.
		want.Spec.RestartPolicy, want.Spec.Hostname, want.Spec.Subdomain = "", "", ""
		text := manifest(t, []cluster.Object{&batchv1.Job{Spec: batchv1.JobSpec{Template: want}}})
		text = bytes.ReplaceAll(text, []byte(native.Job+"-mpi.benchmarks"), []byte(native.Job+".benchmarks"))
		text = bytes.ReplaceAll(text, []byte("- "+native.Job+"-mpi\n"), []byte("- "+native.Job+"\n"))
		text = bytes.ReplaceAll(text, []byte("annotations['batch.kubernetes.io/job-completion-index']"), []byte("labels['training.kubeflow.org/replica-index']"))
		got := manifest(t, []cluster.Object{&batchv1.Job{Spec: batchv1.JobSpec{Template: j.Spec.ReplicaSpecs[name].Template}}})
		if diff := cmp.Diff(string(text), string(got)); diff != "" {
			t.Errorf("the pods of the %s (-without +with the operator):\n%s", name, diff)
		}
	}
}

func TestTheHostsOfAnMPIJobAreThoseThatTheOperatorMakes(t *testing.T) {
	for _, o := range objects(t, input(t, examples+"/mpi.toml"), operatorSettings()).Objects {
		c, ok := o.(*corev1.ConfigMap)
		if !ok || c.Data["hostfile"] == "" {
			continue
		}
		first, _, _ := strings.Cut(c.Data["hostfile"], " ")
		if want := "bai-" + runID + "-1-worker-0.bai-" + runID + "-1.benchmarks.svc"; first != want {
			t.Errorf("the first host is %s, want %s", first, want)
		}
		return
	}
	t.Error("there is no host file")
}

func TestTheOperatorMakesNothingOfOtherStrategies(t *testing.T) {
	for _, file := range []string{"/hello-world.toml", "/inference.toml"} {
		in := input(t, examples+file)
		if diff := cmp.Diff(string(manifest(t, objects(t, in, settings).Objects)), string(manifest(t, objects(t, in, operatorSettings()).Objects))); diff != "" {
			t.Errorf("%s (-without +with the operator):\n%s", file, diff)
		}
	}
}

func TestAnMPIJobWaitsInItsQueue(t *testing.T) {
	s := operatorSettings()
	s.Queue = "team"
	j := mpiJobOf(t, objects(t, input(t, examples+"/mpi.toml"), s))
	if j.Labels["kueue.x-k8s.io/queue-name"] != "team" || j.Spec.RunPolicy.Suspend == nil || !*j.Spec.RunPolicy.Suspend {
		t.Errorf("labels %v, suspended %v", j.Labels, j.Spec.RunPolicy.Suspend)
	}
}
