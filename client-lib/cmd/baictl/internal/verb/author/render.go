package author

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/transpile"
)

// A rendering is whose settings the objects are made under.
type rendering struct {
	session *session.Session
	server  bool
	script  string
	cell    string
	set     session.OverrideFlags
}

// Render is the verb render.
func Render(s *session.Session) *cobra.Command {
	r := &rendering{session: s}
	cmd := &cobra.Command{
		Use:         "render FILE",
		Short:       "Print the Kubernetes objects that a run would be",
		Annotations: session.OnlyFormats("table", "yaml"),
		Long: `Prints the Kubernetes objects that a run of a descriptor would be, as YAML, in
the order in which they are created: without a platform, under the settings that
one has by default. The same descriptor always gives the same bytes. Zeros stand
in the place of the run's ID; digests and sizes of data, and the values of
secrets, are not in them. With --script the run is one that code is sent along
with, as it is in any case where the descriptor has ml.script.

With --server they are those under the settings of the running platform; give
its address as --server=ADDRESS where it is not that of the context.

A descriptor with [sweep] is many runs: --cell says which of its cells is
rendered, else it is the first one, which standard error says.

` + session.Sources,
		Example: `  baictl render resnet.toml --set hardware.gpus=4 | kubectl diff -f -
  baictl render --server resnet.toml`,
		Args:              r.arguments,
		ValidArgsFunction: s.StoredDescriptors(input.Stored),
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	r.set.Register(cmd)
	cmd.Flags().StringVar(&r.script, "script", "", "`DIR` with code that would be sent along, or an archive of it")
	cellFlag(cmd, &r.cell)
	flag := cmd.Flags().VarPF(serverFlag{r}, "server", "", "under the settings of the running platform; `ADDRESS` may be left out")
	flag.NoOptDefVal = "context"
	return cmd
}

// arguments is one FILE. An address after --server would be taken for it.
func (r *rendering) arguments(cmd *cobra.Command, args []string) error {
	if r.server && len(args) == 2 {
		return session.UsageErrorf(cmd, "two arguments: %q; an address is given as --server=ADDRESS", args)
	}
	return session.Arguments(1, 1, "a descriptor's FILE")(cmd, args)
}

// A serverFlag is --server, with or without an address.
type serverFlag struct{ r *rendering }

// Set implements pflag.Value.
func (f serverFlag) Set(address string) error {
	f.r.server = true
	if address != "context" {
		f.r.session.UseServer(address)
	}
	return nil
}

// String implements pflag.Value.
func (serverFlag) String() string { return "" }

// Type implements pflag.Value.
func (serverFlag) Type() string { return "address" }

func (r *rendering) run(cmd *cobra.Command, name string) error {
	set, err := r.session.Overrides(cmd, r.set)
	if err != nil {
		return err
	}
	ctx, s := cmd.Context(), r.session
	doc, faults, err := s.Reader("").Read(ctx, name)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return s.FailWithFaults(faults)
	}
	code, err := session.CheckPack(r.script)
	if err != nil {
		return err
	}
	manifest := r.offline
	if r.server {
		manifest = r.online
	}
	text, err := manifest(ctx, doc, set, code)
	if err != nil {
		return err
	}
	return session.WriteText(s.Env.Out, text)
}

func (r *rendering) offline(_ context.Context, doc input.Document, set []*baiv1.Override, code bool) (string, error) {
	checked := doc.Check(set, false)
	if checked.Descriptor == nil {
		return "", r.session.FailWithFaults(checked.Faults)
	}
	r.session.PrintFaults(checked.Faults)
	one, err := oneCell(r.session, doc.Name, checked, r.cell)
	if err != nil {
		return "", err
	}
	text, err := transpile.Manifest(one.descriptor, one.text, code, transpile.Settings{AnyManifests: true})
	if e, ok := errors.AsType[*refusal.Error](err); ok {
		return "", &exitcode.UsageError{Message: fmt.Sprintf("render %q: %s", doc.Name, e)}
	}
	return string(text), err
}

func (r *rendering) online(ctx context.Context, doc input.Document, set []*baiv1.Override, code bool) (string, error) {
	c, err := r.session.Client()
	if err != nil {
		return "", err
	}
	team, err := r.session.Team("")
	if err != nil {
		return "", err
	}
	draft := bai.Draft{Text: doc.Text, File: doc.Name, Namespace: team, Overrides: set, WithScript: code}
	if checked := doc.Check(set, false); r.cell != "" || checked.Plan() != nil {
		one, err := oneCell(r.session, doc.Name, checked, r.cell)
		if err != nil {
			return "", err
		}
		draft.Text, draft.Overrides = one.text, nil
	}
	text, err := c.Render(ctx, draft)
	return text, r.session.FailIfInvalid(err)
}
