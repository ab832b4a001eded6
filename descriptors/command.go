package descriptors

import (
	"regexp"

	"github.com/benchmark-ai/bai/descriptors/internal/types"
	"github.com/benchmark-ai/bai/descriptors/internal/words"
)

// Command is the command of the benchmark's container.
//
//   - benchmark_code is given: argv are its words and those of args.
//   - benchmark_code is a script (see Script): argv are the words of its
//     interpreter, args those of args; the script's file belongs between them.
//   - only args is given: argv is nil, the image's entrypoint is run with args.
//   - nothing is given: both are nil.
//
// The error is nil for a descriptor that package parser returned: it checks the quotes.
func (d *Descriptor) Command() (argv, args []string, err error) {
	if d.ML == nil {
		return nil, nil, nil
	}
	if interpreter, _, ok := d.Script(); ok {
		return commandOf(interpreter, d.ML.Args, true)
	}
	return commandOf(d.ML.BenchmarkCode, d.ML.Args, false)
}

// Command is the command of the server's container: argv if start_command is given, else
// the image's entrypoint with args, as Descriptor.Command. If start_command is a script,
// argv are the words of its interpreter.
func (e ServerEnv) Command() (argv, args []string, err error) {
	if interpreter, _, ok := e.Script(); ok {
		return commandOf(interpreter, e.StartCommandArgs, true)
	}
	return commandOf(e.StartCommand, e.StartCommandArgs, false)
}

// Program is the command of a parser of kind command: argv are its words. For a script,
// argv are the words of its interpreter, after which the script's file belongs, and script
// is its text. The error is nil for a descriptor that package parser returned.
func (p Parser) Program() (argv []string, script string, err error) {
	code := p.Command
	if interpreter, text, ok := types.Script(code); ok {
		code, script = interpreter, text
	}
	argv, err = words.Split(code)
	return argv, script, err
}

// commandOf is code and its arguments. Apart, the arguments are not joined to
// the words of code.
func commandOf(code, arguments string, apart bool) (argv, args []string, err error) {
	if argv, err = words.Split(code); err != nil {
		return nil, nil, err
	}
	if args, err = words.Split(arguments); err != nil {
		return nil, nil, err
	}
	switch {
	case len(argv) > 0 && !apart:
		return append(argv, args...), nil, nil
	case len(argv) == 0:
		argv = nil
	}
	if len(args) == 0 {
		args = nil
	}
	return argv, args, nil
}

// Script is benchmark_code if it is a script: a text whose first line begins with #!. The
// interpreter is the rest of this line, with its arguments; the text begins with that
// line, without the indentation that all lines share, and ends with the end of a line.
func (d *Descriptor) Script() (interpreter, text string, ok bool) {
	if d.ML == nil {
		return "", "", false
	}
	return types.Script(d.ML.BenchmarkCode)
}

// Script is start_command where it is a script, as Descriptor.Script.
func (e ServerEnv) Script() (interpreter, text string, ok bool) { return types.Script(e.StartCommand) }

// Regexp is the compiled pattern of a metric that package parser gave out, and nil for
// one whose pattern it would refuse.
func (m Metric) Regexp() *regexp.Regexp {
	re, err := regexp.Compile(m.Pattern)
	if err != nil {
		return nil
	}
	return re
}
