package extract

import "fmt"

// Misses counts, by reason, the matches that are no samples, and the samples without a readable time.
type Misses struct {
	Numbers int // matches of text that is no number
	Cut     int // matches up to where a line is cut, and objects that are cut: the text behind may belong to them
	Objects int // lines that begin like JSON objects and cannot be read
	Members int // members of such objects beyond the bounds of a line
	Labels  int // matches with a label that is too long
	Times   int // samples whose time cannot be read, which Report leaves out
}

// Report calls drop for each reason with the count of matches that are no samples, in a text for the user. The matches were found in the
// line with sequence number seq, or in a block that ended there; lines are cut at limit bytes.
func (m Misses) Report(seq int64, limit int, drop func(n int64, reason string)) {
	if m == (Misses{Times: m.Times}) {
		return
	}
	for _, of := range []struct {
		n   int
		why string
	}{
		{m.Numbers, "a metric's pattern matched text that is not a number"},
		{m.Labels, fmt.Sprintf("a metric's pattern matched a label of more than %d bytes", maxLabel)},
		{m.Cut, fmt.Sprintf("a line is longer than %d bytes, and the rest of it is not searched (write numbers in shorter lines)", limit)},
		{m.Objects, "a line begins as a JSON object and cannot be read as one"},
		{m.Members, fmt.Sprintf("a line's JSON object has more than %d samples of a metric, or too large a part of it are names "+
			"(write several lines)", maxSamples)},
	} {
		if of.n > 0 {
			drop(int64(of.n), fmt.Sprintf("%s (first at seq %d of the log)", of.why, seq))
		}
	}
}

// UntimedNotice is the notice that n samples of a stream have the time of their line because the time in the line cannot be read, for the
// user.
func UntimedNotice(n int64, stream string) string {
	samples, have := "samples", "have"
	if n == 1 {
		samples, have = "sample", "has"
	}
	return fmt.Sprintf("%d %s of %s %s the time at which the line was written: the time in the line cannot be read "+
		"(write seconds since 1970, RFC 3339, or 2006-01-02 15:04:05, in UTC)", n, samples, stream, have)
}
