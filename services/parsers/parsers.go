// Package parsers reads the output of benchmark tools: it knows every kind, and guesses the kind of a text. Parsers are pure, each in a
// package of its own.
package parsers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/bmf"
	"github.com/benchmark-ai/bai/services/parsers/csv"
	"github.com/benchmark-ai/bai/services/parsers/fio"
	"github.com/benchmark-ai/bai/services/parsers/gbench"
	"github.com/benchmark-ai/bai/services/parsers/gnutime"
	"github.com/benchmark-ai/bai/services/parsers/gobench"
	"github.com/benchmark-ai/bai/services/parsers/hyperfine"
	"github.com/benchmark-ai/bai/services/parsers/imb"
	"github.com/benchmark-ai/bai/services/parsers/iperf2"
	"github.com/benchmark-ai/bai/services/parsers/iperf3"
	"github.com/benchmark-ai/bai/services/parsers/jmh"
	"github.com/benchmark-ai/bai/services/parsers/json"
	"github.com/benchmark-ai/bai/services/parsers/junit"
	"github.com/benchmark-ai/bai/services/parsers/k6"
	"github.com/benchmark-ai/bai/services/parsers/mlperf"
	"github.com/benchmark-ai/bai/services/parsers/openfoam"
	"github.com/benchmark-ai/bai/services/parsers/osu"
	"github.com/benchmark-ai/bai/services/parsers/perftest"
	"github.com/benchmark-ai/bai/services/parsers/pytestbenchmark"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/tfcnn"
	"github.com/benchmark-ai/bai/services/parsers/torchbench"
)

// Auto is the name of the kind that guesses.
const Auto = "auto"

// headSize is how much of a text tells of its kind.
const headSize = 64 << 10

// Kinds returns all kinds in the order in which Auto tries them. Kinds of tools come before files of one's own, which look like nothing
// else.
func Kinds() []report.Kind {
	return []report.Kind{
		iperf2.Kind(), iperf3.Kind(), imb.Kind(), osu.Kind(), perftest.Kind(), openfoam.Kind(),
		torchbench.Kind(), mlperf.Kind(), tfcnn.Kind(),
		fio.Kind(), gobench.Kind(), hyperfine.Kind(), gbench.Kind(), pytestbenchmark.Kind(), jmh.Kind(),
		k6.Kind(), bmf.Kind(), junit.Kind(),
		gnutime.Kind(),          // around a command, which may be one of those above
		json.Kind(), csv.Kind(), // any document, and any table
	}
}

// Names returns the names of all kinds, and Auto.
func Names() []string {
	all := []string{Auto}
	for _, k := range Kinds() {
		all = append(all, k.Name)
	}
	return all
}

// UnknownKindError means that there is no parser of a name.
type UnknownKindError struct{ Kind string }

// Error names the kinds that there are.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("there is no parser of kind %q: use %s", e.Kind, strings.Join(Names(), ", "))
}

// Parse reads the output of a tool. The kind is the name of one, or Auto; the report says which it was. A text that no kind recognises is a
// report of kind Auto with the state Empty. The error is *UnknownKindError, or that of the reader.
func Parse(kind string, r io.Reader, o report.Options) (report.Report, error) {
	if kind == Auto {
		return parseAny(r, o)
	}
	all := Kinds()
	i := slices.IndexFunc(all, func(k report.Kind) bool { return k.Name == kind })
	if i < 0 {
		return report.Report{}, &UnknownKindError{kind}
	}
	return all[i].Parse(r, o)
}

func parseAny(r io.Reader, o report.Options) (report.Report, error) {
	b := bufio.NewReaderSize(r, headSize)
	head, err := b.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return report.Report{}, err
	}
	for _, k := range Kinds() {
		if k.Looks(head) {
			return k.Parse(b, o)
		}
	}
	reason := "no kind of parser recognises the text"
	if len(bytes.TrimSpace(head)) == 0 {
		reason = "there is no text"
	}
	return report.Of(Auto, "", nil, reason), nil
}
