package kube

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/benchmark-ai/bai/services/internal/mpijob"
)

// ValidateOperator returns an error if runs have MPIJobs and the settings lack their kind.
func (s Settings) ValidateOperator(mpi bool) error {
	if mpi && !slices.Contains(s.Kinds, mpijob.Resource) {
		return fmt.Errorf("executor.pods.mpi_operator: kubernetes.kinds does not name %q, so that nobody would see what becomes of an MPIJob", mpijob.Resource)
	}
	return nil
}

// jobFromMPIJob returns the Job that an MPIJob stands for.
func jobFromMPIJob(o *unstructured.Unstructured) (*batchv1.Job, error) {
	var j mpijob.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &j); err != nil {
		return nil, fmt.Errorf("read MPIJob %s: %w", o.GetName(), err)
	}
	return j.AsJob(), nil
}
