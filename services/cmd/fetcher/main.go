// Command fetcher downloads the data of each submitted run into the object store,
// itself or with Jobs of a cluster. With -transfer it does the task of such a Job.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/fetcher/download"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/git"
	"github.com/benchmark-ai/bai/services/internal/service"
)

// gcPercent is lower than the default, since most memory is buffers of transfers. If
// the buffers would make the heap larger than memoryLimit, garbage is collected even
// more often.
const (
	gcPercent   = 50
	memoryLimit = 36 << 20
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		debug.SetMemoryLimit(memoryLimit)
	}
	args, task := taskOf(os.Args[1:])
	if err := program.Run(context.Background(), "fetcher", args, settingsFor(task)); err != nil {
		fmt.Fprintf(os.Stderr, "fetcher: %v\n", err)
		os.Exit(1)
	}
}

// taskOf returns the task in the arguments, or "" without one, and the other arguments.
func taskOf(args []string) (others []string, task string) {
	i := slices.Index(args, download.TransferFlag)
	if i < 0 || i+1 >= len(args) {
		return args, ""
	}
	return slices.Concat(args[:i], args[i+2:]), args[i+1]
}

type settings struct {
	program.Settings

	Objects wiring.Objects
	Buckets bucket.Settings // buckets with data sets
	Fetcher dataset.Settings

	Jobs       Jobs          // download of data by Jobs
	Kubernetes kube.Settings // cluster of the Jobs; their namespace is the template's

	task string // key of the task; empty for the service
}

// settingsFor returns the settings of a task, or of the service if task is empty.
func settingsFor(task string) *settings {
	return &settings{Settings: program.Settings{NoBus: task != ""}, task: task}
}

// Jobs are the settings of download Jobs.
type Jobs struct {
	Template string `toml:"template"` // YAML file with the template of the Jobs; empty means that this process downloads the data
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.Objects.Validate(), s.Buckets.Validate(), s.Fetcher.Validate(), s.Kubernetes.Validate())
}

// Parts implements program.Service.
func (s *settings) Parts(ctx context.Context, c *program.Common) (map[string]service.Runnable, error) {
	objects, err := s.Objects.Open(ctx, c.Log)
	if err != nil {
		return nil, err
	}
	c.OnClose(objects.Close)
	buckets, err := bucket.New(s.Buckets)
	if err != nil {
		return nil, err
	}
	data := dataset.Deps{
		Store: c.Store, Objects: objects, Log: c.Log,
		Buckets: source.OpenBuckets(buckets), Repositories: source.OpenRepositories(git.Opener{}),
	}
	s.Fetcher.Sources.ObjectStoreURL = s.Objects.URL
	releaseFilePages() // pages that only the start needed
	if s.task != "" {
		return map[string]service.Runnable{
			"fetcher/task": func(ctx context.Context) error { return download.DoTask(ctx, s.Fetcher, data, s.task) },
		}, nil
	}
	deps := fetcher.Deps{Bus: c.Bus, Dataset: data}
	if s.Jobs.Template != "" {
		if err := s.openJobs(c, &deps); err != nil {
			return nil, err
		}
	}
	return fetcher.New(s.Fetcher, deps)
}

// imageVar is the variable with the image of this process, which its Jobs run if their
// template names none.
const imageVar = "BAI_FETCHER_IMAGE"

// openJobs opens the cluster for download Jobs.
func (s *settings) openJobs(c *program.Common, deps *fetcher.Deps) error {
	job, err := readJob(s.Jobs.Template, os.Getenv(imageVar))
	if err != nil {
		return fmt.Errorf("jobs.template %s: %w", s.Jobs.Template, err)
	}
	where := s.Kubernetes
	where.Namespace = job.Namespace // not the namespace of runs
	k, err := kube.New(where, c.Log)
	if err != nil {
		return err
	}
	c.OnClose(func() error { k.Close(); return nil })
	c.Checks["kubernetes"] = k.Ready
	deps.Jobs, deps.JobTemplate = k.Jobs(), job
	return nil
}

// readJob reads the template of the Jobs, whose container runs image if it names none.
func readJob(path, image string) (*batchv1.Job, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	job := &batchv1.Job{}
	if err := yaml.UnmarshalStrict(text, job); err != nil {
		return nil, err
	}
	for i, c := range job.Spec.Template.Spec.Containers {
		job.Spec.Template.Spec.Containers[i].Image = cmp.Or(c.Image, image)
	}
	return job, download.CheckJob(*job)
}
