package collect

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Bounds.
const (
	maxBatch    = 600 << 10 // bytes of JSON that a batch has, about, of at most 1000 KiB
	maxLine     = 64 << 10  // bytes of a line that are kept, where settings do not say
	mostLine    = 96 << 10  // and at most: in JSON a byte may take six
	maxEmission = 256 << 10 // bytes of an emitted line
	maxProblem  = 300       // bytes of the reason that an end gives
)

func defaults(s Settings) Settings {
	if s.MaxLine <= 0 {
		s.MaxLine = maxLine
	}
	s.MaxLine = min(s.MaxLine, mostLine)
	if s.Poll <= 0 {
		s.Poll = 50 * time.Millisecond
	}
	if s.Drain <= 0 {
		s.Drain = s.Collect.Drain
	}
	if s.Drain <= 0 {
		s.Drain = 25 * time.Second
	}
	return s
}

// text returns what is kept of a line of length bytes, of which b is the
// beginning: no more than limit bytes, with what is no UTF-8 replaced. The line's
// length comes back as raw where text is not all of it; cut says that text ends
// early.
func text(b []byte, length int64, limit int) (text string, raw int64, cut bool) {
	if cut = length > int64(limit); cut {
		b = whole(b[:min(len(b), limit)])
	}
	valid := utf8.Valid(b)
	if cut || !valid {
		raw = length
	}
	if valid {
		return string(b), raw, cut
	}
	text = strings.ToValidUTF8(string(b), "\uFFFD")
	return shorten(text, limit), raw, cut || len(text) > limit
}

// whole returns b without the character that its end cuts apart, if any.
func whole(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		c := b[len(b)-i]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

// shorten returns at most about limit bytes of s, in whole characters.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return string(whole([]byte(s[:limit])))
}

// weight returns about how many bytes s takes in JSON.
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

// lineSize returns about how many bytes a line takes in JSON.
func lineSize(l event.Line) int { return 120 + weight(l.Text) }

// sampleSize returns about how many bytes a sample takes in JSON.
func sampleSize(s *event.Sample) int {
	n := 130 + weight(s.Name) + weight(s.Unit)
	for k, v := range s.Labels {
		n += 6 + weight(k) + weight(v)
	}
	return n
}

// end returns how the lines or samples of a source ended.
func (c count) end() *event.End {
	e := &event.End{Count: c.Count, Last: c.Last, Dropped: c.Dropped, Reason: c.Reason}
	if c.Count == 0 {
		e.Last = -1
	}
	return e
}

// ship notes n lines or samples that are shipped, of which the last has seq.
func (c *count) ship(n int, seq int64) {
	c.Count += int64(n)
	c.Last = seq
}

// drop notes that n lines or samples are not shipped, and why. The first reason
// is kept.
func (c *count) drop(n int64, reason string) {
	c.Dropped += n
	if c.Reason == "" {
		c.Reason = shorten(strings.ToValidUTF8(strings.ReplaceAll(reason, "\n", "; "), "\uFFFD"), maxProblem)
	}
}

// Reasons for what is not shipped, for the user to read.
func overLog(limit int64) string {
	return fmt.Sprintf("limits.max_log_size: of the output the first %d bytes are kept", limit)
}

func unrecorded(dropped int64) string {
	return fmt.Sprintf("limits.max_log_size: the last %d bytes of the output were not recorded", dropped)
}

func badEmission(seq int64, err error) string {
	return fmt.Sprintf("emitted, but no sample: first in the line that ends at byte %d: %v", seq, err)
}

func badMatch(seq int64) string {
	return fmt.Sprintf("matched by a metric's pattern, but no number: first in the line of sequence number %d", seq)
}
