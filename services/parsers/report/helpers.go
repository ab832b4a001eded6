package report

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
)

// Limits of what a parser reads.
const (
	MaxLine     = 1 << 20  // bytes of a line; the rest of a longer one is skipped
	MaxDocument = 64 << 20 // bytes of a document that is read as a whole
)

// Lines calls see with each line of r, without its end. A line is valid during the call only. What a line has beyond MaxLine is left out.
func Lines(r io.Reader, see func(line []byte)) error {
	b := bufio.NewReaderSize(r, 64<<10)
	var long []byte // the beginning of a line that is longer than the buffer
	for {
		part, err := b.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(long) < MaxLine {
				long = append(long, part...)
			}
			continue
		}
		line := part
		if len(long) > 0 {
			line = append(long, part...)
			line, long = line[:min(len(line), MaxLine)], long[:0]
		}
		if len(line) > 0 {
			see(bytes.TrimRight(line, "\r\n"))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// DocumentParser returns the Parse of a kind whose output is read as a whole. Parse reads the text to its end, and returns what read finds
// in it, or the state Empty for a text of more than MaxDocument bytes.
func DocumentParser(kind string, read func(text []byte, o Options) Report) func(io.Reader, Options) (Report, error) {
	return func(r io.Reader, o Options) (Report, error) {
		text, tooLarge, err := readDocument(r)
		switch {
		case err != nil:
			return Report{}, err
		case tooLarge:
			return Of(kind, "", nil, "it has more than 64 MiB"), nil
		}
		return read(text, o), nil
	}
}

// readDocument reads r to its end, or until it has read more than MaxDocument bytes. It joins the parts at the end, so that a text that is
// too large is never copied.
func readDocument(r io.Reader) (text []byte, tooLarge bool, err error) {
	var full [][]byte
	part, total := make([]byte, 0, 32<<10), 0
	for {
		n, err := r.Read(part[len(part):cap(part)])
		part, total = part[:len(part)+n], total+n
		switch {
		case total > MaxDocument:
			return nil, true, nil
		case errors.Is(err, io.EOF) && full == nil:
			return part, false, nil
		case errors.Is(err, io.EOF):
			return bytes.Join(append(full, part), nil), false, nil
		case err != nil:
			return nil, false, err
		}
		if len(part) == cap(part) {
			full, part = append(full, part), make([]byte, 0, 2*len(part))
		}
	}
}

// Number returns a finite decimal number; it is false for any other text. Infinities, hexadecimal numbers and underscores are none.
func Number(text string) (float64, bool) {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && finite(v)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Clip shortens a text of a tool for a reason: control characters become spaces, and what is beyond 200 characters is left out.
func Clip(text string) string {
	const most = 200
	clean := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))), " ")
	if r := []rune(clean); len(r) > most {
		return string(r[:most]) + "…"
	}
	return clean
}

// Of returns a report. It is Partial or Empty where a parser found metrics or none, and names what is missing; the state is OK if nothing
// is.
func Of(kind, version string, metrics []Metric, missing string) Report {
	r := Report{Kind: kind, State: OK, Version: version, Metrics: metrics, Reason: missing}
	for i := range r.Metrics {
		if r.Metrics[i].Labels == nil {
			r.Metrics[i].Labels = map[string]string{}
		}
	}
	switch {
	case len(metrics) == 0:
		r.State, r.Metrics = Empty, []Metric{}
		if missing == "" {
			r.Reason = "no result in the text"
		}
	case missing != "":
		r.State = Partial
	}
	return r
}

// Failure returns the report of a tool that says that it has failed. Metrics that it printed before are kept.
func Failure(kind, version string, metrics []Metric, reason string) Report {
	r := Of(kind, version, metrics, Clip(reason))
	r.State = Failed
	return r
}
