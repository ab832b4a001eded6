// Package session executes a command line: its inputs, the flags that every verb has, and
// its output.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/contexts"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/descriptors/values"
)

// Env is the environment of a command line.
type Env struct {
	In      io.Reader
	Out     io.Writer // results
	Err     io.Writer // everything else
	Getenv  func(string) string
	Version string // version of baictl; empty for that of the build
	// Interrupts returns a context that ends with cause when the user
	// interrupts the program. Before it is called, and at a second interrupt,
	// the program ends at once.
	Interrupts func(ctx context.Context, cause error) (context.Context, context.CancelFunc)
}

// A Session is one command line being carried out.
type Session struct {
	Env    Env
	Screen *screen.Screen
	Output string // value of -o

	context string // --context
	server  string // --server
	owner   string // --owner
	timeout time.Duration

	resolved *contexts.Context // once it was asked for
	cancel   context.CancelFunc
	clients  []*bai.Client
	out      *errWriter
	values   []values.Value // of --values
}

// New returns a session. End it.
func New(env Env) *Session {
	out, notes := &errWriter{w: env.Out}, &errWriter{w: env.Err}
	env.Out, env.Err = out, notes
	return &Session{Env: env, Screen: screen.New(out, notes, env.Getenv), out: out}
}

// Flags are those that every verb has.
func (s *Session) Flags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&s.context, "context", "", "`NAME` of the platform to use, see baictl config (env BAI_CONTEXT)")
	flags.StringVar(&s.server, "server", "",
		"`ADDRESS` of the platform (env BAI_SERVER; default: that of the context, or \""+bai.DefaultTarget+"\")")
	flags.StringVar(&s.owner, "owner", "",
		"`WHO` submits, and whose names are meant (env BAI_OWNER; default: that of the context, or the user)")
	flags.StringVarP(&s.Output, "output", "o", "table", "`FORMAT` of the output: table, wide, json, yaml or name")
	flags.DurationVar(&s.timeout, "timeout", 0, "give up after so `LONG`, as 90s or 10m (default: never)")
	_ = root.RegisterFlagCompletionFunc("output", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return formats(cmd), cobra.ShellCompDirectiveNoFileComp
	}) // fails for flags that do not exist
	_ = root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.ContextNames(), cobra.ShellCompDirectiveNoFileComp
	})
}

// Begin checks the common flags, and starts the clock of --timeout. It is called before
// each verb.
func (s *Session) Begin(ctx context.Context, cmd *cobra.Command) error {
	if allowed := formats(cmd); !slices.Contains(allowed, s.Output) {
		return UsageErrorf(cmd, "%s has no output %q, only %s", cmd.Name(), s.Output, strings.Join(allowed, ", "))
	}
	if s.timeout < 0 {
		return UsageErrorf(cmd, "--timeout must not be negative")
	}
	if s.timeout > 0 {
		ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, &exitcode.TimeoutError{After: s.timeout})
		cmd.SetContext(ctx)
		s.cancel = cancel
	}
	return nil
}

// End releases the verb's resources. It returns an error if output could not be written.
func (s *Session) End() error {
	s.Screen.Live("")
	for _, c := range s.clients {
		_ = c.Close() // nothing is lost with it
	}
	if s.cancel != nil {
		s.cancel()
	}
	if s.out.err != nil {
		return fmt.Errorf("write the output: %w", s.out.err)
	}
	return nil
}

// ConfigPath is where the contexts are kept.
func (s *Session) ConfigPath() string { return contexts.Path(s.Env.Getenv) }

// ContextNames are those there are, for completion: none where the file is
// faulty.
func (s *Session) ContextNames() []string {
	all, err := contexts.Load(s.ConfigPath())
	if err != nil {
		return nil
	}
	return all.Names()
}

