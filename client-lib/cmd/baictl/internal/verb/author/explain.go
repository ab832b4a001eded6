package author

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/descriptors/parser"
)

// Explain is the verb explain.
func Explain(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain a fault of a descriptor, with an example",
		Long: `Explains a fault of a descriptor by its code, as validate -o wide, json and
sarif show it, with an example that has the fault and one that is mended.
Without a code it lists all.

With -o json or yaml: {"code", "title", "text", "example", "mended"}, or
{"faults": [...]} of these. With -o name: the codes.`,
		Example: `  baictl explain BAI0012`,
		Args:    session.Arguments(0, 1, ""),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return completeCodes(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return explainAll(s)
			}
			e, ok := parser.Explain(normalizeCode(args[0]))
			if !ok {
				return session.UsageErrorf(cmd, "there is no fault %q: baictl explain lists them", args[0])
			}
			return explainOne(s, e)
		},
	}
}

// normalizeCode is a code as it is written: BAI0012 for bai12 and 12.
func normalizeCode(code string) string {
	digits := strings.TrimPrefix(strings.ToUpper(code), "BAI")
	if len(digits) < 4 {
		digits = strings.Repeat("0", 4-len(digits)) + digits
	}
	return "BAI" + digits
}

func completeCodes() []string {
	var all []string
	for _, code := range parser.Codes() {
		e, _ := parser.Explain(code) // one of its own
		all = append(all, cobra.CompletionWithDesc(code, e.Title))
	}
	return all
}

func explanation(e parser.Explanation) (json.RawMessage, error) {
	return session.Object(session.Entry{Name: "code", Value: e.Code}, session.Entry{Name: "title", Value: e.Title},
		session.Entry{Name: "text", Value: e.Text}, session.Entry{Name: "example", Value: e.Example},
		session.Entry{Name: "mended", Value: e.Mended})
}

func explainOne(s *session.Session, e parser.Explanation) error {
	switch s.Output {
	case "json", "yaml":
		text, err := explanation(e)
		if err != nil {
			return err
		}
		return s.Print(text)
	case "name":
		return session.WriteText(s.Env.Out, e.Code+"\n")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n\n%s\n\nWrong:\n\n%s", e.Code, e.Title, strings.Join(printer.Wrap(e.Text, 80), "\n"),
		printer.Indent4(e.Example))
	if e.Mended != "" {
		fmt.Fprintf(&b, "\nRight:\n\n%s", printer.Indent4(e.Mended))
	}
	return session.WriteText(s.Env.Out, b.String())
}

func explainAll(s *session.Session) error {
	t := printer.Table{Columns: []printer.Column{{Title: "CODE"}, {Title: "FAULT", Flex: true}}}
	var objects []json.RawMessage
	for _, code := range parser.Codes() {
		e, _ := parser.Explain(code) // one of its own
		t.Rows = append(t.Rows, []string{e.Code, e.Title})
		object, err := explanation(e)
		if err != nil {
			return err
		}
		objects = append(objects, object)
	}
	switch s.Output {
	case "json", "yaml":
		text, err := session.Object(session.Entry{Name: "faults", Value: objects})
		if err != nil {
			return err
		}
		return s.Print(text)
	case "name":
		return session.WriteText(s.Env.Out, strings.Join(parser.Codes(), "\n")+"\n")
	}
	return s.PrintTable(t)
}
