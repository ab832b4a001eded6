package extract

import (
	"fmt"
	"slices"
)

// MaxTail is how many bytes at the end of a log over its limit are stored at most: they are shipped in the time that a pod has after its
// benchmark.
const MaxTail = 16 << 20

// TailOf returns how many of the stored bytes of a log are its last ones, most at most.
func TailOf(limit, most int64) int64 { return min(limit/2, most) }

// LogOverflow is the state of the lines behind the stored beginning of a log that is over its limit. The last ones of these lines are
// shipped when the log is read to its end.
type LogOverflow struct {
	Lines int64  `json:"lines,omitempty"`
	Bytes int64  `json:"bytes,omitempty"` // of these lines, each with its line feed
	Marks []Mark `json:"marks,omitempty"` // in order; the first lies before the end of the log that is shipped
}

// Mark is a position in the output from which the output can be read again.
type Mark struct {
	From  int64 `json:"from"`  // where to read: the offset of a record in a file, the time of a line of a container's log
	After int64 `json:"after"` // lines up to this sequence number lie before the mark
	Bytes int64 `json:"bytes"` // of the lines behind the beginning that lie before the mark
}

// Add counts a line, and appends the mark before the record in which it ends if the last mark is far behind.
func (c LogOverflow) Add(seq int64, before Mark, size, tail int64) LogOverflow {
	switch n := len(c.Marks); {
	case c.Lines == 0:
		before.After, before.Bytes = seq-1, 0 // lines of that record are of the beginning
		c.Marks = []Mark{before}
	case n > 0 && before.Bytes-c.Marks[n-1].Bytes >= max(1, tail/8):
		c.Marks = append(slices.Clone(c.Marks), before)
	}
	c.Lines, c.Bytes = c.Lines+1, c.Bytes+size
	for len(c.Marks) > 1 && c.Bytes-c.Marks[1].Bytes >= tail {
		c.Marks = c.Marks[1:]
	}
	return c
}

// LogLimitReason is the reason for lines of a log that are not stored.
func LogLimitReason(limit, bytes int64) string {
	return fmt.Sprintf("limits.max_log_size: the log is cut at %d bytes, in the middle: %d bytes are not stored", limit, bytes)
}
