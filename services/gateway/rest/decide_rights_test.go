package rest

import (
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestATokenOpensTheObjectsOfItsRunUntilTheRunEnds(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	data := []event.Data{{Source: "s3://b/cats", Object: "objects/cats"}, {Source: "sent code"}}
	for name, tt := range map[string]struct {
		run   store.Run
		key   string
		want  string
		retry bool
	}{
		"one of its data sets":                       {store.Run{Phase: event.PhasePending, Data: data}, "objects/cats", "", false},
		"one of its data sets, when it is canceled":  {store.Run{Phase: event.PhaseCanceling, Data: data}, "objects/cats", "", false},
		"another object":                             {store.Run{Phase: event.PhaseRunning, Data: data}, "objects/dogs", "not one that run", false},
		"no object, though a data set has none yet":  {store.Run{Phase: event.PhaseRunning, Data: data}, "", "not one that run", false},
		"another object, when it is canceled":        {store.Run{Phase: event.PhaseCanceling, Data: data}, "objects/dogs", "not one that run", false},
		"a run that runs before its data are known":  {store.Run{Phase: event.PhaseRunning, Data: data[1:]}, "objects/cats", "not recorded yet", true},
		"a run whose data are not recorded yet":      {store.Run{Phase: event.PhaseFetching}, "objects/cats", "not recorded yet", true},
		"a run of which nothing is recorded":         {store.Run{}, "objects/cats", "not recorded yet", true},
		"one of its data sets, when the run is over": {store.Run{Phase: event.PhaseFinished, Data: data, Ended: &end}, "objects/cats", "ended at 2026-01-02T12:00:00Z", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why, retry := objectDenyReason(tt.run, tt.key)
			if retry != tt.retry || (why == "") != (tt.want == "") || !strings.Contains(why, tt.want) {
				t.Errorf("refused with %q, retry %v; want %q, retry %v", why, retry, tt.want, tt.retry)
			}
		})
	}
}

func TestATokenBringsFilesUntilAllThatItsRunWroteIsStored(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var shipped []store.Stream
	for _, s := range []struct{ stream, topic string }{
		{event.StreamOutput, event.TopicLogs}, {event.StreamOutput, event.TopicMetrics}, {event.StreamMetrics, event.TopicMetrics}, {event.StreamFIFO, event.TopicMetrics},
	} {
		shipped = append(shipped, store.Stream{Topic: s.topic, Origin: store.Origin{Stream: event.Stream{Pod: "p1", Kind: s.stream}}, End: &event.End{Last: -1}})
	}
	over := store.Run{Phase: event.PhaseFinished, Ended: &end, Collectors: []string{"p1"}}
	for name, tt := range map[string]struct {
		run     store.Run
		streams []store.Stream
		after   time.Duration
		want    string
	}{
		"a run that goes on":                            {store.Run{Phase: event.PhaseRunning}, shipped, 0, ""},
		"a run that is over, whose pod still sends":     {over, shipped[:3], time.Hour, ""},
		"a run that is over, and all of it is there":    {over, shipped, time.Minute, "all that it wrote is stored"},
		"a run that never had a pod":                    {store.Run{Phase: event.PhaseFinished, Ended: &end}, nil, 0, "all that it wrote is stored"},
		"a run whose pod died before it sent all of it": {over, shipped[:3], 25 * time.Hour, "more than 24 hours ago"},
		"a run of an earlier version that has no end":   {store.Run{Phase: event.PhaseFinished, Updated: end, Collectors: []string{"p1"}}, nil, 25 * time.Hour, "2026-01-02T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why := uploadDenyReason(tt.run, tt.streams, end.Add(tt.after))
			if (why == "") != (tt.want == "") || !strings.Contains(why, tt.want) {
				t.Errorf("refused with %q, want %q", why, tt.want)
			}
		})
	}
}
