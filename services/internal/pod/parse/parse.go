// Package parse reads the output of a benchmark with the parsers of its descriptor while it is written, and files once the benchmark has
// ended.
package parse

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/artifacts"
	"github.com/benchmark-ai/bai/services/parsers"
	"github.com/benchmark-ai/bai/services/parsers/command"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// RunCommand runs a parser of kind command, whose standard input is a file.
type RunCommand func(p pod.Parser, stdin *os.File) report.Report

// Result is what one parser found.
type Result struct {
	Parser pod.Parser
	Report report.Report
	Head   []string // the first lines that it read
}

// Parsers are the parsers of a benchmark. Only one goroutine may use them.
type Parsers struct {
	all    []pod.Parser
	inputs []*input           // of each parser; nil for one that reads a file
	before []artifacts.States // of each parser, of its files before the benchmark
}

// Start starts the parsers that read output. That for parsers of kind command is kept until the end. It is called before the benchmark
// starts: a file that is there by then and does not change has no results of the benchmark.
func Start(all []pod.Parser, keep Spool) *Parsers {
	p := &Parsers{all: all, inputs: make([]*input, len(all)), before: make([]artifacts.States, len(all))}
	for i, one := range all {
		if one.Path == "" {
			p.inputs[i] = newInput(one, keep)
			continue
		}
		p.before[i] = artifacts.StatesOf(one.Path)
	}
	return p
}

// Write hands on a piece of standard output, or of standard error. It waits for a parser that is behind.
func (p *Parsers) Write(isErr bool, data []byte) {
	for _, in := range p.inputs {
		if in != nil {
			in.write(isErr, data)
		}
	}
}

// End ends the output, reads the files, runs commands, and returns the results of all parsers in their order. A metric whose line the
// collector would refuse is missing.
func (p *Parsers) End(run RunCommand) []Result {
	var results []Result
	for i, one := range p.all {
		var r Result
		if in := p.inputs[i]; in != nil {
			r = in.end(run)
		} else {
			r = parseFile(one, p.before[i], run)
		}
		r.Report = withinBounds(r.Report)
		results = append(results, r)
	}
	return results
}

// input is the output that one parser reads. Of two streams it has whole lines, or the first as a whole and the messages behind it.
type input struct {
	parser   pod.Parser
	reads    [2]bool   // standard output, standard error
	partial  [2][]byte // the line that has not ended yet, of each stream
	separate bool      // standard error has messages about the document on standard output
	messages []byte    // their beginning
	head     head
	buffer   *bufio.Writer
	pipe     *io.PipeWriter
	done     chan struct{}
	found    report.Report
	kept     keptOutput // for a parser of kind command, which runs at the end
}

// bufferSize is how many bytes are handed on at a time.
const bufferSize = 64 << 10

// maxMessages is how much of the messages about a document is kept.
const maxMessages = 8 << 20

func newInput(p pod.Parser, keep Spool) *input {
	r, w := io.Pipe()
	in := &input{parser: p, reads: streams(p), buffer: bufio.NewWriterSize(w, bufferSize), pipe: w, done: make(chan struct{})}
	in.separate = in.reads == [2]bool{true, true} && kindOf(p.Kind).Messages
	go func() {
		defer close(in.done)
		if p.Kind == command.Kind {
			in.kept = keep.keep(r)
		} else {
			in.found = parse(p, r)
		}
		_, _ = io.Copy(io.Discard, r) // a parser may stop before the end
	}()
	return in
}

func (in *input) write(isErr bool, data []byte) {
	stream := 0
	if isErr {
		stream = 1
	}
	if !in.reads[stream] {
		return
	}
	in.head.add(data)
	if in.separate && isErr {
		in.messages = append(in.messages, data[:min(len(data), maxMessages-len(in.messages))]...)
		return
	}
	if in.separate || in.reads[0] != in.reads[1] {
		_, _ = in.buffer.Write(data) // a pipe that is not closed takes all
		return
	}
	open := &in.partial[stream]
	n := bytes.LastIndexByte(data, '\n') + 1
	if n > 0 {
		_, _ = in.buffer.Write(*open)
		_, _ = in.buffer.Write(data[:n])
		*open = (*open)[:0]
	}
	if *open = append(*open, data[n:]...); len(*open) >= report.MaxLine {
		_, _ = in.buffer.Write(*open)
		*open = (*open)[:0]
	}
}

