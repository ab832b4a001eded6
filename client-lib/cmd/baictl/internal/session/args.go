package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
)

// everyFormat lists the values of -o, unless a verb has its own.
const everyFormat = "table wide json yaml name"

// formatsKey is the annotation with the formats that a verb has.
const formatsKey = "output"

// OnlyFormats are the annotations of a verb that has these formats and no others.
func OnlyFormats(formats ...string) map[string]string {
	return map[string]string{formatsKey: strings.Join(formats, " ")}
}

// ExtraFormats are the annotations of a verb that has formats beside the usual ones.
func ExtraFormats(formats ...string) map[string]string {
	return OnlyFormats(append([]string{everyFormat}, formats...)...)
}

func formats(cmd *cobra.Command) []string {
	for c := cmd; c != nil; c = c.Parent() {
		if own, ok := c.Annotations[formatsKey]; ok {
			return strings.Fields(own)
		}
	}
	return strings.Fields(everyFormat)
}

// UsageErrorf is a mistake in the command line.
func UsageErrorf(cmd *cobra.Command, format string, args ...any) error {
	return &exitcode.UsageError{Message: fmt.Sprintf(format, args...), Help: cmd.CommandPath() + " --help"}
}

// Arguments checks how many there are; most < 0 is no limit.
func Arguments(least, most int, description string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return UsageErrorf(cmd, "%s is missing", description)
		case slices.Contains(args, ""): // as of a script whose variable is
			return UsageErrorf(cmd, "an argument is empty")
		case most >= 0 && len(args) > most:
			return UsageErrorf(cmd, "too many arguments: %q", args[most])
		default:
			return nil
		}
	}
}

// Parent is a command that only has others below it.
func Parent(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return Unknown(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(below...)
	return cmd
}

// Unknown is the error of a verb that there is not.
func Unknown(cmd *cobra.Command, verb string) error {
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(verb); len(near) > 0 {
		return UsageErrorf(cmd, "unknown verb %q, did you mean %q?", verb, near[0])
	}
	return UsageErrorf(cmd, "unknown verb %q", verb)
}

// WithNoun lets a verb be followed by its noun: run benchmark, get benchmark.
func WithNoun(cmd *cobra.Command) *cobra.Command {
	cmd.AddCommand(&cobra.Command{
		Use:               "benchmark",
		Aliases:           []string{"benchmarks"},
		Hidden:            true,
		Short:             cmd.Short,
		Long:              cmd.Long,
		Args:              cmd.Args,
		RunE:              cmd.RunE,
		ValidArgsFunction: cmd.ValidArgsFunction,
	})
	return cmd
}

// Pairs reads k=v.
func Pairs(cmd *cobra.Command, flag string, all []string) (map[string]string, error) {
	read := map[string]string{}
	for _, one := range all {
		k, v, ok := strings.Cut(one, "=")
		if !ok || k == "" {
			return nil, UsageErrorf(cmd, "--%s %q: want KEY=VALUE", flag, one)
		}
		read[k] = v
	}
	return read, nil
}
