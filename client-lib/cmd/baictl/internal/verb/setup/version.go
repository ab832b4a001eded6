// Package setup has the verbs that concern baictl itself.
package setup

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

// Version is the verb version.
func Version(s *session.Session) *cobra.Command {
	var alone bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of baictl and of the platform",
		Long: `Shows the versions of baictl and of the platform, and says where one is older
than the other. With -o json or yaml: {"client": {"version", "go", "system",
"revision"}, "server": {"address", "version", "commit", "revision"}}; revision
is what each understands of the API.`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return versions(cmd.Context(), s, alone) },
	}
	cmd.Flags().BoolVar(&alone, "client", false, "only that of baictl")
	return cmd
}

func versions(ctx context.Context, s *session.Session, alone bool) error {
	own := session.OwnVersion(s.Env.Version)
	if s.Output == "name" {
		return session.WriteText(s.Env.Out, own+"\n")
	}
	system := runtime.GOOS + "/" + runtime.GOARCH
	if !s.Structured() {
		if err := session.WriteText(s.Env.Out, "baictl   "+own+" ("+runtime.Version()+", "+system+")\n"); err != nil {
			return err
		}
	}
	client, err := session.Object(session.Entry{Name: "version", Value: own}, session.Entry{Name: "go", Value: runtime.Version()},
		session.Entry{Name: "system", Value: system}, session.Entry{Name: "revision", Value: bai.Revision})
	if err != nil {
		return err
	}
	parts := []session.Entry{{Name: "client", Value: client}}
	if alone {
		return printVersions(s, parts)
	}
	server, failed := serverVersion(ctx, s)
	if failed != nil {
		return errors.Join(printVersions(s, parts), failed)
	}
	return printVersions(s, append(parts, session.Entry{Name: "server", Value: server}))
}

func printVersions(s *session.Session, parts []session.Entry) error {
	if !s.Structured() {
		return nil
	}
	text, err := session.Object(parts...)
	if err != nil {
		return err
	}
	return s.Print(text)
}

// serverVersion prints the platform's version for people, and returns it for
// programs.
func serverVersion(ctx context.Context, s *session.Session) (any, error) {
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	about, err := c.About(ctx)
	if _, old := errors.AsType[*bai.UnsupportedError](err); old {
		about, err = bai.About{Version: "unknown", Revision: 1}, nil // a platform older than this call
	}
	if err != nil {
		return nil, err
	}
	where, err := s.ResolveContext()
	if err != nil {
		return nil, err
	}
	if s.Structured() {
		return session.Object(session.Entry{Name: "address", Value: where.Server}, session.Entry{Name: "version", Value: about.Version},
			session.Entry{Name: "commit", Value: about.Commit}, session.Entry{Name: "revision", Value: about.Revision})
	}
	text := "platform " + about.Version
	if about.Commit != "" {
		text += " (" + about.Commit + ")"
	}
	if err := session.WriteText(s.Env.Out, text+" at "+where.Server+"\n"); err != nil {
		return nil, err
	}
	if note := skew(about.Revision); note != "" {
		s.Screen.Note("baictl: " + note)
	}
	return nil, nil
}

// skew says where client and platform understand each other only in part.
func skew(server int32) string {
	switch {
	case server < bai.Revision:
		return fmt.Sprintf(
			"the platform is older: it understands revision %d of the API, this baictl %d; what it lacks is refused with a message", server,
			bai.Revision)
	case server > bai.Revision:
		return fmt.Sprintf("this baictl is older: it understands revision %d of the API, the platform %d; everything that it has works",
			bai.Revision, server)
	}
	return ""
}
