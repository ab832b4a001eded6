package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// launches are times to the first instruction of a benchmark in its pod, in ms.
type launches struct {
	run       []float64 // from the call of SubmitRun
	submitted []float64 // of it, to the creation of the Job
	shape     []float64 // from the creation of a Job of the same shape, all of whose programs are empty
	plain     []float64 // from the creation of a plain Job of the same image
}

// launchTax measures, on two nodes, the time of a run without data from its submission to
// its first instruction, over a Job of the same shape (init containers, volumes, sidecar)
// with empty programs.
func launchTax(ctx context.Context, b bench) ([]result, error) {
	const rounds = 20
	var l launches
	err := withNodes(ctx, b, func(n *nodes) error {
		shape, err := n.shapeOfRun(ctx)
		if err != nil {
			return err
		}
		for range rounds {
			if err := l.round(ctx, n, shape); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	run, submitted, shape, plain := median(l.run), median(l.submitted), median(l.shape), median(l.plain)
	return []result{
		atMost("LaunchTax", run-shape, "ms-more", 500,
			fmt.Sprintf("submit to first instruction %.0f ms, the same shape with empty programs %.0f ms", run, shape)),
		reported("LaunchTaxOfSubmit", submitted, "ms", "part of it: from the call to the Job"),
		reported("LaunchTaxOfPrograms", run-submitted-shape, "ms-more", "part of it: bai-pod in init containers, sidecar and wrapper"),
		reported("LaunchTaxOfShape", shape-plain, "ms-more",
			fmt.Sprintf("beside it: the kubelet's time for init containers, volumes and sidecar; a plain Job takes %.0f ms", plain)),
	}, nil
}

// round takes each of the times once.
func (l *launches) round(ctx context.Context, n *nodes, shape *batchv1.Job) error {
	total, toJob, err := n.runToFirst(ctx)
	if err != nil {
		return err
	}
	l.run, l.submitted = append(l.run, total), append(l.submitted, toJob)
	for _, way := range []struct {
		into *[]float64
		job  *batchv1.Job
	}{{&l.shape, shape.DeepCopy()}, {&l.plain, plainJob("-work", "now")}} {
		created, text, err := n.perform(ctx, way.job)
		if err != nil {
			return err
		}
		at, err := nowIn(text)
		if err != nil {
			return err
		}
		*way.into = append(*way.into, float64(at-created.UnixNano())/1e6)
	}
	return nil
}

// runToFirst submits a run, and returns the times in ms from the call to the
// first instruction, and from the call to the creation of the Job.
func (n *nodes) runToFirst(ctx context.Context) (total, toJob float64, err error) {
	begin := time.Now()
	run, err := n.platform.submit(ctx, podDescriptor("/work -work now"))
	if err != nil {
		return 0, 0, err
	}
	if err := n.platform.awaitComplete(ctx, run); err != nil {
		return 0, 0, err
	}
	lines, err := n.platform.lines(ctx, run)
	if err != nil {
		return 0, 0, err
	}
	at, err := nowIn(strings.Join(lines, "\n"))
	if err != nil {
		return 0, 0, err
	}
	created, err := n.info.Created(ctx, "jobs", jobOf(run))
	return float64(at-begin.UnixNano()) / 1e6, ms(created.Sub(begin)), err
}

// shapeOfRun returns a Job with the init containers, volumes and sidecar that a
// run has, in which each program is one that does nothing.
func (n *nodes) shapeOfRun(ctx context.Context) (*batchv1.Job, error) {
	run, err := n.platform.submit(ctx, podDescriptor("/work -work now"))
	if err != nil {
		return nil, err
	}
	if _, err := n.info.Created(ctx, "jobs", jobOf(run)); err != nil {
		return nil, err
	}
	text, err := n.kubectl(ctx, "get", "job", jobOf(run), "-o", "json")
	if err != nil {
		return nil, err
	}
	var job batchv1.Job
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return nil, err
	}
	pod := job.Spec.Template.Spec
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		empty(c, "nothing")
		if c.RestartPolicy != nil {
			empty(c, "wait")
		}
	}
	for i := range pod.Containers {
		empty(&pod.Containers[i], "now")
	}
	spec := batchv1.JobSpec{BackoffLimit: job.Spec.BackoffLimit, Template: corev1.PodTemplateSpec{Spec: pod}}
	return &batchv1.Job{Spec: spec}, n.platform.awaitComplete(ctx, run)
}

// empty has a container run this program, which does next to nothing.
func empty(c *corev1.Container, work string) {
	c.Image, c.Command, c.Args = workImage, []string{"/work", "-work", work}, nil
	c.StartupProbe, c.ReadinessProbe, c.LivenessProbe, c.Lifecycle = nil, nil, nil, nil
}
