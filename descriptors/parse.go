// Package descriptors is the language in which users describe benchmarks, and
// its one strict parser.
package descriptors

import "regexp"

// MaxSize is the size in bytes above which a descriptor is refused.
const MaxSize = 256 << 10

// Parse reads one descriptor. It reports every fault of text at once, in the
// order of their places, with name as the file. The descriptor is nil if one of
// the faults is an error; warnings come with it. Equal texts give equal results.
func Parse(name string, text []byte) (*Descriptor, Faults) {
	return nil, Faults{{File: name, Line: 1, Column: 1, Message: "not read"}}
}

// Regexp is the compiled pattern of a metric that Parse gave out, and nil for
// one whose pattern Parse would refuse.
func (m Metric) Regexp() *regexp.Regexp {
	re, err := regexp.Compile(m.Pattern)
	if err != nil {
		return nil
	}
	return re
}

// GPUCount is the number of GPUs of each pod: gpus where it is given, else what
// the instance type has. It is false where the type is not known.
func (h Hardware) GPUCount() (int, bool) { return 0, false }

// GPUCount is the number of GPUs of each of the benchmark's pods, as
// Hardware.GPUCount.
func (d *Descriptor) GPUCount() (int, bool) { return d.Hardware.GPUCount() }

// Command is what the benchmark's container runs.
//
//   - benchmark_code is given: argv are its words and those of args.
//   - benchmark_code is a script (see Script): argv are the words of its
//     interpreter, args those of args; the script's file belongs between them.
//   - only args is given: argv is nil, the image's entrypoint is run with args.
//   - nothing is given: both are nil.
//
// The error is nil for a descriptor that Parse gave out: quotes are checked
// there.
func (d *Descriptor) Command() (argv, args []string, err error) { return nil, nil, nil }

// Script is benchmark_code where it is a script: a text whose first line begins
// with #!. The text has lost the indentation that all of its lines share, and
// begins with that line.
func (d *Descriptor) Script() (interpreter, text string, ok bool) { return "", "", false }

// Explanation is what there is to say about one kind of fault.
type Explanation struct {
	Code    string
	Title   string // what is wrong, in a few words
	Text    string // why it is refused, and how to mend it
	Example string // a piece of a descriptor with the fault
	Mended  string // the same piece without it
}

// Explain is what there is to say about a code of a Fault. It is false for a
// code that there is not.
func Explain(code string) (Explanation, bool) { return Explanation{Code: code}, false }
