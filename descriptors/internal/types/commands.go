package types

import (
	"errors"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/words"
)

func commands() decode.ValueTypes {
	return decode.ValueTypes{
		"command": text("words, as for a shell; quotes have partners", commandOnly),
		"code":    text("words, as for a shell, or a script that begins with `#!`", code),
	}
}

func code(v decode.Value, s string) any {
	interpreter, _, ok := Script(s)
	if !ok {
		return command(v, s, "begin with #!/bin/sh to run them as a script, or",
			"begin with #!/bin/sh and put the command on the next line")
	}
	if split, err := words.Split(interpreter); err != nil || len(split) == 0 {
		v.Fault(fault.Interpreter, "the first line of the script names no interpreter", "write #!/bin/sh, or the path of another one")
		return nil
	}
	return s
}

// commandOnly reads a command and refuses a script.
func commandOnly(v decode.Value, s string) any {
	return command(v, s, "", "write sh -c and the command in single quotes")
}

// command reads words; the last two parameters are the remedies for commands that need a
// shell.
func command(v decode.Value, s, asScript, withShell string) any {
	split, err := words.Read(s)
	if e, ok := errors.AsType[*words.UnbalancedError](err); ok {
		v.FaultAt(v.Inside(e.Offset), fault.Quotes, e.Error(), "write its partner, or a backslash before it")
		return nil
	}
	if lines(s) > 1 {
		v.Warn(fault.OneCommand, "several lines without #! are one command, split into words",
			strings.TrimSpace(asScript+" end each but the last with a backslash"))
	}
	if word := words.NeedsShell(split, IsPlatformVariable); word != "" {
		v.Warn(fault.NoShell, Unexpanded(word), withShell+"; "+WithoutShell)
	}
	return s
}

// IsPlatformVariable reports whether the platform puts the value of a variable in place of
// ${NAME} in some command: see IsCodeVariable for those that every benchmark has.
func IsPlatformVariable(name string) bool {
	const port = "INFERENCE_SERVER_PORT"
	return IsCodeVariable(name) || name == "INFERENCE_SERVER_HOST" || name == port || strings.HasPrefix(name, port+"_")
}

// IsCodeVariable reports whether a variable is that of the folder of code that was sent
// along.
func IsCodeVariable(name string) bool { return name == "BAI_SCRIPTS_PATH" }

// Unexpanded says that no shell puts values into a word.
func Unexpanded(word string) string {
	return fmt.Sprintf("no shell runs the command: %q is handed on as it is", word)
}

// WithoutShell is how variables are written where there is no shell.
const WithoutShell = "$(NAME) stands for a variable without a shell"

// lines is the number of lines of s that are not empty and do not continue the
// line before.
func lines(s string) int {
	n, continued := 0, false
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line != "" && !continued {
			n++
		}
		continued = strings.HasSuffix(line, `\`)
	}
	return n
}

// Script is the script that a command is, if its first line begins with #!: the
// words behind that, and the text from there on without the indentation that
// all of its lines share.
func Script(command string) (interpreter, text string, ok bool) {
	text = outdent(strings.TrimRight(command, " \t\r\n"))
	if !strings.HasPrefix(text, "#!") {
		return "", "", false
	}
	first, _, _ := strings.Cut(text[2:], "\n")
	return strings.TrimSpace(first), text + "\n", true
}

// outdent is text without the empty lines at its beginning, and without the
// blanks with which all other lines that are not empty begin.
func outdent(text string) string {
	rows := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for len(rows) > 0 && strings.TrimSpace(rows[0]) == "" {
		rows = rows[1:]
	}
	if len(rows) == 0 {
		return ""
	}
	shared := indent(rows[0])
	for _, line := range rows {
		for strings.TrimSpace(line) != "" && !strings.HasPrefix(line, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	for i, line := range rows {
		rows[i] = strings.TrimPrefix(line, shared)
		if strings.TrimSpace(line) == "" {
			rows[i] = ""
		}
	}
	return strings.Join(rows, "\n")
}

func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}
