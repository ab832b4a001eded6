// Package verb is the command line of baictl: one file for each verb, and the
// table of them.
package verb

import (
	"context"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/follow"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
)

// Env is what a command line is given of the world.
type Env struct {
	In      io.Reader
	Out     io.Writer // results
	Err     io.Writer // everything else
	Getenv  func(string) string
	Version string // of baictl; empty for what the build says
	// Interrupts returns a context that ends with cause when the user
	// interrupts the program. Before it is called, and at a second interrupt,
	// the program ends at once.
	Interrupts func(ctx context.Context, cause error) (context.Context, context.CancelFunc)
}

// Main does what a command line asks and returns the program's exit code. What
// went wrong is one line on env.Err.
func Main(ctx context.Context, env Env, args []string) int {
	out, notes := &sink{w: env.Out}, &sink{w: env.Err}
	env.Out, env.Err = out, notes
	s := &session{env: env, screen: screen.New(out, notes, env.Getenv)}
	root := rootCommand(s) //nolint:contextcheck // each command is given ctx when it is executed
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(out)
	root.SetErr(notes)
	err := checkArgs(args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	s.screen.Live("")
	s.end()
	if err == nil && out.err != nil {
		err = fmt.Errorf("write the output: %w", out.err)
	}
	if err != nil {
		s.screen.Note("baictl: " + verdict.Line(err))
	}
	return verdict.Code(err)
}

// checkArgs refuses what cannot be sent to a platform.
func checkArgs(args []string) error {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return &verdict.UsageError{Message: fmt.Sprintf("argument %q is not UTF-8", arg)}
		}
	}
	return nil
}

// verbs are all there are, in the order in which they are used.
func verbs(s *session) []*cobra.Command {
	return []*cobra.Command{
		validateCommand(s),
		submitCommand(s),
		runCommand(s),
		watchCommand(s),
		getCommand(s),
		listCommand(s),
		logsCommand(s),
		metricsCommand(s),
		cancelCommand(s),
		versionCommand(s),
	}
}

const about = `Checks benchmark descriptors, submits them as runs, follows the runs and shows
what they brought.

A run is named by its ID or by the name that its owner gave it.

Output (-o): table and wide are for people and may change. json and yaml are for
programs and do not: messages of the API with field names in lowerCamelCase,
phases, outcomes and classes as lower-case words, times in RFC 3339 (UTC),
integers as numbers; empty fields are left out. Verbs that stream (watch, logs,
metrics) write one JSON object a line, or one YAML document each. name is one ID
or name a line.

Exit codes:
  0  fine; of run and watch: the run succeeded
  1  the run failed
  2  wrong usage, an invalid descriptor, a run that is not there, a name or key
     that is taken
  3  the platform cannot be reached or failed, or a run's data stayed incomplete
  4  time is over: of --timeout, of the run (a deadline), or the user's (Ctrl-C
     while following a run: it goes on)
  5  the run was canceled`

func rootCommand(s *session) *cobra.Command {
	root := &cobra.Command{
		Use:               "baictl",
		Short:             "Run benchmarks and read their results",
		Long:              about,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return s.begin(cmd.Context(), cmd) },
		Args:              knownVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&s.server, "server", bai.DefaultTarget, "`ADDRESS` of the platform (env BAI_SERVER)")
	flags.StringVar(&s.owner, "owner", "", "`WHO` submits, and whose names are meant (env BAI_OWNER; default: the user)")
	flags.StringVarP(&s.output, "output", "o", "table", "`FORMAT` of the output: table, wide, json, yaml or name")
	flags.DurationVar(&s.timeout, "timeout", 0, "give up after so `LONG`, as 90s or 10m (default: never)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misuse(cmd, "%s", err) })
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.AddCommand(verbs(s)...)
	root.InitDefaultCompletionCmd()
	_ = root.RegisterFlagCompletionFunc("output", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return formats(cmd), cobra.ShellCompDirectiveNoFileComp
	}) // fails for flags that do not exist
	return root
}

func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return misuse(cmd, "unknown verb %q, did you mean %q?", args[0], near[0])
	}
	return misuse(cmd, "unknown verb %q", args[0])
}

// A session is one command line being carried out.
type session struct {
	env    Env
	screen *screen.Screen

	server  string
	owner   string
	output  string
	timeout time.Duration

	cancel  context.CancelFunc
	clients []*bai.Client
}

