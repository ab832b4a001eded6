package alertmanager

import (
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
)

// keep is how long Alertmanager keeps an alert that is not sent again: several times Repeat.
const keep = 5 * Repeat

// alert is one alert of API v2.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// alertsOf returns the alerts of a notice, one for each incident. The labels of an incident never change: Alertmanager knows an alert by
// them. It passes labels and annotations on to chats as they are, so texts of users are made inert in both.
func alertsOf(n notice.Notice, now time.Time) []alert {
	alerts := []alert{}
	for _, i := range n.Incidents {
		a := alert{
			Labels: labelsOf(n, i), Annotations: annotationsOf(n, i), StartsAt: i.Opened.UTC(), EndsAt: now.UTC(), GeneratorURL: n.URL,
		}
		if a.StartsAt.IsZero() || a.StartsAt.After(a.EndsAt) {
			a.StartsAt = a.EndsAt
		}
		switch {
		case n.Test:
			a.EndsAt = now.UTC().Add(Repeat)
		case n.Became == incident.Firing && !i.State.Over():
			a.EndsAt = now.UTC().Add(keep)
		}
		alerts = append(alerts, a)
	}
	return alerts
}

func labelsOf(n notice.Notice, i incident.Incident) map[string]string {
	labels := map[string]string{
		"alertname": "BenchmarkAI", "incident": i.ID, "namespace": n.Namespace, "task": i.Rule.Task, "metric": i.Rule.Metric,
		"when": string(i.Rule.When), "receiver": n.Receiver,
	}
	if i.Rule.Namespace != "" {
		labels["namespace"] = i.Rule.Namespace
	}
	if n.Test {
		labels["test"] = "true"
	}
	for name, value := range labels {
		if labels[name] = message.Inert(value); labels[name] == "" {
			delete(labels, name)
		}
	}
	return labels
}

func annotationsOf(n notice.Notice, i incident.Incident) map[string]string {
	n.Incidents, n.Again = []incident.Incident{i}, false // an alert that is sent again is the same one
	m := message.Of(n)
	lines := m.Remarks
	for _, l := range m.Entries[0].Lines {
		lines = append(lines, message.Inert(l))
	}
	text := map[string]string{"summary": message.Inert(m.Entries[0].Headline), "description": strings.Join(lines, "\n")}
	if i.Cause != "" {
		text["cause"] = message.Clean(string(i.Cause))
	}
	if n.More > 0 {
		text["more"] = strconv.Itoa(n.More)
	}
	return text
}
