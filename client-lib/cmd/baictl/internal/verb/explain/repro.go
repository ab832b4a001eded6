package explain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/repeat"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Repro is the verb repro.
func Repro(s *session.Session) *cobra.Command {
	var text bool
	cmd := &cobra.Command{
		Use:   "repro RUN",
		Short: "Show how to repeat a run exactly, and its unrepeatable parts",
		Long: `Says how a run was asked for, the commands that repeat it on this platform and
on any other, the digests of its data, what cannot be repeated exactly and how
to mend that, and shows the exact descriptor, with what was put in place of its
values. Where the descriptor came from is looked at again.

With --descriptor: that text alone, byte for byte. With -o json or yaml: {"run",
"asked", "commands", "origination", "script", "overrides", "data", "gaps":
[{"what", "why", "remedy"}], "descriptorSha256", "descriptorToml"}. With -o
name: the commands.`,
		Args:              session.Arguments(1, 1, "a RUN"),
		ValidArgsFunction: s.OneRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return repro(cmd.Context(), s, args[0], text) },
	}
	cmd.PersistentFlags().BoolVar(&text, "descriptor", false, "print the exact descriptor and nothing else")
	return session.WithNoun(cmd)
}

// A recipe is how a run is repeated.
type reproduction struct {
	run             *baiv1.Run
	originalCommand string
	commands        []string
	gaps            []repeat.Gap
}

func repro(ctx context.Context, s *session.Session, name string, text bool) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	run, err := c.Get(ctx, name)
	if err != nil {
		return err
	}
	if text {
		return session.WriteText(s.Env.Out, run.GetDescriptorToml())
	}
	doc := input.Document{Name: run.GetDescriptorFile(), Text: []byte(run.GetDescriptorToml())}
	descriptor := doc.Check(nil, false).Descriptor
	labels := repeat.Labels(run, descriptor)
	r := reproduction{
		run:             run,
		originalCommand: repeat.OriginalCommand(run, labels),
		commands:        repeat.Commands(run, labels),
		gaps:            repeat.Gaps(run, descriptor, runEnvironment(ctx, c, run), checkOrigin(ctx, c, run)),
	}
	switch s.Output {
	case "json", "yaml":
		object, err := r.object()
		if err != nil {
			return err
		}
		return s.Print(object)
	case "name":
		return session.WriteText(s.Env.Out, strings.Join(r.commands, "\n")+"\n")
	}
	return session.WriteText(s.Env.Out, r.describe(s.Screen.Width()))
}

// runEnvironment is the environment of a run, nil if an older platform does not record
// it.
func runEnvironment(ctx context.Context, c *bai.Client, run *baiv1.Run) *baiv1.Environment {
	e, err := c.Environment(ctx, run.GetId())
	if err != nil {
		return nil
	}
	return e
}

// checkOrigin looks at the place that a run's descriptor came from.
func checkOrigin(ctx context.Context, c *bai.Client, run *baiv1.Run) repeat.OriginState {
	if run.GetOrigination() == nil {
		return repeat.OriginState{}
	}
	const long = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	text, origin, err := c.Fetch(ctx, run.GetNamespace(), run.GetOrigination().GetUri())
	if err != nil {
		return repeat.OriginState{Checked: true, Fault: exitcode.Line(err)}
	}
	if origin.GetSha256() != "" {
		return repeat.OriginState{Checked: true, Sha256: origin.GetSha256()}
	}
	return repeat.OriginState{Checked: true, Sha256: digest(text)}
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func (r reproduction) describe(width int) string {
	var b strings.Builder
	title := func(text string) { b.WriteString(text + "\n\n") }
	item := func(text string) {
		for i, line := range printer.Wrap(printer.Clean(text), max(0, width-4)) {
			b.WriteString([]string{"  ", "    "}[min(i, 1)] + line + "\n")
		}
	}
	title("It was asked for by:")
	b.WriteString("  " + printer.Clean(r.originalCommand) + "\n")
	title("\nIt is repeated by, here and elsewhere:")
	for _, c := range r.commands {
		b.WriteString("  " + strings.ReplaceAll(printer.Clean(c), " && ", " &&\n    ") + "\n")
	}
	if c := r.run.GetScript(); c != nil {
		title("\nIts code:")
		b.WriteString("  " + printer.Bytes(c.GetSize()) + "\n    sha256 " + printer.Clean(c.GetSha256()) + "\n")
	}
	sets := slices.DeleteFunc(slices.Clone(r.run.GetData()), printer.IsCode)
	if len(sets) > 0 {
		title("\nIts data:")
	}
	for _, d := range sets {
		item(fmt.Sprintf("%s at %s", d.GetSource(), d.GetPath()))
		if d.GetSha256() != "" {
			b.WriteString("    sha256 " + printer.Clean(d.GetSha256()) + "\n")
		}
	}
	if len(r.gaps) == 0 {
		title("\nNothing is known that could differ. Its descriptor:")
		return b.String() + printer.Indent4(r.run.GetDescriptorToml())
	}
	title("\nWhat cannot be repeated exactly:")
	for _, g := range r.gaps {
		text := g.Subject + ": " + g.Why
		if g.Remedy != "" {
			text += " (" + g.Remedy + ")"
		}
		item(text)
	}
	b.WriteString("\nIts descriptor:\n  sha256 " + digest([]byte(r.run.GetDescriptorToml())) + "\n\n")
	return b.String() + printer.Indent4(r.run.GetDescriptorToml())
}

func (r reproduction) object() (json.RawMessage, error) {
	gaps := make([]json.RawMessage, len(r.gaps))
	for i, g := range r.gaps {
		text, err := session.Object(session.Entry{Name: "what", Value: g.Subject}, session.Entry{Name: "why", Value: g.Why},
			session.Entry{Name: "remedy", Value: g.Remedy})
		if err != nil {
			return nil, err
		}
		gaps[i] = text
	}
	fields := []session.Entry{
		{Name: "run", Value: r.run.GetId()},
		{Name: "asked", Value: r.originalCommand},
		{Name: "commands", Value: r.commands},
	}
	if r.run.GetOrigination() != nil {
		fields = append(fields, session.Entry{Name: "origination", Value: printer.JSON(r.run.GetOrigination())})
	}
	if r.run.GetScript() != nil {
		fields = append(fields, session.Entry{Name: "script", Value: printer.JSON(r.run.GetScript())})
	}
	fields = append(fields, session.Entry{Name: "overrides", Value: session.Array(r.run.GetOverrides())},
		session.Entry{Name: "data", Value: session.Array(r.run.GetData())},
		session.Entry{Name: "gaps", Value: gaps}, session.Entry{Name: "descriptorSha256", Value: digest([]byte(r.run.GetDescriptorToml()))},
		session.Entry{Name: "descriptorToml", Value: r.run.GetDescriptorToml()})
	return session.Object(fields...)
}
