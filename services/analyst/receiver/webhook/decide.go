package webhook

import (
	"math"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// body is what is posted for a notice. Programs of others read it: fields are only added.
type body struct {
	ID        string         `json:"id"`
	Namespace string         `json:"namespace"`
	Receiver  string         `json:"receiver"`
	State     string         `json:"state"` // firing, resolved, dismissed or ended
	Title     string         `json:"title"`
	Test      bool           `json:"test,omitempty"`
	Again     bool           `json:"again,omitempty"`
	Group     string         `json:"group,omitempty"`
	First     string         `json:"first,omitempty"`
	Digest    []string       `json:"digest,omitempty"`
	Made      time.Time      `json:"made"`
	URL       string         `json:"url,omitempty"`
	Incidents []incidentBody `json:"incidents"`
	Ends      []endBody      `json:"ends,omitempty"` // of runs and sets
	More      int            `json:"more,omitempty"`
}

type incidentBody struct {
	ID        string            `json:"id"`
	State     string            `json:"state"`
	Headline  string            `json:"headline"`
	Task      string            `json:"task"`
	Metric    string            `json:"metric,omitempty"`
	Unit      string            `json:"unit,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	When      string            `json:"when"`
	Kind      string            `json:"kind,omitempty"`
	Direction string            `json:"direction,omitempty"`
	Before    store.Float       `json:"before"`
	After     store.Float       `json:"after"`
	Magnitude *store.Float      `json:"magnitude,omitempty"`
	Interval  []store.Float     `json:"interval,omitempty"`
	P         *store.Float      `json:"p,omitempty"`
	Cause     string            `json:"cause,omitempty"`
	Verdict   string            `json:"verdict,omitempty"` // of the runs that were made to confirm it
	Reasons   []string          `json:"reasons,omitempty"`
	Message   string            `json:"message,omitempty"`
	LastGood  *point            `json:"last_good,omitempty"`
	FirstBad  *point            `json:"first_bad,omitempty"`
	Opened    time.Time         `json:"opened"`
}

type point struct {
	Run     string      `json:"run"`
	Time    time.Time   `json:"time"`
	Version string      `json:"version,omitempty"`
	Value   store.Float `json:"value"`
}

func bodyOf(n notice.Notice) body {
	b := body{
		ID: n.ID, Namespace: n.Namespace, Receiver: n.Receiver, State: string(n.Became), Title: message.Of(n).Title,
		Test: n.Test, Again: n.Again,
		Group: n.Group, First: n.First, Digest: n.Digest, Made: n.Made.UTC(), URL: n.URL, Incidents: []incidentBody{}, More: n.More,
	}
	for _, i := range n.Incidents {
		b.Incidents = append(b.Incidents, incidentOf(i))
	}
	for _, e := range n.Ends {
		b.Ends = append(b.Ends, endOf(e))
	}
	return b
}

func incidentOf(i incident.Incident) incidentBody {
	b := incidentBody{
		ID: i.ID, State: string(i.State), Headline: message.Headline(i), Task: i.Rule.Task, Metric: i.Rule.Metric, Unit: i.Unit,
		Labels: i.Series.Labels, When: string(i.Rule.When), Kind: i.Kind, Direction: i.Direction, Before: store.Float(i.Before),
		After: store.Float(i.After), Magnitude: i.Magnitude, Cause: string(i.Cause), Reasons: i.Reasons, Message: i.Message,
		LastGood: pointOf(i.LastGood), FirstBad: pointOf(i.FirstBad), Opened: i.Opened.UTC(),
	}
	if i.Confirmation != nil {
		b.Verdict = string(i.Confirmation.Verdict)
	}
	if i.Magnitude != nil {
		b.Interval = i.Interval[:]
		if !math.IsNaN(float64(i.P)) {
			b.P = &i.P
		}
	}
	return b
}

func pointOf(p *incident.Point) *point {
	if p == nil {
		return nil
	}
	return &point{Run: p.Run, Time: p.Time.UTC(), Version: p.Version, Value: store.Float(p.Value)}
}
