package author

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/descriptors/templates"
)

// Init is the verb init.
func Init(s *session.Session) *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:         "init [FILE]",
		Short:       "Write a commented descriptor to begin with",
		Annotations: session.OnlyFormats("table", "name"),
		Long: `Writes a commented descriptor that is valid as it is: to a FILE, which must not
be there yet, or to standard output. --kind says for what kind of benchmark:
` + strings.Join(templates.Kinds(), ", ") + `.`,
		Example: `  baictl init --kind mpi resnet.toml
  baictl validate resnet.toml`,
		Args: session.Arguments(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, ok := templates.Text(kind)
			if !ok {
				return session.UsageErrorf(cmd, "--kind %q: use %s", kind, session.JoinOr(templates.Kinds()))
			}
			if len(args) == 0 || args[0] == "-" {
				return session.WriteText(s.Env.Out, string(text))
			}
			if err := create(args[0], text); err != nil {
				return session.UsageErrorf(cmd, "%s", err)
			}
			if s.Output == "name" {
				return session.WriteText(s.Env.Out, args[0]+"\n")
			}
			s.Screen.Note(fmt.Sprintf("wrote %s; edit it, then run baictl validate %s", args[0], args[0]))
			return nil
		},
	}
	cmd.Flags().StringVar(&kind, "kind", templates.Kinds()[0], "`KIND` of benchmark")
	// Fails for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(templates.Kinds(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// create writes a file that is not there yet.
func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists", path)
	}
	if err != nil {
		return fmt.Errorf("write the descriptor: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the descriptor: %w", err)
	}
	return nil
}
