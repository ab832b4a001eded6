// Package manual writes the commands' help as a manual.
package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands are a command and all below it that are not hidden, each before
// those below it, by name.
func Commands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && cmd.Name() != "help" && cmd.Name() != "completion" {
			all = append(all, Commands(cmd)...)
		}
	}
	return all
}

// A flag as a manual has it.
type flag struct{ name, text string }

// flags are those of a command itself; of the root, those that all have.
func flags(cmd *cobra.Command) []flag {
	var all []flag
	add := func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			text += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		all = append(all, flag{name, text})
	}
	cmd.LocalFlags().VisitAll(add)
	return all
}

// Markdown is the manual of a command and all below it.
func Markdown(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n<!-- Made by `baictl manual markdown`: change the commands, not this file. -->\n\n", root.Name())
	for i, cmd := range Commands(root) {
		if i > 0 {
			fmt.Fprintf(&b, "## %s\n\n", cmd.CommandPath())
		}
		if cmd.HasParent() || cmd.Runnable() && !cmd.HasSubCommands() {
			fmt.Fprintf(&b, "%s.\n\n", cmd.Short)
		}
		fmt.Fprintf(&b, "```text\n%s\n```\n\n", usage(cmd))
		if cmd.Long != "" {
			fmt.Fprintf(&b, "```text\n%s\n```\n\n", cmd.Long)
		}
		if cmd.Example != "" {
			fmt.Fprintf(&b, "```sh\n%s\n```\n\n", unindent(cmd.Example))
		}
		table(&b, cmd)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func table(b *strings.Builder, cmd *cobra.Command) {
	all := flags(cmd)
	if len(all) == 0 {
		return
	}
	b.WriteString("| flag | |\n|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(b, "| `%s` | %s |\n", f.name, strings.ReplaceAll(f.text, "|", `\|`))
	}
	b.WriteString("\n")
}

func usage(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && !cmd.HasParent() {
		return cmd.Name() + " VERB [NOUN] [NAME] [flags]"
	}
	return cmd.UseLine()
}

func unindent(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
	}
	return strings.Join(lines, "\n")
}

// Man is the man page of a command.
func Man(cmd *cobra.Command) string {
	var b strings.Builder
	title := strings.ToUpper(strings.ReplaceAll(cmd.CommandPath(), " ", "-"))
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"Benchmark AI\" \"User Commands\"\n", title)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(strings.ReplaceAll(cmd.CommandPath(), " ", "-")), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(usage(cmd)))
	if cmd.Long != "" {
		literal(&b, "DESCRIPTION", cmd.Long)
	}
	pageFlags(&b, "OPTIONS", flags(cmd))
	if cmd.HasParent() {
		pageFlags(&b, "OPTIONS OF EVERY VERB", flags(cmd.Root()))
	}
	if cmd.Example != "" {
		literal(&b, "EXAMPLES", unindent(cmd.Example))
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, cmd.Parent().CommandPath())
	}
	for _, below := range Commands(cmd)[1:] {
		if below.Parent() == cmd {
			others = append(others, below.CommandPath())
		}
	}
	for i, other := range others {
		others[i] = fmt.Sprintf("\\fB%s\\fR(1)", roff(strings.ReplaceAll(other, " ", "-")))
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ", "))
	return b.String()
}

// literal is a section of unchanged lines.
func literal(b *strings.Builder, title, text string) {
	fmt.Fprintf(b, ".SH %s\n.nf\n", title)
	for line := range strings.Lines(text) {
		b.WriteString(roff(strings.TrimRight(line, "\n")) + "\n")
	}
	b.WriteString(".fi\n")
}

func pageFlags(b *strings.Builder, title string, all []flag) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, f := range all {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(f.name), roff(f.text))
	}
}

// roff is a line of text that roff takes for nothing else.
func roff(line string) string {
	line = strings.ReplaceAll(line, `\`, `\e`)
	line = strings.ReplaceAll(line, "-", `\-`)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}
