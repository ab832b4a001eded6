package store

import (
	"context"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Origin is where samples or lines come from: a source of one attempt of a run.
type Origin struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`

	event.Stream
}

// StreamID returns what tells the origin apart from every other.
func (o Origin) StreamID() string { return o.ID(o.Run, o.Attempt) }

// Samples are samples of one origin, in ascending order of (Seq, Sub).
type Samples struct {
	Origin  Origin
	Samples []event.Sample
	End     *event.End
}

// Lines are lines of one origin, in ascending order of Seq.
type Lines struct {
	Origin Origin
	Lines  []event.Line
	End    *event.End
}

// Sample is one stored sample.
type Sample struct {
	Origin Origin `json:"origin"`

	event.Sample
}

// Line is one stored line.
type Line struct {
	Origin Origin `json:"origin"`

	event.Line
}

// SampleQuery says which samples are meant.
type SampleQuery struct {
	Run   string    // required
	Names []string  // of metrics; none means all
	Since time.Time // measured at this time or later; zero means all
	Until time.Time // measured before this time; zero means all
}

// LineQuery says which lines are meant.
type LineQuery struct {
	Run       string   // required
	Attempt   int      // 0 means all
	StreamID  string   // an Origin's StreamID; empty means all
	Container string   // empty means all
	Tokens    []string // that a line has, all of them, as Words returns them; none means all
	Last      int      // only the last so many of each source, of those that are meant; 0 means all

	// Since is when the first line of each source was read, whatever its tokens,
	// or later; zero means all. Those that follow it in its source are meant
	// whenever they were read.
	Since time.Time
}

// Matches reports whether the lines of an origin are meant.
func (q LineQuery) Matches(o Origin) bool {
	return (q.Attempt == 0 || q.Attempt == o.Attempt) && (q.StreamID == "" || q.StreamID == o.StreamID()) && (q.Container == "" || q.Container == o.Container)
}

// CursorScope is what cursors are for: one that was given for a query is good for
// another of the same purpose. Cursors have a place in every source and say
// nothing of those that are not meant, so the container is no part of it.
func (q LineQuery) CursorScope() []any {
	purpose := []any{q.Run, q.Attempt, q.StreamID}
	if len(q.Tokens) > 0 {
		purpose = append(purpose, q.Tokens)
	}
	return purpose
}

// Stream is what the store has of one origin, in samples or in lines.
type Stream struct {
	Origin Origin     `json:"origin"`
	Topic  string     `json:"topic"` // event.TopicMetrics or event.TopicLogs
	Stored int64      `json:"stored"`
	Last   int64      `json:"last"`          // greatest Seq stored; -1 where there is none
	End    *event.End `json:"end,omitempty"` // once the source has ended
}

// Streams is the part of a store that keeps samples and lines.
type Streams interface {
	Appender
	Reader
}

// Appender stores samples and lines.
type Appender interface {
	// AppendSamples stores samples that are not there yet, told by StreamID,
	// Seq, Sub and Name, all of them or none. What is there stays as it is, the
	// End of a source too. It says ErrRefused for what no store keeps.
	AppendSamples(ctx context.Context, batches []Samples) error
	// AppendLines stores lines that are not there yet, told by StreamID and
	// Seq, all of them or none. What is there stays as it is.
	AppendLines(ctx context.Context, batches []Lines) error
}

// Reader returns samples and lines.
type Reader interface {
	// Samples returns up to limit samples, in order of (attempt, source, Seq,
	// Sub, Name), that come after cursor, and the cursor after the last of them.
	// Cursor "" is the beginning. A cursor stays good while samples arrive, and
	// what arrives later in a source comes after it.
	Samples(ctx context.Context, q SampleQuery, cursor string, limit int) (samples []Sample, next string, err error)
	// Lines is to lines what Samples is to samples, in order of (attempt,
	// source, Seq). The cursor has a place for each source: what arrives later
	// in any source of the run is found by it. Last and Since say where to
	// begin, and mean nothing beside a cursor.
	Lines(ctx context.Context, q LineQuery, cursor string, limit int) (lines []Line, next string, err error)
	// Streams returns what the store has of each origin of a run, in order of
	// (attempt, source, topic).
	Streams(ctx context.Context, run string) ([]Stream, error)
}
