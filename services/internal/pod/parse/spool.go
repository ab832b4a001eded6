package parse

import (
	"fmt"
	"io"
	"os"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/parsers/command"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// maxKept is how many bytes of output are kept for a parser of kind command.
const maxKept = 256 << 20

// Spool is where output is kept for parsers of kind command.
type Spool struct {
	Dir     string             // an existing folder
	Missing func(int64) string // why that many bytes more do not fit on its disk; empty if they do. Nil means that all do
}

// keptOutput is output in a file without a name.
type keptOutput struct {
	file *os.File
	cut  string // why the rest is missing; empty if nothing is
}

// keep writes r to a file, to its end, or as far as the limit and the disk allow.
func (s Spool) keep(r io.Reader) keptOutput {
	f, err := os.CreateTemp(s.Dir, "parser-*")
	if err != nil {
		return keptOutput{cut: "the output is not kept for it: " + err.Error()}
	}
	_ = os.Remove(f.Name())
	const step = 1 << 20
	for size := int64(0); size < maxKept; size += step {
		if s.Missing != nil {
			if why := s.Missing(step); why != "" {
				return keptOutput{f, fmt.Sprintf("it was given the first %s of the output: %s", pod.FormatSize(size), why)}
			}
		}
		n, err := io.CopyN(f, r, step)
		switch {
		case err == io.EOF: //nolint:errorlint // CopyN returns this very error
			return keptOutput{file: f}
		case err != nil:
			return keptOutput{f, fmt.Sprintf("it was given the first %s of the output: %v", pod.FormatSize(size+n), err)}
		}
	}
	if n, _ := r.Read(make([]byte, 1)); n == 0 {
		return keptOutput{file: f}
	}
	return keptOutput{f, fmt.Sprintf("it was given the first %s of the output", pod.FormatSize(maxKept))}
}

// run runs a parser on the output. If not all of it was kept, the result is a part.
func (k keptOutput) run(p pod.Parser, run RunCommand) report.Report {
	if k.file == nil {
		return report.Of(command.Kind, "", nil, k.cut)
	}
	defer k.file.Close() //nolint:errcheck // it has no name
	if _, err := k.file.Seek(0, io.SeekStart); err != nil {
		return report.Of(command.Kind, "", nil, "the output is not kept for it: "+err.Error())
	}
	found := run(p, k.file)
	if k.cut != "" && found.State == report.OK {
		return report.Of(found.Kind, found.Version, found.Metrics, k.cut)
	}
	return found
}
