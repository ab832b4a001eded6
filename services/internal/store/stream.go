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

// StreamID returns the ID of the origin, which no other origin has.
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

// SampleQuery selects samples.
type SampleQuery struct {
	Run   string    // required
	Names []string  // of metrics; none means all
	Since time.Time // measured at this time or later; zero means all
	Until time.Time // measured before this time; zero means all
}

// LineQuery selects lines.
type LineQuery struct {
	Run       string   // required
	Attempt   int      // 0 means all
	StreamID  string   // an Origin's StreamID; empty means all
	Container string   // empty means all
	Tokens    []string // tokens that a line must have, all of them, as Words returns them; none means all
	Last      int      // only the last so many of the selected lines of each source; 0 means all

	// Since selects, in each source, the lines from the first one on that was read at this time or later, whatever its tokens; zero means
	// all. Lines that follow it in its source are selected whenever they were read.
	Since time.Time
}

// Matches reports whether the query selects lines of an origin.
func (q LineQuery) Matches(o Origin) bool {
	return (q.Attempt == 0 || q.Attempt == o.Attempt) && (q.StreamID == "" || q.StreamID == o.StreamID()) &&
		(q.Container == "" || q.Container == o.Container)
}

// CursorScope returns the parts of the query that a cursor depends on: a cursor of one query is valid for another with the same scope.
// Cursors have a position in every source, also for containers that the query does not select, so the container is no part of the scope.
func (q LineQuery) CursorScope() []any {
	purpose := []any{q.Run, q.Attempt, q.StreamID}
	if len(q.Tokens) > 0 {
		purpose = append(purpose, q.Tokens)
	}
	return purpose
}

// Stream has the counts of one origin in the store, for samples or lines.
type Stream struct {
	Origin Origin     `json:"origin"`
	Topic  string     `json:"topic"` // event.TopicMetrics or event.TopicLogs
	Stored int64      `json:"stored"`
	Last   int64      `json:"last"`          // greatest Seq stored; -1 if there is none
	End    *event.End `json:"end,omitempty"` // once the source has ended
}

// Streams is the part of a store that has samples and lines.
type Streams interface {
	Appender
	Reader
}

// Appender stores samples and lines.
type Appender interface {
	// AppendSamples stores the new samples of batches, all of them or none. StreamID, Seq, Sub and Name identify a sample. Stored samples
	// stay unchanged, and so does the End of a source. It returns ErrRefused for data that no store accepts.
	AppendSamples(ctx context.Context, batches []Samples) error
	// AppendLines stores the new lines of batches, all of them or none. StreamID and Seq identify a line. Stored lines stay unchanged.
	AppendLines(ctx context.Context, batches []Lines) error
}

// Reader returns samples and lines.
type Reader interface {
	// Samples returns up to limit samples, in order of (attempt, source, Seq, Sub, Name), that come after cursor, and the cursor after the
	// last of them. Cursor "" is the beginning. A cursor stays valid while samples are added, and samples that are added later to a source
	// come after it.
	Samples(ctx context.Context, q SampleQuery, cursor string, limit int) (samples []Sample, next string, err error)
	// Lines does for lines what Samples does for samples, in order of (attempt, source, Seq). The cursor has a position in each source: it
	// finds lines that are added later to any source of the run. Last and Since set the beginning, and have no effect beside a cursor.
	Lines(ctx context.Context, q LineQuery, cursor string, limit int) (lines []Line, next string, err error)
	// Streams returns the counts of each origin of a run, in order of (attempt, source, topic).
	Streams(ctx context.Context, run string) ([]Stream, error)
}
