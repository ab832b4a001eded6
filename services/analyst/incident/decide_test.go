package incident_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestWhatAUserSaidChangesTheStateOnce(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	m := store.Float(-0.2)
	firing := incident.Incident{ID: "i", Magnitude: &m, Worst: 0.5}.With(incident.Transition{State: incident.Firing, At: now})
	for name, tt := range map[string]struct {
		ack  incident.Ack
		want incident.State
	}{
		"acknowledged": {incident.Ack{By: "me", At: now.Add(1), Reason: "known"}, incident.Acknowledged},
		"accepted":     {incident.Ack{By: "me", At: now.Add(1), Accept: true}, incident.Resolved},
		"wrong":        {incident.Ack{By: "me", At: now.Add(1), Wrong: true}, incident.Dismissed},
	} {
		t.Run(name, func(t *testing.T) {
			got := incident.WithAck(firing, tt.ack)
			if got.State != tt.want || len(got.Became) != 2 || got.Became[1].By != "me" || got.Worst != 0.2 || len(firing.Became) != 1 {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff(got, incident.WithAck(got, tt.ack)); diff != "" {
				t.Errorf("a second time: %s", diff)
			}
			earlier := tt.ack
			earlier.At = now
			if diff := cmp.Diff(got, incident.WithAck(got, earlier)); diff != "" {
				t.Errorf("an earlier one: %s", diff)
			}
		})
	}
}

func TestAnIncidentThatIsOverTakesNoAcknowledgement(t *testing.T) {
	over := incident.Incident{}.With(incident.Transition{State: incident.Resolved})
	if diff := cmp.Diff(over, incident.WithAck(over, incident.Ack{By: "me", At: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)})); diff != "" {
		t.Error(diff)
	}
}
