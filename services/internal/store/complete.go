package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Completeness says whether all data of a run are stored.
type Completeness struct {
	Complete bool     // all data are stored, and no more will come
	Samples  int64    // stored
	System   int64    // of these, the samples of the platform's own measurements
	Lines    int64    // stored
	Missing  int64    // samples and lines that were sent and are not stored
	Dropped  int64    // lines that a limit dropped
	Awaited  []string // data that may still come, for people, one entry for each source
	Notes    []string // dropped data with the reason, for people, one entry for each source
}

// DataTimeout is how long after the end of a run missing data are waited for.
const DataTimeout = 24 * time.Hour

// Complete computes whether all data of a run are stored, from the streams of the run in the store.
//
// All data are stored once the run is over, each pod with a collector has ended each source that a collector has, and the store has all
// data that the ends of the sources count.
func Complete(r Run, streams []Stream) Completeness {
	var c Completeness
	ended := make(map[expectedStream]bool)
	for _, s := range streams {
		switch s.Topic {
		case event.TopicLogs:
			c.Lines += s.Stored
		default:
			c.Samples += s.Stored
			if s.Origin.Kind == event.StreamSystem {
				c.System += s.Stored
			}
		}
		c.count(s)
		if s.End != nil {
			ended[expectedStream{s.Origin.Pod, s.Origin.Kind, s.Topic}] = true
		}
	}
	for _, pod := range r.Collectors {
		for _, s := range expectedStreams(pod) {
			if !ended[s] {
				c.Awaited = append(c.Awaited, fmt.Sprintf("the end of the %ss of %s of pod %s", s.unit(), s.stream, s.pod))
			}
		}
	}
	c.Complete = r.Phase == event.PhaseFinished && len(c.Awaited) == 0
	return c
}

// expectedStream is a stream of one collector in one topic.
type expectedStream struct{ pod, stream, topic string }

// expectedStreams returns the streams of a pod's collector, or of the follower of its log. Each of them has an end, even without data.
func expectedStreams(pod string) []expectedStream {
	if uid, follows := strings.CutSuffix(pod, event.LogFollower("")); follows {
		return []expectedStream{{uid, event.StreamLog, event.TopicLogs}, {uid, event.StreamLog, event.TopicMetrics}}
	}
	return []expectedStream{
		{pod, event.StreamOutput, event.TopicLogs},
		{pod, event.StreamOutput, event.TopicMetrics},
		{pod, event.StreamMetrics, event.TopicMetrics},
		{pod, event.StreamFIFO, event.TopicMetrics},
	}
}

// plural returns a number with the source's unit: "1 line", "2 samples".
func (s expectedStream) plural(n int64) string {
	unit := s.unit()
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

func (s expectedStream) unit() string {
	if s.topic == event.TopicLogs {
		return "line"
	}
	return "sample"
}

// dropNote returns how much of a stream was dropped, and why. Of a log lines are dropped; of other streams lines, samples or requests, as
// the reason says. It is the reason alone if data may be missing and no number is known.
func dropNote(s Stream) string {
	of := fmt.Sprintf("%s-%d, %s: ", s.Origin.Role, s.Origin.Index, s.Origin.Kind)
	if s.End.Dropped == 0 {
		return of + s.End.Reason
	}
	dropped := fmt.Sprintf("%d dropped", s.End.Dropped)
	if s.Topic == event.TopicLogs {
		dropped = expectedStream{topic: s.Topic}.plural(s.End.Dropped) + " dropped"
	}
	return of + dropped + ": " + s.End.Reason
}

// count adds the missing data of a source that has ended.
func (c *Completeness) count(s Stream) {
	if s.End == nil {
		return
	}
	if s.Topic == event.TopicLogs {
		c.Dropped += s.End.Dropped
	}
	if s.End.Reason != "" {
		c.Notes = append(c.Notes, dropNote(s))
	}
	if missing := s.End.Count - s.Stored; missing > 0 {
		c.Missing += missing
		c.Awaited = append(c.Awaited,
			fmt.Sprintf("%s of %s of pod %s", expectedStream{topic: s.Topic}.plural(missing), s.Origin.Kind, s.Origin.Pod))
	}
}
