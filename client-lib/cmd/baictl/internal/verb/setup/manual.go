package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/manual"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

// Manual is the verb manual, for packagers of baictl.
func Manual(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:    "manual markdown|man [FOLDER]",
		Short:  "Print the manual, or write the man pages into a folder",
		Hidden: true,
		Long: `Prints this manual: as Markdown, or as one man page. With a FOLDER it writes it
there, as baictl.md, or as a man page for each verb.`,
		Args:        session.Arguments(1, 2, "markdown or man"),
		Annotations: session.OnlyFormats("table"),
		ValidArgs:   []string{"markdown", "man"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch {
			case args[0] == "markdown" && len(args) == 1:
				return session.WriteText(s.Env.Out, manual.Markdown(root))
			case args[0] == "markdown":
				return write(filepath.Join(args[1], "baictl.md"), manual.Markdown(root))
			case args[0] == "man" && len(args) == 1:
				return session.WriteText(s.Env.Out, manual.Man(root))
			case args[0] == "man":
				return writePages(root, args[1])
			}
			return session.UsageErrorf(cmd, "%q: want markdown or man", args[0])
		},
	}
}

func writePages(root *cobra.Command, folder string) error {
	for _, cmd := range manual.Commands(root) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		if err := write(filepath.Join(folder, name), manual.Man(cmd)); err != nil {
			return err
		}
	}
	return nil
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the manual: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the manual: %w", err)
	}
	return nil
}
