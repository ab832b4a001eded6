package verb

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
)

func versionCommand(s *session) *cobra.Command {
	var alone bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of baictl and of the platform",
		Long: `Shows the versions of baictl and of the platform. With -o json or yaml:
{"client": {"version", "go", "system"}, "server": {"address", "version", "commit"}}.`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.version(cmd.Context(), alone) },
	}
	cmd.Flags().BoolVar(&alone, "client", false, "only that of baictl")
	return cmd
}

func (s *session) version(ctx context.Context, alone bool) error {
	own := ownVersion(s.env.Version)
	if s.output == "name" {
		return put(s.env.Out, own+"\n")
	}
	system := runtime.GOOS + "/" + runtime.GOARCH
	if !s.structured() {
		if err := put(s.env.Out, "baictl   "+own+" ("+runtime.Version()+", "+system+")\n"); err != nil {
			return err
		}
	}
	client, err := object(entry{"version", own}, entry{"go", runtime.Version()}, entry{"system", system})
	if err != nil {
		return err
	}
	if alone {
		return s.printVersions(entry{"client", client})
	}
	server, failed := s.serverVersion(ctx)
	if failed != nil {
		return errors.Join(s.printVersions(entry{"client", client}), failed)
	}
	return s.printVersions(entry{"client", client}, entry{"server", server})
}

func (s *session) printVersions(parts ...entry) error {
	if !s.structured() {
		return nil
	}
	text, err := object(parts...)
	if err != nil {
		return err
	}
	return s.print(text)
}

// serverVersion prints the platform's version for people, and returns it for
// programs.
func (s *session) serverVersion(ctx context.Context) (any, error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	version, commit, err := c.Version(ctx)
	if _, old := errors.AsType[*bai.UnsupportedError](err); old {
		version, err = "unknown", nil // from before platforms said it
	}
	if err != nil {
		return nil, err
	}
	if !s.structured() {
		text := "platform " + version
		if commit != "" {
			text += " (" + commit + ")"
		}
		return nil, put(s.env.Out, text+" at "+s.server+"\n")
	}
	return object(entry{"address", s.server}, entry{"version", version}, entry{"commit", commit})
}

func ownVersion(linked string) string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
