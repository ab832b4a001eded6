package results

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

// benchstatOutput is the output of compare.
const benchstatOutput = "benchstat"

// Compare is the verb compare.
func Compare(s *session.Session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "compare OLD NEW [MORE...]",
		Short: "Compare results of go test -bench, as benchstat does",
		Long: `Compares results of go test -bench. The output is that of benchstat OLD NEW,
byte for byte. No platform is needed.

A run is compared file by file: each file has the output of one run and is a
column of the tables, and each column is compared with the first one. - is
standard input. A column is headed by the path, or by LABEL if you write
LABEL=PATH; files of one LABEL share a column. A file alone is summarised.

The numbers are medians; ± is how far the 95 % confidence interval extends. p is
the probability of such a difference if nothing changed; ~ means that p is above
0.05. geomean is the geometric mean of the medians above it.

Run each benchmark ten times, with -count=10: fewer than 6 have no interval.

Lines that cannot be read are left out, with a warning on standard error. The
exit code is 0, and 2 for a file that cannot be read.`,
		Example: `  go test -bench . -count 10 > new.txt
  baictl compare old.txt new.txt
  baictl logs nightly-7 --stdout --raw | baictl compare old.txt nightly-7=-`,
		Args: session.Arguments(1, -1, "a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != benchstatOutput {
				return session.UsageErrorf(cmd, "%s has no output %q, only %s", cmd.Name(), output, benchstatOutput)
			}
			return compare(cmd, s, args)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", benchstatOutput, "`FORMAT` of the output: "+benchstatOutput)
	// This fails for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{benchstatOutput}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// compare prints what benchstat prints for the same arguments.
func compare(cmd *cobra.Command, s *session.Session, args []string) error {
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
	remedy := "name a file with the output of go test -bench, or - for standard input"
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
