package incident

import "github.com/benchmark-ai/bai/services/internal/store"

// Record returns what people search of the incident, whose document has a version.
func (i Incident) Record(version int64) store.IncidentRecord {
	r := store.IncidentRecord{
		ID: i.ID, Version: version, Namespace: i.Series.Namespace, Task: i.Series.Task, Metric: i.Series.Metric,
		Unit: i.Unit, Labels: i.Series.Labels,
		Cell: i.Series.Cell, When: string(i.Rule.When), State: string(i.State), Over: i.State.Over(), Silent: i.Silent,
		Cause: string(i.Cause), Kind: i.Kind,
		Direction: i.Direction, Group: i.Group, Message: i.Message, Notify: i.Rule.Notify,
		Before: store.Float(i.Before), After: store.Float(i.After),
		Magnitude: i.Magnitude, Opened: i.Opened, Since: i.Since(), Updated: i.Updated,
	}
	if p := i.LastGood; p != nil {
		r.GoodRun, r.GoodVersion = p.Run, p.Version
	}
	if p := i.FirstBad; p != nil {
		r.BadRun, r.BadVersion = p.Run, p.Version
	}
	if i.Acked != nil {
		r.AckedBy = i.Acked.By
	}
	return r
}
