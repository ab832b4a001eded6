package entrypoint

import (
	"bytes"
	"regexp"
)

// maxReadyLine is how much of a line is compared.
const maxReadyLine = 64 << 10

// lineMatcher finds the first line of two streams that a pattern matches.
type lineMatcher struct {
	pattern *regexp.Regexp
	partial [2][]byte // the line that has not ended yet, of standard output and of standard error
}

// add reports whether a line matches that ends in data.
func (m *lineMatcher) add(isErr bool, data []byte) bool {
	stream := &m.partial[0]
	if isErr {
		stream = &m.partial[1]
	}
	for {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		*stream = append(*stream, line[:min(len(line), maxReadyLine-len(*stream))]...)
		if !ended {
			return false
		}
		if m.pattern.Match(bytes.TrimSuffix(*stream, []byte("\r"))) {
			return true
		}
		*stream, data = (*stream)[:0], rest
	}
}
