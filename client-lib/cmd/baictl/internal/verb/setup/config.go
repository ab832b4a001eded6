package setup

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/contexts"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

// Config is the verb config.
func Config(s *session.Session) *cobra.Command {
	return session.Parent(&cobra.Command{
		Use:   "config",
		Short: "Keep the platforms that you use, by name",
		Long: `Keeps contexts: a platform's address, who you are there, and the team of what
you submit. They lie in bai/config.toml in $XDG_CONFIG_HOME, or else in
~/.config, readable by you alone:

    current = "home"

    [contexts.home]
    server = "127.0.0.1:7070"
    owner = "ann"
    namespace = "vision"
    kibana = "https://kibana.example.org"

Which one counts, the first that says something: the flags --server and --owner;
the context of --context; the environment, BAI_SERVER and BAI_OWNER; the context
that BAI_CONTEXT names, or else the current one; ` + bai.DefaultTarget + `
and the user's name.`,
	}, configList(s), configUse(s), configSet(s), configDelete(s), configView(s))
}

func (c configEditor) load() (contexts.Contexts, error) {
	all, err := contexts.Load(c.s.ConfigPath())
	if err != nil {
		return all, &exitcode.UsageError{Message: err.Error(), Help: "baictl config --help"}
	}
	return all, nil
}

// configEditor changes the file, and prints the change.
type configEditor struct {
	s *session.Session
}

func (c configEditor) update(change func(*contexts.Contexts) (message string, err error)) error {
	all, err := c.load()
	if err != nil {
		return err
	}
	if all.All == nil {
		all.All = map[string]contexts.Context{}
	}
	message, err := change(&all)
	if err != nil {
		return err
	}
	if err := all.Save(c.s.ConfigPath()); err != nil {
		return &exitcode.UsageError{Message: err.Error()}
	}
	if c.s.Output == "name" {
		return nil
	}
	c.s.Screen.Note(message)
	return nil
}

func requireContext(all contexts.Contexts, name string) error {
	if _, ok := all.All[name]; ok {
		return nil
	}
	return &exitcode.UsageError{Message: (&contexts.UnknownError{Name: name, From: "context", Known: all.Names()}).Error()}
}

func configList(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "get-contexts",
		Short: "List the contexts",
		Long: `Lists the contexts; * is the current one. With -o json or yaml: {"contexts":
[{"name", "current", "server", "owner", "namespace"}]}.`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return listContexts(s) },
	}
}