// begin settles what the flags left open. It is called before each verb.
func (s *session) begin(ctx context.Context, cmd *cobra.Command) error {
	if env := s.env.Getenv("BAI_SERVER"); env != "" && !cmd.Flags().Changed("server") {
		s.server = env
	}
	if env := s.env.Getenv("BAI_OWNER"); env != "" && !cmd.Flags().Changed("owner") {
		s.owner = env
	}
	if s.owner == "" {
		s.owner = s.whoami()
	}
	if known := formats(cmd); !slices.Contains(known, s.output) {
		return misuse(cmd, "%s has no output %q, only %s", cmd.Name(), s.output, strings.Join(known, ", "))
	}
	if s.timeout < 0 {
		return misuse(cmd, "--timeout must not be negative")
	}
	if s.timeout > 0 {
		ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, &verdict.TimeoutError{After: s.timeout})
		cmd.SetContext(ctx)
		s.cancel = cancel
	}
	return nil
}

// end gives back what begin and the verb took.
func (s *session) end() {
	for _, c := range s.clients {
		_ = c.Close() // nothing is lost with it
	}
	if s.cancel != nil {
		s.cancel()
	}
}

// whoami is the name of the operating system's user, without a domain.
func (s *session) whoami() string {
	name := s.env.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name[strings.LastIndexByte(name, '\\')+1:]
}

// patience is how long a call is repeated: a user is not kept waiting by a
// platform that is not there.
const patience = 1500 * time.Millisecond

// client is one for calls that a user waits for.
func (s *session) client() (*bai.Client, error) {
	return s.dial(bai.Settings{Patience: patience})
}

// followClient is one that goes on when the platform is away, and says so once
// each time.
func (s *session) followClient() (*bai.Client, error) {
	n := &follow.Notices{Screen: s.screen, Server: s.server}
	return s.dial(bai.Settings{Patience: forever, Lost: n.Lost, Found: n.Found})
}

const forever = 100 * 365 * 24 * time.Hour

func (s *session) dial(settings bai.Settings) (*bai.Client, error) {
	settings.User, settings.Owner = s.whoami(), s.owner
	c, err := settings.Dial(s.server)
	if err != nil {
		return nil, &verdict.UsageError{Message: err.Error(), Help: "baictl --help"}
	}
	s.clients = append(s.clients, c)
	return c, nil
}

// A sink remembers the first error of a writer.
type sink struct {
	w   io.Writer
	err error
}

// Unwrap is the writer itself.
func (s *sink) Unwrap() io.Writer { return s.w }

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// everyFormat is what -o may be where a verb does not say otherwise.
const everyFormat = "table wide json yaml name"

// formatsKey is the annotation with the formats that a verb has.
const formatsKey = "output"

func formats(cmd *cobra.Command) []string {
	for c := cmd; c != nil; c = c.Parent() {
		if own, ok := c.Annotations[formatsKey]; ok {
			return strings.Fields(own)
		}
	}
	return strings.Fields(everyFormat)
}

// misuse is what the user typed wrong.
func misuse(cmd *cobra.Command, format string, args ...any) error {
	return &verdict.UsageError{Message: fmt.Sprintf(format, args...), Help: cmd.CommandPath() + " --help"}
}

// arguments checks how many there are; most < 0 is no limit.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return misuse(cmd, "%s is missing", what)
		case slices.Contains(args, ""): // as of a script whose variable is
			return misuse(cmd, "an argument is empty")
		case most >= 0 && len(args) > most:
			return misuse(cmd, "too many arguments: %q", args[most])
		default:
			return nil
		}
	}
}

// withNoun lets a verb be followed by its noun: run benchmark, get benchmark.
func withNoun(cmd *cobra.Command) *cobra.Command {
	cmd.AddCommand(&cobra.Command{
		Use:               "benchmark",
		Aliases:           []string{"benchmarks"},
		Hidden:            true,
		Short:             cmd.Short,
		Long:              cmd.Long,
		Args:              cmd.Args,
		RunE:              cmd.RunE,
		ValidArgsFunction: cmd.ValidArgsFunction,
	})
	return cmd
}

// completeRuns offers the newest runs.
func (s *session) completeRuns(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if s.begin(cmd.Context(), cmd) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
	defer cancel()
	c, err := s.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []string
	for run, err := range c.List(ctx, bai.Filter{Owner: s.owner, Page: 50}) {
		if err != nil || len(all) == 50 {
			break
		}
		all = append(all, cobra.CompletionWithDesc(run.GetId(), run.GetName()))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// pairs reads k=v.
func pairs(cmd *cobra.Command, flag string, all []string) (map[string]string, error) {
	read := map[string]string{}
	for _, one := range all {
		k, v, ok := strings.Cut(one, "=")
		if !ok || k == "" {
			return nil, misuse(cmd, "--%s %q: want KEY=VALUE", flag, one)
		}
		read[k] = v
	}
	return read, nil
}
