package elastic

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// incidentStore implements store.IncidentIndex.
type incidentStore struct {
	client *client.Client
	schema *schema.Schema
}

// incidentDoc is an incident as people search it.
type incidentDoc struct {
	Timestamp string            `json:"@timestamp"`
	Incident  incidentFields    `json:"incident"`
	Run       incidentRun       `json:"run"`
	Good      incidentGood      `json:"good,omitzero"`
	Metric    resultMetric      `json:"metric,omitzero"`
	Labels    map[string]string `json:"labels,omitempty"`
	Value     map[string]any    `json:"value,omitempty"`
}

type incidentFields struct {
	ID        string   `json:"id"`
	State     string   `json:"state"`
	Over      bool     `json:"over"`
	Silent    bool     `json:"silent"`
	When      string   `json:"when"`
	Cause     string   `json:"cause,omitempty"`
	Kind      string   `json:"kind,omitempty"`
	Direction string   `json:"direction,omitempty"`
	Group     string   `json:"group,omitempty"`
	Message   string   `json:"message"`
	Notify    []string `json:"notify,omitempty"`
	AckedBy   string   `json:"acked_by,omitempty"`
	Since     string   `json:"since"`
	Updated   string   `json:"updated"`
	Lasted    float64  `json:"lasted,omitempty"` // seconds
}

type incidentRun struct {
	ID        string `json:"id,omitempty"`
	Namespace string `json:"namespace"`
	Task      string `json:"task"`
	Cell      string `json:"cell,omitempty"`
	Version   string `json:"version,omitempty"`
}

type incidentGood struct {
	Run     string `json:"run,omitempty"`
	Version string `json:"version,omitempty"`
}

func newIncidentDoc(r store.IncidentRecord) incidentDoc {
	d := incidentDoc{
		Timestamp: names.Timestamp(names.Nanos(r.Opened)),
		Incident: incidentFields{
			ID: names.Term(r.ID), State: names.Term(r.State), Over: r.Over, Silent: r.Silent, When: names.Term(r.When),
			Cause: names.Term(r.Cause), Kind: names.Term(r.Kind),
			Direction: names.Term(r.Direction), Group: names.Term(r.Group), Message: r.Message, AckedBy: names.Term(r.AckedBy),
			Since: milliseconds(r.Since), Updated: milliseconds(r.Updated),
		},
		Run: incidentRun{
			ID: names.Term(r.BadRun), Namespace: names.Term(r.Namespace), Task: names.Term(r.Task),
			Cell: names.Term(r.Cell), Version: names.Term(r.BadVersion),
		},
		Good:   incidentGood{Run: names.Term(r.GoodRun), Version: names.Term(r.GoodVersion)},
		Metric: resultMetric{Name: names.Term(r.Metric), Unit: names.Term(r.Unit)},
		Value:  map[string]any{},
	}
	for _, name := range r.Notify {
		d.Incident.Notify = append(d.Incident.Notify, names.Term(name))
	}
	if r.Over {
		d.Incident.Lasted = max(r.Since.Sub(r.Opened).Seconds(), 0)
	}
	d.Labels, _ = names.Searchable(r.Labels)
	numbers := map[string]store.Float{"before": r.Before, "after": r.After}
	if r.Magnitude != nil {
		numbers["magnitude"] = *r.Magnitude
	}
	for name, v := range numbers {
		if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
			d.Value[name] = f
		}
	}
	return d
}

// milliseconds returns a time in the form of date.
func milliseconds(t time.Time) string {
	return time.UnixMilli(max(t.UnixMilli(), 0)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// PutIncident implements store.IncidentIndex.
func (s *incidentStore) PutIncident(ctx context.Context, r store.IncidentRecord) error {
	if err := s.schema.Ensure(ctx); err != nil {
		return err
	}
	err := s.client.PutVersion(ctx, s.client.Index(schema.Incidents), names.Digest(r.Namespace, r.ID), r.Version, newIncidentDoc(r))
	return wrapError(fmt.Sprintf("write the record of incident %q", r.ID), err)
}

// DeleteIncident implements store.IncidentIndex.
func (s *incidentStore) DeleteIncident(ctx context.Context, namespace, id string) error {
	if err := s.schema.Ensure(ctx); err != nil {
		return err
	}
	return wrapError(fmt.Sprintf("delete the record of incident %q", id),
		s.client.Remove(ctx, s.client.Index(schema.Incidents), names.Digest(namespace, id)))
}
