// Package catalog has the verbs for descriptors that the platform stores.
package catalog

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Descriptors is the verb descriptors.
func Descriptors(s *session.Session) *cobra.Command {
	var namespace string
	cmd := session.Parent(&cobra.Command{
		Use:   "descriptors",
		Short: "Keep descriptors on the platform",
		Long: `Keeps descriptors on the platform, by name, in versions that never change:
stored:NAME is the newest version, stored:NAME@VERSION is that one.`,
	}, pushCommand(s, &namespace), listCommand(s, &namespace), getCommand(s, &namespace))
	cmd.Aliases = []string{"descriptor"}
	cmd.PersistentFlags().StringVar(&namespace, "namespace", "",
		"`TEAM` that the descriptors belong to (default: that of the context, or \"default\")")
	return cmd
}

func pushCommand(s *session.Session, namespace *string) *cobra.Command {
	return &cobra.Command{
		Use:   "push NAME FILE",
		Short: "Keep a descriptor as the next version of a name",
		Long: `Keeps a descriptor as the next version of a name, and prints what it is kept as.
It must be valid. The newest version pushed again is no new one.

With -o json or yaml: the descriptor that is kept, without its text, with
"repeated" and "warnings".`,
		Example: `  baictl descriptors push resnet resnet.toml
  baictl submit stored:resnet`,
		Args: session.Arguments(2, 2, "a NAME, or the descriptor's FILE,"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return s.StoredDescriptors("")(cmd, args, toComplete)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.TrimPrefix(args[0], input.Stored)
			doc, faults, err := s.Reader(*namespace).Read(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			if len(faults) == 0 {
				faults = doc.SizeFaults()
			}
			if len(faults) > 0 {
				return s.FailWithFaults(faults)
			}
			return pushOne(cmd, s, *namespace, name, doc)
		},
	}
}

func pushOne(cmd *cobra.Command, s *session.Session, namespace, name string, doc input.Document) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	team, err := s.Team(namespace)
	if err != nil {
		return err
	}
	got, err := c.Push(cmd.Context(), team, name, bai.Draft{Text: doc.Text, File: doc.Name})
	if err != nil {
		return s.FailIfInvalid(err)
	}
	if s.Structured() {
		text, err := session.Merge(printer.JSON(got.StoredDescriptor), session.Entry{Name: "repeated", Value: got.Repeated},
			session.Entry{Name: "warnings", Value: session.Array(got.Warnings)})
		if err != nil {
			return err
		}
		return s.Print(text)
	}
	s.PrintFaults(got.Warnings)
	text := reference(got.StoredDescriptor)
	if got.Repeated && s.Output != "name" {
		text += " (as it was)"
	}
	return session.WriteText(s.Env.Out, text+"\n")
}

// reference is how a descriptor that is kept is named.
func reference(d *baiv1.StoredDescriptor) string {
	return printer.Clean(fmt.Sprintf("%s%s@%d", input.Stored, d.GetName(), d.GetVersion()))
}

func listCommand(s *session.Session, namespace *string) *cobra.Command {
	return &cobra.Command{
		Use:   "list [NAME]",
		Short: "List the descriptors that are kept, or the versions of one",
		Long: `Lists the newest version of each descriptor that is kept, by name, or all
versions of the one that is named, newest first.

With -o json or yaml: {"descriptors": [...]}, without their text.`,
		Args:              session.Arguments(0, 1, ""),
		ValidArgsFunction: s.StoredDescriptors(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.TrimPrefix(strings.Join(args, ""), input.Stored)
			return listDescriptors(cmd, s, *namespace, name)
		},
	}
}

func listDescriptors(cmd *cobra.Command, s *session.Session, namespace, name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	team, err := s.Team(namespace)
	if err != nil {
		return err
	}
	var all []*baiv1.StoredDescriptor
	for d, err := range c.Kept(cmd.Context(), team, name) {
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	switch {
	case s.Structured():
		text, err := session.Object(session.Entry{Name: "descriptors", Value: session.Array(all)})
		if err != nil {
			return err
		}
		return s.Print(text)
	case s.Output == "name":
		for _, d := range all {
			if err := session.WriteText(s.Env.Out, reference(d)+"\n"); err != nil {
				return err
			}
		}
		return nil
	case len(all) == 0:
		s.Screen.Note("baictl: no descriptors are kept (keep one: baictl descriptors push NAME FILE)")
		return nil
	}
	return s.PrintTable(descriptorTable(all, s.Output == "wide"))
}

func descriptorTable(all []*baiv1.StoredDescriptor, wide bool) printer.Table {
	t := printer.Table{Columns: []printer.Column{
		{Title: "NAME", Flex: true}, {Title: "VERSION", Right: true}, {Title: "OWNER", Flex: true}, {Title: "SHA256"}, {Title: "PUSHED"},
	}}
	digits := 12
	if wide {
		digits = 64
		t.Columns = append(t.Columns, printer.Column{Title: "NAMESPACE"})
	}
	for _, d := range all {
		row := []string{
			d.GetName(), fmt.Sprint(d.GetVersion()), d.GetOwner(), fmt.Sprintf("%.*s", digits, d.GetSha256()),
			printer.Time(d.GetCreateTime()),
		}
		if wide {
			row = append(row, d.GetNamespace())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func getCommand(s *session.Session, namespace *string) *cobra.Command {
	return &cobra.Command{
		Use:         "get NAME[@VERSION]",
		Short:       "Print a descriptor that is kept",
		Annotations: session.OnlyFormats("table", "json", "yaml"),
		Long: `Prints the text of a descriptor that is kept, byte for byte, or of one that the
platform can reach: https://… or s3://….

With -o json or yaml: {"uri", "sha256", "descriptorToml"}.`,
		Example:           `  baictl descriptors get resnet@3 > resnet.toml`,
		Args:              session.Arguments(1, 1, "a NAME"),
		ValidArgsFunction: s.StoredDescriptors(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if !input.Remote(name) {
				name = input.Stored + name
			}
			doc, _, err := s.Reader(*namespace).Read(cmd.Context(), name)
			if err != nil {
				return err
			}
			if !s.Structured() {
				return session.WriteText(s.Env.Out, string(doc.Text))
			}
			text, err := session.Object(session.Entry{Name: "uri", Value: doc.Name},
				session.Entry{Name: "sha256", Value: doc.Origin.GetSha256()},
				session.Entry{Name: "descriptorToml", Value: string(doc.Text)})
			if err != nil {
				return err
			}
			return s.Print(text)
		},
	}
}
