package mlflow

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
)

const (
	maxAnswer = 64 << 20 // bytes of an answer
	pageSize  = 10       // runs of an answer, which has all that MLflow knows of each
)

// The codes of answers.
const (
	codeMissing = "RESOURCE_DOES_NOT_EXIST"
	codeExists  = "RESOURCE_ALREADY_EXISTS"
)

// api is MLflow's REST API.
type api struct{ client *post.Client }

// call sends a request, and reads the answer into out, unless it is nil.
func (a api) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("write a request for MLflow: %w", err)
		}
	}
	status, answer, err := a.client.Call(ctx, method, "/api/2.0/mlflow/"+path, body, maxAnswer)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		var fault struct {
			Code    string `json:"error_code"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(answer, &fault) // a proxy's answer has no code
		return &answerError{Status: status, Code: fault.Code, Message: fault.Message}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return &refusedError{"what answers is not MLflow"}
	}
	return nil
}

// experiment returns the ID of an experiment, and reports whether it is deleted.
func (a api) experiment(ctx context.Context, name string) (id string, deleted bool, err error) {
	var out struct {
		Experiment struct {
			ID    string `json:"experiment_id"`
			Stage string `json:"lifecycle_stage"`
		} `json:"experiment"`
	}
	err = a.call(ctx, http.MethodGet, "experiments/get-by-name?experiment_name="+url.QueryEscape(name), nil, &out)
	if err == nil && out.Experiment.ID == "" {
		err = &refusedError{"what answers is not MLflow"}
	}
	return out.Experiment.ID, out.Experiment.Stage == "deleted", err
}

// createExperiment makes an experiment. The error has codeExists if there is one.
func (a api) createExperiment(ctx context.Context, name string) error {
	return a.call(ctx, http.MethodPost, "experiments/create", map[string]string{"name": name}, nil)
}

// find returns the runs of MLflow of a run of a destination.
func (a api) find(ctx context.Context, experiment, run, destination string) ([]record, error) {
	in := map[string]any{
		"experiment_ids": []string{experiment}, "max_results": pageSize, "run_view_type": "ACTIVE_ONLY",
		"filter": fmt.Sprintf("tags.`%s` = '%s' and tags.`%s` = '%s'", tagRun, run, tagDestination, destination),
	}
	var all []record
	for {
		var out struct {
			Runs []struct {
				Info record `json:"info"`
			} `json:"runs"`
			Next string `json:"next_page_token"`
		}
		if err := a.call(ctx, http.MethodPost, "runs/search", in, &out); err != nil {
			return nil, err
		}
		for _, r := range out.Runs {
			all = append(all, r.Info)
		}
		if out.Next == "" {
			return all, nil
		}
		in["page_token"] = out.Next
	}
}

// create makes a run of MLflow.
func (a api) create(ctx context.Context, experiment string, d deliver.Delivery, tags []pair) error {
	in := map[string]any{"experiment_id": experiment, "tags": tags, "start_time": max(0, d.About.Started.UnixMilli())}
	if d.About.Name != "" {
		in["run_name"] = valueOf(d.About.Name, maxKey)
	}
	return a.call(ctx, http.MethodPost, "runs/create", in, nil)
}

// end stores how a run of MLflow has ended.
func (a api) end(ctx context.Context, run, status string, at time.Time) error {
	in := map[string]any{"run_id": run, "status": status, "end_time": max(0, at.UnixMilli())}
	return a.call(ctx, http.MethodPost, "runs/update", in, nil)
}

// remove deletes a run of MLflow.
func (a api) remove(ctx context.Context, run string) error {
	return a.call(ctx, http.MethodPost, "runs/delete", map[string]string{"run_id": run}, nil)
}

// batch is the body of a request that adds to a run.
type batch struct {
	Run     string   `json:"run_id"`
	Metrics []metric `json:"metrics,omitempty"`
	Params  []pair   `json:"params,omitempty"`
	Tags    []pair   `json:"tags,omitempty"`
}

// batches adds to a run, in requests that the server takes.
type batches struct {
	api  api
	run  string
	next batch
	size int // bytes of next, at most
}

// room sends what there is if so many bytes more, or one metric, param or tag more, are too many.
func (b *batches) room(ctx context.Context, size int) error {
	n := &b.next
	if b.size+size > maxBody || len(n.Params) == maxPairs || len(n.Tags) == maxPairs ||
		len(n.Metrics)+len(n.Params)+len(n.Tags) == maxMetrics {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.size += size
	return nil
}

func (b *batches) metrics(ctx context.Context, all []metric) error {
	for _, m := range all {
		if err := b.room(ctx, len(m.Key)+150); err != nil {
			return err
		}
		b.next.Metrics = append(b.next.Metrics, m)
	}
	return nil
}

func (b *batches) params(ctx context.Context, all []pair) error {
	for _, p := range all {
		if err := b.room(ctx, p.size()); err != nil {
			return err
		}
		b.next.Params = append(b.next.Params, p)
	}
	return nil
}

func (b *batches) tags(ctx context.Context, all []pair) error {
	for _, p := range all {
		if err := b.room(ctx, p.size()); err != nil {
			return err
		}
		b.next.Tags = append(b.next.Tags, p)
	}
	return nil
}

// size is at least how many bytes the pair has in a request: JSON writes a byte as at most 6.
func (p pair) size() int { return 30 + len(p.Key) + 6*len(p.Value) }

// flush sends what there is.
func (b *batches) flush(ctx context.Context) error {
	send := b.next
	b.next, b.size = batch{}, 0
	if len(send.Metrics)+len(send.Params)+len(send.Tags) == 0 {
		return nil
	}
	send.Run = b.run
	return b.api.call(ctx, http.MethodPost, "runs/log-batch", send, nil)
}
