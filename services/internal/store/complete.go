package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Completeness says whether all that a run wrote is stored.
type Completeness struct {
	Complete bool     // everything is there, and no more will come
	Samples  int64    // stored
	System   int64    // of these, what the platform measured itself
	Lines    int64    // stored
	Missing  int64    // samples and lines that were sent and are not stored
	Dropped  int64    // lines that a limit kept out
	Awaited  []string // what may still come, for people, one entry for each source
	Notes    []string // what was kept out and why, for people, one entry for each source
}

// DataTimeout is how long after the end of a run nothing is waited for any more that
// it wrote and that has not come.
const DataTimeout = 24 * time.Hour

// Complete says whether all that a run wrote is stored, given what the store
// has of each of its origins.
//
// It is, once the run is over and each pod whose data are awaited has ended each
// source that a collector has, and all that any source has said to have brought
// is there.
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

// expectedStream is what one collector brings to one topic from one file.
type expectedStream struct{ pod, stream, topic string }

// expectedStreams returns what the collector of a pod, or who follows its log, brings:
// it ends each of these, also where it brought nothing.
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

// plural is a number of the source's things: "1 line", "2 samples".
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

// dropNote says what of a stream is not there, and why. What was dropped of a log are
// lines; of other streams it may be lines, samples or requests, as the reason says.
func dropNote(s Stream) string {
	dropped := fmt.Sprintf("%d dropped", s.End.Dropped)
	if s.Topic == event.TopicLogs {
		dropped = expectedStream{topic: s.Topic}.plural(s.End.Dropped) + " dropped"
	}
	return fmt.Sprintf("%s-%d, %s: %s: %s", s.Origin.Role, s.Origin.Index, s.Origin.Kind, dropped, s.End.Reason)
}

// count adds what is known to be missing of a source that has ended.
func (c *Completeness) count(s Stream) {
	if s.End == nil {
		return
	}
	if s.Topic == event.TopicLogs {
		c.Dropped += s.End.Dropped
	}
	if s.End.Dropped > 0 && s.End.Reason != "" {
		c.Notes = append(c.Notes, dropNote(s))
	}
	if missing := s.End.Count - s.Stored; missing > 0 {
		c.Missing += missing
		c.Awaited = append(c.Awaited, fmt.Sprintf("%s of %s of pod %s", expectedStream{topic: s.Topic}.plural(missing), s.Origin.Kind, s.Origin.Pod))
	}
}
