package extract

import "fmt"

// Missed is what was found and is no sample, and what is wrong with those that
// are, by why.
type Missed struct {
	Numbers int // matches of text that is no number
	Cut     int // matches up to where a line is cut, and objects that are: what follows may belong to them
	Objects int // lines that look like JSON objects and cannot be read
	Times   int // samples whose time cannot be read, and is not said
}

// Drop tells of everything that is no sample how often that was and why, for the
// user to read. It was found in the line with sequence number seq, or in a block
// that ended there; lines are cut at limit bytes.
func (m Missed) Drop(seq int64, limit int, drop func(n int64, reason string)) {
	if m == (Missed{Times: m.Times}) {
		return
	}
	for _, of := range []struct {
		n   int
		why string
	}{
		{m.Numbers, "matched by a metric's pattern, but no number"},
		{m.Cut, fmt.Sprintf("in a line that is cut at %d bytes, which is not searched further, up to its end (write numbers in shorter lines)", limit)},
		{m.Objects, "in a line that looks like a JSON object, but cannot be read as one"},
	} {
		if of.n > 0 {
			drop(int64(of.n), fmt.Sprintf("%s: first in the line of sequence number %d", of.why, seq))
		}
	}
}

// Untimed says that n samples of a stream have the time of their line because what
// the line says of it cannot be read, for the user to read.
func Untimed(n int64, stream string) string {
	return fmt.Sprintf("the time of %d samples of %s cannot be read in their lines: they have that at which the line was written; "+
		"read are seconds since 1970, RFC 3339, and forms as 2006-01-02 15:04:05, in UTC", n, stream)
}
