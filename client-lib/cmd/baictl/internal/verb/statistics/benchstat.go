package statistics

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/internal/benchstat"
)

// printBenchstat prints what benchstat prints for the same arguments.
func printBenchstat(cmd *cobra.Command, s *session.Session, args []string) error {
	inputs := make([]benchstat.Input, len(args))
	piped := false
	for i, arg := range args {
		inputs[i].Name = arg
		if _, path, labelled := strings.Cut(arg, "="); arg != "-" && (!labelled || path != "-") {
			continue
		}
		if piped {
			return session.UsageErrorf(cmd, "- is given more than once: standard input can be read once")
		}
		inputs[i].Text, piped = s.Env.In, true
	}
	return writeBenchstat(s, inputs)
}

// writeBenchstat prints the tables of benchstat.
func writeBenchstat(s *session.Session, inputs []benchstat.Input) error {
	var tables, warnings strings.Builder // errors are those of reading
	err := benchstat.Print(&tables, &warnings, inputs)
	if err := session.WriteText(s.Env.Err, warnings.String()); err != nil {
		return err
	}
	if err != nil {
		return unreadable(err)
	}
	return session.WriteText(s.Env.Out, tables.String())
}

// unreadable returns the error of a user whose file cannot be read.
func unreadable(err error) error {
	remedy := "name a file with results, or - for standard input"
	if where, long := strings.CutSuffix(err.Error(), ": "+bufio.ErrTooLong.Error()); long {
		return &exitcode.UsageError{Message: fmt.Sprintf("%s: the line is too long, 64 KiB or more (%s)", nextLine(where), remedy)}
	}
	e, ok := errors.AsType[*os.PathError](err)
	if !ok {
		return &exitcode.UsageError{Message: fmt.Sprintf("read %v (%s)", err, remedy)}
	}
	name := e.Path
	if name == os.Stdin.Name() {
		name = "-"
	}
	if errors.Is(e, fs.ErrPermission) {
		remedy = "chmod +r it, or name another file"
	}
	return &exitcode.UsageError{Message: fmt.Sprintf("read %s: %v (%s)", fileName(name), e.Err, remedy)}
}

// nextLine returns the place of the line after that of a place, which is PATH:LINE.
func nextLine(place string) string {
	colon := strings.LastIndex(place, ":")
	line, err := strconv.Atoi(place[colon+1:])
	if colon < 0 || err != nil {
		return place
	}
	return fmt.Sprintf("%s:%d", fileName(place[:colon]), line+1)
}