// ResolveContext returns the platform and the user's identity there. A fault in the file
// of contexts, or in the name of one, is a UsageError.
func (s *Session) ResolveContext() (contexts.Context, error) {
	if s.resolved != nil {
		return *s.resolved, nil
	}
	all, err := contexts.Load(s.ConfigPath())
	if err != nil {
		return contexts.Context{}, &exitcode.UsageError{Message: err.Error(), Help: "baictl config --help"}
	}
	where, err := all.Resolve(contexts.ResolveInput{
		Context: s.context, Server: s.server, Owner: s.owner,
		EnvContext: s.Env.Getenv("BAI_CONTEXT"), EnvServer: s.Env.Getenv("BAI_SERVER"), EnvOwner: s.Env.Getenv("BAI_OWNER"),
		DefaultServer: bai.DefaultTarget, DefaultOwner: s.whoami(),
	})
	if err != nil {
		return contexts.Context{}, &exitcode.UsageError{Message: err.Error()}
	}
	s.resolved = &where
	return where, nil
}

// FlagContext is the context that the flags define.
func (s *Session) FlagContext() contexts.Context {
	return contexts.Context{Server: s.server, Owner: s.owner}
}

// CheckServer returns the fault of a platform's address.
func CheckServer(address string) error {
	c, err := bai.Dial(address) // connects when it is first used
	if err != nil {
		return &exitcode.UsageError{Message: err.Error(), Help: "baictl --help"}
	}
	_ = c.Close() // it never was connected
	return nil
}

// CheckKibana returns the fault of a Kibana's URL; an empty one is valid.
func CheckKibana(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &exitcode.UsageError{Message: fmt.Sprintf("%q is no URL of a Kibana: want https://kibana.example.org", address)}
	}
	if u.User != nil {
		return &exitcode.UsageError{Message: "the URL of a Kibana holds no user or password: see baictl dashboards install --help"}
	}
	return nil
}

// whoami is the name of the operating system's user, without a domain.
func (s *Session) whoami() string {
	name := s.Env.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name[strings.LastIndexByte(name, '\\')+1:]
}

// retryTimeout is how long a call is repeated: a user is not kept waiting by a
// platform that is not there.
const retryTimeout = 1500 * time.Millisecond

// Client is one for calls that a user waits for.
func (s *Session) Client() (*bai.Client, error) {
	return s.dial(bai.Settings{RetryTimeout: retryTimeout})
}

// FollowClient is one that goes on when the platform is away, and says so once
// each time.
func (s *Session) FollowClient() (*bai.Client, error) {
	where, err := s.ResolveContext()
	if err != nil {
		return nil, err
	}
	n := &follow.Notices{Screen: s.Screen, Server: where.Server}
	return s.dial(bai.Settings{RetryTimeout: forever, Lost: n.Lost, Found: n.Found})
}

const forever = 100 * 365 * 24 * time.Hour

func (s *Session) dial(settings bai.Settings) (*bai.Client, error) {
	where, err := s.ResolveContext()
	if err != nil {
		return nil, err
	}
	settings.User, settings.Owner = s.whoami(), where.Owner
	c, err := settings.Dial(where.Server)
	if err != nil {
		return nil, &exitcode.UsageError{Message: err.Error(), Help: "baictl --help"}
	}
	s.clients = append(s.clients, c)
	return c, nil
}

// PrintError writes an error on one line.
func (s *Session) PrintError(err error) {
	text := "baictl: " + exitcode.Line(err)
	if _, detached := errors.AsType[*exitcode.DetachedError](err); !detached { // its commands are copied
		text = s.Screen.Fold(text)
	}
	s.Screen.Note(text)
}

// A sink remembers the first error of a writer.
type errWriter struct {
	w   io.Writer
	err error
}

// Unwrap is the writer itself.
func (s *errWriter) Unwrap() io.Writer { return s.w }

// Write implements io.Writer.
func (s *errWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// UseServer is as the flag --server.
func (s *Session) UseServer(address string) {
	s.server = address
}
