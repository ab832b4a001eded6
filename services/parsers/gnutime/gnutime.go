// Package gnutime reads what time prints about a command: GNU time with -p, -v and its default format, and the time of shells.
package gnutime

import (
	"bytes"
	"io"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

const name = "gnu-time"

// Kind returns the parser of time. Formats are those of src/time.c of GNU time 1.9 (-p, -v, the default one; from one hour on -v has no
// hundredths), of bash 5.2 and dash (time, time -p), and of BusyBox (hours, minutes and seconds with letters).
//
// The text may have the output of the command around it. If time was run several times, its last complete output counts. The words that GNU
// time prints of a command that failed are Failed, but -p does not print them: there the state is ok, whatever the command did.
//
// Sizes of text, data and stack, messages of sockets, and signals are no metrics: Linux does not measure them, and they are always 0.
func Kind() report.Kind {
	definitions := make([]report.Definition, 0, fields)
	for i, f := range table() {
		definitions = append(definitions, report.Definition{
			Name: f.name, Unit: f.unit, Direction: f.direction, Headline: i == wall, Meaning: f.meaning,
		})
	}
	return report.Kind{Name: name, Tool: "GNU time", Metrics: definitions, Looks: looks, Parse: parse}
}

// looks reports whether a text has what time prints, whatever is around it. The command before it may be a tool with a kind of its own,
// which is asked first.
func looks(head []byte) bool {
	s := Scanner{}
	for line := range bytes.Lines(head) {
		s.See(bytes.TrimRight(line, "\r\n"))
	}
	return s.Result().Missing == "" && len(s.Result().Metrics) > 0
}

func parse(r io.Reader, _ report.Options) (report.Report, error) {
	s := Scanner{}
	if err := report.Lines(r, s.See); err != nil {
		return report.Report{}, err
	}
	found := s.Result()
	if found.Failure != "" {
		return report.Failure(name, "", found.Metrics, found.Failure), nil
	}
	return report.Of(name, "", found.Metrics, found.Missing), nil
}
