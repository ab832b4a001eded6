package author

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A conversion is what becomes of a file of another system.
type conversion struct {
	session *session.Session
	system  string
	folder  string // "" for standard output
}

// Convert is the verb convert.
func Convert(s *session.Session) *cobra.Command {
	c := conversion{session: s}
	cmd := &cobra.Command{
		Use:         "convert FILE",
		Short:       "Turn a file of another benchmark system into a descriptor",
		Annotations: session.OnlyFormats("table"),
		Long: `Turns a file of another benchmark system into a descriptor, without a platform.
--from names the system:

  kube-perftest  a benchmark (IPerf, MPIPingPong, OpenFOAM, RDMABandwidth,
                 RDMALatency, Fio, PyTorch), or a BenchmarkSet of them
  kubebench      a KubebenchJob, of v1alpha1 or v1alpha2
  eks            parameters of the EKS deep-learning benchmark utility; the
                 training job and the ClusterConfig may follow as documents
  benchmark-ai   a descriptor of the system that this one replaces

The descriptor goes to standard output. For each key that is not carried over,
standard error has a line with its place and the reason. The descriptor is one
that baictl validate accepts. Where an image, a command or a device of RDMA is
not in the file, the descriptor has a placeholder, and a line says so.

A file with several benchmarks needs --out-dir, which gets a file for each.
FILE may be -, which is standard input. docs/convert.md has the tables of what
becomes what.`,
		Example: `  baictl convert --from kube-perftest iperf-set.yaml > iperf.toml
  kubectl get iperfs -o yaml one | baictl convert --from kube-perftest -
  baictl convert --from eks --out-dir descriptors experiments.yaml`,
		Args: session.Arguments(1, 1, "a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	cmd.Flags().StringVar(&c.system, "from", "", "`SYSTEM` whose file it is: "+session.JoinOr(convert.Systems()))
	cmd.Flags().StringVar(&c.folder, "out-dir", "", "`DIR` that gets a file for each descriptor; it is made if it is not there")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(convert.Systems(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c conversion) run(cmd *cobra.Command, file string) error {
	if !slices.Contains(convert.Systems(), c.system) {
		return session.UsageErrorf(cmd, "--from %q: use %s", c.system, session.JoinOr(convert.Systems()))
	}
	text, name, err := c.read(file)
	if err != nil {
		return &exitcode.UsageError{Message: fmt.Sprintf("read %s: %v", file, err)}
	}
	r := convert.Convert(c.system, text)
	if len(r.Faults) > 0 {
		return c.session.FailWithFaults(faultsOf(name, r.Faults))
	}
	if len(r.Files) > 1 && c.folder == "" {
		return session.UsageErrorf(cmd, "%s has %d benchmarks: add --out-dir DIR, which gets a file for each", name, len(r.Files))
	}
	c.session.PrintFaults(faultsOf(name, r.Remarks))
	if c.folder == "" {
		return session.WriteText(c.session.Env.Out, r.Files[0].Text)
	}
	return c.write(cmd, r.Files)
}

// read returns the text of a file, and its name in remarks.
func (c conversion) read(file string) (text []byte, name string, err error) {
	in, name := c.session.Env.In, file
	if file == "-" {
		name = input.Stdin
	} else {
		f, err := os.Open(file)
		if err != nil {
			return nil, "", withoutPath(err)
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	text, err = io.ReadAll(io.LimitReader(in, convert.MaxSize+1))
	return text, name, withoutPath(err)
}

// withoutPath returns an error without the path of the file, which the caller adds.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// write writes a file for each descriptor. It changes none that is there.
func (c conversion) write(cmd *cobra.Command, all []convert.File) error {
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return session.UsageErrorf(cmd, "--out-dir: %v", err)
	}
	for _, d := range all {
		path := filepath.Join(c.folder, d.Name+".toml")
		if err := create(path, []byte(d.Text)); err != nil {
			return session.UsageErrorf(cmd, "%s", err)
		}
		c.session.Screen.Note("wrote " + printer.Clean(path))
	}
	return nil
}

// faultsOf returns notes as faults of a file.
func faultsOf(file string, notes []convert.Note) []*baiv1.Fault {
	all := make([]*baiv1.Fault, len(notes))
	for i, n := range notes {
		all[i] = &baiv1.Fault{
			File: file, Line: int32(n.Line), Column: int32(n.Column), //nolint:gosec // a file has at most a million of each
			Path: n.Path, Message: strings.ToValidUTF8(n.Message, "\ufffd"), Remedy: n.Remedy,
		}
	}
	return all
}
