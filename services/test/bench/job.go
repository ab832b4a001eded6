package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kubecluster"
)

// submitToJob measures, on an API server with nothing behind it, from a call to
// the creation of the Job that it leads to, as the audit log has it: `baictl
// submit`, and `kubectl create` of the same Job.
func submitToJob(ctx context.Context, b bench) (results []result, err error) {
	info, stop, err := testbed.Boot(ctx, kubecluster.Settings{Name: fmt.Sprintf("bench-%d", os.Getpid()), NoControllers: true}, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	j := &jobs{info: info}
	err = withPlatform(ctx, b, func(p *platform) error {
		return j.measure(ctx, b, p)
	}, "--kubeconfig", info.Kubeconfig, "--kube-namespace", "default", "--pod-image", "bai-pod:bench", "--slots", "200")
	ours, theirs := median(j.submitted), median(j.created)
	return []result{
		atMost("SubmitToJob", ours-theirs, "ms-more", 150,
			fmt.Sprintf("baictl submit: %.1f ms, kubectl create of the same Job: %.1f ms", ours, theirs)),
		reported("SubmitToJobByCall", median(j.called), "ms", "SubmitRun by gRPC, without the process of a client"),
	}, err
}

// jobs takes times, in ms.
type jobs struct {
	info                       kubecluster.Info
	dir                        string
	called, submitted, created []float64
}

func (j *jobs) measure(ctx context.Context, b bench, p *platform) error {
	const rounds = 40
	j.dir = filepath.Dir(p.dir)
	file := filepath.Join(j.dir, "run.toml")
	if err := os.WriteFile(file, []byte(noop("true")), 0o600); err != nil {
		return err
	}
	baictl := []string{filepath.Join(b.bin, "baictl"), "--server", p.addr, "submit", file, "-o", "name"}
	first, err := j.submit(ctx, baictl)
	if err != nil {
		return err
	}
	for n := range rounds {
		if err := j.round(ctx, p, baictl, first, n); err != nil {
			return err
		}
	}
	return nil
}

// round takes each of the times once.
func (j *jobs) round(ctx context.Context, p *platform, baictl []string, first string, n int) error {
	copied, file, err := j.copied(ctx, first, n)
	if err != nil {
		return err
	}
	for _, way := range []struct {
		into *[]float64
		call func() (string, error)
	}{
		{&j.called, func() (string, error) {
			run, err := p.submit(ctx, noop("true"))
			return jobOf(run), err
		}},
		{&j.submitted, func() (string, error) { return j.submit(ctx, baictl) }},
		{&j.created, func() (string, error) {
			_, err := output(ctx, j.info.Kubectl, "--kubeconfig", j.info.Kubeconfig, "create", "-f", file)
			return copied, err
		}},
	} {
		begin := time.Now()
		name, err := way.call()
		if err != nil {
			return err
		}
		at, err := j.info.Created(ctx, "jobs", name)
		if err != nil {
			return err
		}
		*way.into = append(*way.into, ms(at.Sub(begin)))
	}
	return nil
}

func (j *jobs) submit(ctx context.Context, baictl []string) (string, error) {
	out, err := output(ctx, baictl[0], baictl[1:]...)
	return jobOf(regexp.MustCompile(`\b\w{26}\b`).FindString(out)), err
}

func jobOf(run string) string { return "bai-" + run + "-1" }

// copied writes the platform's Job once more, of another name.
func (j *jobs) copied(ctx context.Context, first string, n int) (name, file string, err error) {
	if _, err := j.info.Created(ctx, "jobs", first); err != nil {
		return "", "", err
	}
	text, err := output(ctx, j.info.Kubectl, "--kubeconfig", j.info.Kubeconfig, "get", "job", first, "-o", "json")
	if err != nil {
		return "", "", err
	}
	var job batchv1.Job
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return "", "", err
	}
	name = fmt.Sprintf("copy-%d", n)
	job.ObjectMeta = metav1.ObjectMeta{Name: name, Annotations: job.Annotations}
	job.Spec.Selector, job.Spec.Template.Labels, job.Status = nil, nil, batchv1.JobStatus{}
	again, err := json.Marshal(job)
	if err != nil {
		return "", "", err
	}
	file = filepath.Join(j.dir, name+".json")
	return name, file, os.WriteFile(file, again, 0o600)
}

func output(ctx context.Context, program string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output() //nolint:gosec // ours
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s: %w: %s", program, err, failed.Stderr)
	}
	return string(out), err
}
