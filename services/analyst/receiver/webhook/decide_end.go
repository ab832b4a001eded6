package webhook

import (
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
	"github.com/benchmark-ai/bai/services/internal/store"
)

type endBody struct {
	ID         string       `json:"id"`
	Kind       string       `json:"kind"` // run or set
	Headline   string       `json:"headline"`
	Name       string       `json:"name,omitempty"`
	Namespace  string       `json:"namespace"`
	Task       string       `json:"task,omitempty"`
	Owner      string       `json:"owner"`
	Outcome    string       `json:"outcome"` // succeeded, failed or canceled
	Reason     string       `json:"reason,omitempty"`
	Message    string       `json:"message,omitempty"`
	Submitted  time.Time    `json:"submitted"`
	Ended      time.Time    `json:"ended"`
	Runs       *runsBody    `json:"runs,omitempty"`
	Numbers    []numberBody `json:"numbers,omitempty"`
	More       int          `json:"more_numbers,omitempty"`
	Incomplete bool         `json:"incomplete,omitempty"`
}

type runsBody struct {
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Canceled  int `json:"canceled"`
}

type numberBody struct {
	Metric string            `json:"metric"`
	Unit   string            `json:"unit,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Median store.Float       `json:"median"`
}

func endOf(e notice.End) endBody {
	b := endBody{
		ID: e.ID, Kind: "run", Headline: message.EndHeadline(e), Name: e.Name, Namespace: e.Namespace, Task: e.Task, Owner: e.Owner,
		Outcome: string(e.Outcome), Reason: string(e.Reason), Message: e.Message, Submitted: e.Submitted.UTC(),
		Ended: e.Ended.UTC(), More: e.More,
		Incomplete: e.Incomplete,
	}
	if e.Set {
		b.Kind, b.Runs = "set", &runsBody{Succeeded: e.Runs.Succeeded, Failed: e.Runs.Failed, Canceled: e.Runs.Canceled}
	}
	for _, n := range e.Numbers {
		b.Numbers = append(b.Numbers, numberBody{Metric: n.Metric, Unit: n.Unit, Labels: n.Labels, Median: n.Value})
	}
	return b
}
