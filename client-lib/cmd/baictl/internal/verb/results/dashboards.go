package results

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/contexts"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/client-lib/internal/kibana"
)

// Dashboards is the verb dashboards.
func Dashboards(s *session.Session) *cobra.Command {
	return session.Parent(&cobra.Command{
		Use:   "dashboards",
		Short: "Have Kibana show runs",
		Long: `Has Kibana show the runs of a platform that keeps them in Elasticsearch: one
run, all of them, a benchmark's history, and a few runs beside each other.`,
	}, installDashboards(s), exportDashboards(s))
}

// kibanaFlags is how Kibana is spoken to.
type kibanaFlags struct {
	server  kibana.Server
	prefix  string
	keyFile string
	pwFile  string
}

func installDashboards(s *session.Session) *cobra.Command {
	var a kibanaFlags
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Import the dashboards into Kibana",
		Long: `Imports data views, saved searches and dashboards into Kibana, in place of those
of an earlier time. Kibana is that of --kibana or of the context (baictl config
set-context NAME --kibana URL); then baictl get prints the link of a run. A
--prefix is kept in the contexts with that Kibana, for the link.`,
		Example: `  baictl dashboards install --kibana https://kibana.example.org \
    --api-key-file ~/.kibana-key`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.resolve(s); err != nil {
				return err
			}
			objects, err := kibana.Objects(a.prefix)
			if err != nil {
				return err
			}
			n, err := a.server.Install(cmd.Context(), objects)
			if err != nil {
				return err // as for any platform that cannot be reached
			}
			s.Screen.Note(fmt.Sprintf("installed %d objects: %s/app/dashboards", n, strings.TrimSuffix(a.server.URL, "/")))
			return a.keepPrefix(s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.server.URL, "kibana", "", "`URL` of Kibana; empty means that of the context")
	f.StringVar(&a.server.Space, "space", "", "`ID` of the space; empty means the default one")
	f.StringVar(&a.keyFile, "api-key-file", "", "`FILE` with an API key")
	f.StringVar(&a.server.User, "user", "", "`NAME` to log in with, instead of a key")
	f.StringVar(&a.pwFile, "password-file", "", "`FILE` with that user's password")
	f.StringVar(&a.prefix, "prefix", "",
		"`TEXT` with which the names of the platform's indices begin; empty means that of the context, or bai")
	return cmd
}

// keepPrefix keeps the prefix in the contexts whose Kibana has the dashboards.
func (a *kibanaFlags) keepPrefix(s *session.Session) error {
	all, err := contexts.Load(s.ConfigPath())
	if err != nil {
		return &exitcode.UsageError{Message: err.Error(), Help: "baictl config --help"}
	}
	changed := false
	for name, one := range all.All {
		if strings.TrimSuffix(one.Kibana, "/") != strings.TrimSuffix(a.server.URL, "/") ||
			cmp.Or(one.KibanaPrefix, kibana.Prefix) == a.prefix {
			continue
		}
		one.KibanaPrefix, changed = a.prefix, true
		all.All[name] = one
	}
	if !changed {
		return nil
	}
	return all.Save(s.ConfigPath())
}

// resolve reads the flags, and reports missing ones.
func (a *kibanaFlags) resolve(s *session.Session) error {
	where, err := s.ResolveContext()
	if err != nil {
		return err
	}
	a.server.URL = cmp.Or(a.server.URL, where.Kibana)
	a.prefix = cmp.Or(a.prefix, where.KibanaPrefix, kibana.Prefix)
	if a.server.URL == "" {
		return &exitcode.UsageError{Message: "name the Kibana: --kibana URL", Help: "baictl dashboards install --help"}
	}
	if err := session.CheckKibana(a.server.URL); err != nil {
		return err
	}
	if (a.server.User == "") != (a.pwFile == "") || a.keyFile != "" && a.server.User != "" {
		return &exitcode.UsageError{Message: "give --api-key-file, or --user and --password-file", Help: "baictl dashboards install --help"}
	}
	for path, into := range map[string]*string{a.keyFile: &a.server.APIKey, a.pwFile: &a.server.Password} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return &exitcode.UsageError{Message: err.Error()}
		}
		*into = strings.TrimSpace(string(text))
	}
	return nil
}

func exportDashboards(s *session.Session) *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the dashboards as Kibana imports them",
		Long: `Prints saved objects, a line of JSON each, for Stack Management > Saved Objects
> Import.`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			objects, err := kibana.Objects(prefix)
			if err != nil {
				return err
			}
			return session.WriteText(s.Env.Out, string(objects))
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", kibana.Prefix, "`TEXT` with which the names of the platform's indices begin")
	return cmd
}
