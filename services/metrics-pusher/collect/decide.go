package collect

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// Bounds.
const (
	maxBatch       = 600 << 10 // bytes of JSON that a batch has, about, of at most 1000 KiB
	maxAhead       = 8 << 20   // bytes that are read before the position is committed; a kill makes the collector ship them again
	maxLine        = 64 << 10  // bytes of a line that are stored, unless settings say otherwise
	maxLineSetting = 96 << 10  // and at most: in JSON a byte may take six
	maxEmission    = 256 << 10 // bytes of an emitted line
	maxProblem     = 300       // bytes of the reason in an end
)

func defaults(s Settings) Settings {
	if s.MaxLine <= 0 {
		s.MaxLine = maxLine
	}
	s.MaxLine = min(s.MaxLine, maxLineSetting)
	if s.Net == nil {
		s.Net = &hostNetwork{}
	}
	s.VolumesDir = cmp.Or(s.VolumesDir, pod.VolumesDir)
	if s.Poll <= 0 {
		s.Poll = 100 * time.Millisecond
	}
	if s.Drain <= 0 {
		s.Drain = s.Collect.Drain
	}
	if s.Drain <= 0 {
		s.Drain = 25 * time.Second
	}
	return s
}

// weight returns about how many bytes s has in JSON.
func weight(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == '<', c == '>', c == '&':
			n += 5
		case c == '"', c == '\\':
			n++
		case c >= utf8.RuneSelf:
			n++ // the two that JavaScript reads as line ends take six for three
		}
	}
	return n
}

// lineSize returns about how many bytes a line has in JSON.
func lineSize(l event.Line) int { return 120 + weight(l.Text) }

// sampleSize returns about how many bytes a sample has in JSON.
func sampleSize(s *event.Sample) int {
	n := 130 + weight(s.Name) + weight(s.Unit)
	for k, v := range s.Labels {
		n += 6 + weight(k) + weight(v)
	}
	return n
}

// end returns how the lines or samples of a source ended.
func (c shipCount) end() *event.End {
	e := &event.End{Count: c.Count, Last: c.Last, Dropped: c.Dropped, Reason: c.Reason}
	if c.Count == 0 {
		e.Last = -1
	}
	return e
}

// ship counts n shipped lines or samples; seq is the number of the last one.
func (c *shipCount) ship(n int, seq int64) {
	c.Count += int64(n)
	c.Last = seq
}

// drop counts n lines or samples that are not shipped, with the reason. Only the first reason is stored.
func (c *shipCount) drop(n int64, reason string) {
	c.Dropped += n
	if c.Reason == "" {
		c.Reason = extract.Truncate(strings.ToValidUTF8(strings.ReplaceAll(reason, "\n", "; "), "\uFFFD"), maxProblem)
	}
}

// Reasons for dropped lines and samples, for the user.
func unrecorded(dropped int64) string {
	return fmt.Sprintf("the last %d bytes of the output were not read in time (limits.max_log_size)", dropped)
}

func badEmission(seq int64, err error) string {
	return fmt.Sprintf("the line that ends at byte %d is not a sample: %v", seq, err)
}

func overPipe(limit int64) string {
	return fmt.Sprintf("limits.max_log_size: only the first %d bytes of the FIFO are kept", limit)
}

func unwritten(err error) string {
	return fmt.Sprintf("what came last through the pipe of the original client library could not be written to the disk: %v", err)
}

// Bounds of files that are read whole.
const (
	maxExitSize        = 1 << 20
	maxEnvironmentSize = 4 << 20
	maxCursorSize      = 4 << 20
	maxURLSize         = 4 << 10
)

// artifactsTime is how much of the time for the end artifacts may take: all but the part
// that the ends of the streams need.
func artifactsTime(drain time.Duration) time.Duration {
	return max(drain-5*time.Second, drain/2)
}
