package notice

import (
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// NewTest returns a notice that is marked as a test, of an incident that does not exist. The same user's tests with the same key have the
// same ID.
func NewTest(receiver, namespace, by, key string, now time.Time) Notice {
	id := incident.ID("test", receiver, namespace, by, key)
	change := store.Float(0.1)
	return Notice{
		ID: id, Receiver: receiver, Namespace: namespace, Became: incident.Firing, First: id, Test: true, Made: now,
		Incidents: []incident.Incident{{
			ID: id, Rule: incident.Rule{Namespace: namespace, Task: "example", Metric: "example", When: incident.Regression},
			State:     incident.Firing,
			Direction: "up", Before: 100, After: 110, Magnitude: &change, Message: "this is a test of the receiver: nothing has changed",
			Opened: now, Updated: now,
		}},
	}
}