func listContexts(s *session.Session) error {
	all, err := configEditor{s}.load()
	if err != nil {
		return err
	}
	switch s.Output {
	case "json", "yaml":
		text, err := contextObjects(all)
		if err != nil {
			return err
		}
		return s.Print(text)
	case "name":
		for _, name := range all.Names() {
			if err := session.WriteText(s.Env.Out, name+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all.All) == 0 {
		s.Screen.Note("baictl: there are no contexts (make one: baictl config set-context NAME --server HOST:PORT)")
		return nil
	}
	t := printer.Table{Columns: []printer.Column{
		{Title: "CURRENT"},
		{Title: "NAME", Flex: true},
		{Title: "SERVER", Flex: true},
		{Title: "OWNER", Flex: true},
		{Title: "NAMESPACE", Flex: true},
	}}
	for _, name := range all.Names() {
		one, mark := all.All[name], " "
		if name == all.Current {
			mark = "*"
		}
		t.Rows = append(t.Rows, []string{mark, name, one.Server, one.Owner, one.Namespace})
	}
	return s.PrintTable(t)
}

func contextObjects(all contexts.Contexts) (json.RawMessage, error) {
	objects := make([]json.RawMessage, 0, len(all.All))
	for _, name := range all.Names() {
		one := all.All[name]
		text, err := session.Object(session.Entry{Name: "name", Value: name}, session.Entry{Name: "current", Value: name == all.Current},
			session.Entry{Name: "server", Value: one.Server}, session.Entry{Name: "owner", Value: one.Owner},
			session.Entry{Name: "namespace", Value: one.Namespace},
			session.Entry{Name: "kibana", Value: one.Kibana})
		if err != nil {
			return nil, err
		}
		objects = append(objects, text)
	}
	return session.Object(session.Entry{Name: "contexts", Value: objects})
}

func configUse(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:               "use-context NAME",
		Short:             "Make a context the current one",
		Args:              session.Arguments(1, 1, "a context's NAME"),
		ValidArgsFunction: s.Contexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return configEditor{s}.update(func(all *contexts.Contexts) (string, error) {
				if err := requireContext(*all, args[0]); err != nil {
					return "", err
				}
				all.Current = args[0]
				return fmt.Sprintf("context %s is the current one: %s", args[0], orDash(all.All[args[0]].Server)), nil
			})
		},
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func configSet(s *session.Session) *cobra.Command {
	var more contexts.Context
	cmd := &cobra.Command{
		Use:   "set-context NAME",
		Short: "Make or change a context",
		Long: `Makes or changes a context, from --server, --owner, --namespace, --kibana and
--kibana-prefix. A flag that is left out changes nothing, an empty one takes its
value away. The first context becomes the current one.`,
		Example: `  baictl config set-context lab --server lab.example.org:7070 --namespace vision
  baictl config use-context lab`,
		Args:              session.Arguments(1, 1, "a context's NAME"),
		ValidArgsFunction: s.Contexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return configEditor{s}.update(func(all *contexts.Contexts) (string, error) {
				return setContext(cmd, s, all, args[0], more)
			})
		},
	}
	cmd.Flags().StringVar(&more.Namespace, "namespace", "", "`TEAM` of what is submitted")
	cmd.Flags().StringVar(&more.Kibana, "kibana", "", "`URL` of the Kibana that shows the platform's runs")
	cmd.Flags().StringVar(&more.KibanaPrefix, "kibana-prefix", "",
		"`TEXT` that the dashboards were installed with (baictl dashboards install --prefix)")
	return cmd
}

func setContext(cmd *cobra.Command, s *session.Session, all *contexts.Contexts, name string, more contexts.Context) (string, error) {
	if fault := contexts.CheckName(name); fault != "" {
		return "", session.UsageErrorf(cmd, "%s", fault)
	}
	one, exists := all.All[name]
	typed := s.FlagContext()
	for _, f := range []struct {
		flag  string
		value string
		field *string
	}{
		{"server", typed.Server, &one.Server},
		{"owner", typed.Owner, &one.Owner},
		{"namespace", more.Namespace, &one.Namespace},
		{"kibana", more.Kibana, &one.Kibana},
		{"kibana-prefix", more.KibanaPrefix, &one.KibanaPrefix},
	} {
		if cmd.Flags().Changed(f.flag) {
			*f.field = f.value
		}
	}
	if one.Server != "" {
		if err := session.CheckServer(one.Server); err != nil {
			return "", err
		}
	}
	if err := session.CheckKibana(one.Kibana); err != nil {
		return "", err
	}
	all.All[name] = one
	message := fmt.Sprintf("context %s is made", name)
	if exists {
		message = fmt.Sprintf("context %s is changed", name)
	}
	if all.Current == "" && len(all.All) == 1 {
		all.Current = name
		message += ", and is the current one"
	}
	return message, nil
}

func configDelete(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:               "delete-context NAME",
		Short:             "Forget a context",
		Args:              session.Arguments(1, 1, "a context's NAME"),
		ValidArgsFunction: s.Contexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return configEditor{s}.update(func(all *contexts.Contexts) (string, error) {
				if len(all.All) == 0 {
					return "", &exitcode.UsageError{Message: fmt.Sprintf("context %q: there are no contexts", args[0])}
				}
				if err := requireContext(*all, args[0]); err != nil {
					return "", err
				}
				delete(all.All, args[0])
				if all.Current != args[0] {
					return fmt.Sprintf("context %s is forgotten", args[0]), nil
				}
				all.Current = ""
				return fmt.Sprintf("context %s is forgotten, and none is the current one", args[0]), nil
			})
		},
	}
}

func configView(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "view",
		Short: "Show the current settings, and the path of the file",
		Long: `Shows which platform is used, as whom, and for which team, after all flags,
variables and contexts. With -o json or yaml: {"file", "current", "server",
"owner", "namespace", "kibana"}. With -o name: the platform's address.`,
		Args: session.Arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return view(s) },
	}
}

func view(s *session.Session) error {
	all, err := configEditor{s}.load()
	if err != nil {
		return err
	}
	where, err := s.ResolveContext()
	if err != nil {
		return err
	}
	if s.Output == "name" {
		return session.WriteText(s.Env.Out, where.Server+"\n")
	}
	fields := []session.Entry{
		{Name: "file", Value: s.ConfigPath()},
		{Name: "current", Value: all.Current},
		{Name: "server", Value: where.Server},
		{Name: "owner", Value: where.Owner},
		{Name: "namespace", Value: where.Namespace},
		{Name: "kibana", Value: where.Kibana},
	}
	if s.Structured() {
		text, err := session.Object(fields...)
		if err != nil {
			return err
		}
		return s.Print(text)
	}
	var b strings.Builder
	for _, f := range fields {
		fmt.Fprintf(&b, "%-10s %s\n", f.Name, orDash(printer.Clean(fmt.Sprint(f.Value))))
	}
	return session.WriteText(s.Env.Out, b.String())
}