func (in *input) end(run RunCommand) Result {
	for _, open := range in.partial {
		if len(open) > 0 {
			_, _ = in.buffer.Write(append(open, '\n'))
		}
	}
	if len(in.messages) > 0 {
		_ = in.buffer.WriteByte('\n')
		_, _ = in.buffer.Write(in.messages)
	}
	_ = in.buffer.Flush()
	_ = in.pipe.Close()
	<-in.done
	if in.parser.Kind == command.Kind {
		in.found = in.kept.run(in.parser, run)
	}
	return Result{Parser: in.parser, Report: in.found, Head: in.head.lines()}
}

// parseFile parses the file of a parser, which was not there before as it is.
func parseFile(p pod.Parser, before artifacts.States, run RunCommand) Result {
	nothing := func(reason string) Result {
		return Result{Parser: p, Report: report.Of(p.Kind, "", nil, reason)}
	}
	files, notices := artifacts.Find(pod.Artifact{Path: p.Path, Quiet: true})
	file, reason := choose(files, notices, before.Unchanged)
	if reason != "" {
		return nothing(reason)
	}
	f, err := file.Open()
	if err != nil {
		return nothing(err.Error())
	}
	defer f.Close() //nolint:errcheck // only read
	var begin head
	if p.Kind == command.Kind {
		_, _ = io.Copy(&begin, io.NewSectionReader(f, 0, headSize))
		return Result{Parser: p, Report: run(p, f), Head: begin.lines()}
	}
	found := parse(p, io.TeeReader(f, &begin))
	return Result{Parser: p, Report: found, Head: begin.lines()}
}

// parse reads r with a parser. A defect of a parser is a report without a result: it must not end the benchmark.
func parse(p pod.Parser, r io.Reader) (found report.Report) {
	defer func() {
		if v := recover(); v != nil {
			found = report.Of(p.Kind, "", nil, fmt.Sprintf("the parser has a defect: %v", v))
		}
	}()
	found, err := parsers.Parse(p.Kind, r, options(p))
	if err != nil {
		return report.Of(p.Kind, "", nil, err.Error())
	}
	return found
}

// head is the beginning of a text.
type head struct{ text []byte }

// headSize is how much of a text is kept, of which its first lines are quoted.
const headSize = 2 << 10

func (h *head) add(data []byte) {
	h.text = append(h.text, data[:min(len(data), headSize-len(h.text))]...)
}

// Write implements io.Writer.
func (h *head) Write(data []byte) (int, error) {
	h.add(data)
	return len(data), nil
}

// lines returns the first lines that are not blank.
func (h *head) lines() []string {
	const most = 3
	var all []string
	for line := range bytes.Lines(h.text) {
		if text := report.Clip(string(line)); text != "" {
			all = append(all, text)
		}
		if len(all) == most {
			break
		}
	}
	return all
}

// streams returns which streams a parser reads.
func streams(p pod.Parser) [2]bool {
	switch cmp.Or(p.Stream, defaultStream(p.Kind)) {
	case "stdout":
		return [2]bool{true, false}
	case "stderr":
		return [2]bool{false, true}
	}
	return [2]bool{true, true}
}

// defaultStream returns which streams a kind reads if nothing else is said.
func defaultStream(kind string) string {
	if k := kindOf(kind); k.Document && !k.Messages {
		return "stdout"
	}
	return "both"
}

// kindOf returns the kind of a name; it is the zero value for auto and command.
func kindOf(name string) report.Kind {
	for _, k := range parsers.Kinds() {
		if k.Name == name {
			return k
		}
	}
	return report.Kind{}
}
