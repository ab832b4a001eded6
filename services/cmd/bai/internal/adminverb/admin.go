// Package adminverb is `bai admin`: what an operator does on the brokers and the store,
// whose settings are read from a file of its own.
package adminverb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/consistency"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/admin"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
)

// adminSettings are the settings of the brokers and the store. The operator needs more
// permissions than services have, so the file should have other users.
type adminSettings struct {
	Kafka         kafka.Settings
	Elasticsearch elastic.Settings
}

// Validate implements config.Validator.
func (s *adminSettings) Validate() error {
	var errs []error
	if len(s.Kafka.Brokers) > 0 {
		errs = append(errs, s.Kafka.Validate())
	}
	if len(s.Elasticsearch.Addresses) > 0 {
		errs = append(errs, s.Elasticsearch.Validate())
	}
	return errors.Join(errs...)
}

// adminClient is the operator's access to the brokers and the store.
type adminClient struct {
	config string
	out    io.Writer
}

// kafka returns the settings of the brokers.
func (o *adminClient) kafka() (kafka.Settings, error) {
	var s adminSettings
	if err := config.Load(o.config, &s); err != nil {
		return s.Kafka, err
	}
	if len(s.Kafka.Brokers) == 0 {
		return s.Kafka, fmt.Errorf("%s: kafka.brokers: at least one is needed", o.config)
	}
	s.Kafka.Source = "bai-admin"
	return s.Kafka, nil
}

// Command returns the command admin, which prints to out.
func Command(out io.Writer) *cobra.Command {
	o := &adminClient{out: out}
	c := &cobra.Command{
		Use:   "admin",
		Short: "Prepare what the platform stands on, and look after it",
		Long: `Prepare Kafka and Elasticsearch for the platform, and look after what nobody could
handle. The settings are those of a service, with users that may do this.`,
		Args: cobra.NoArgs,
	}
	c.PersistentFlags().StringVar(&o.config, "config", "/etc/bai/admin.toml", "TOML `file` with the settings")
	c.AddCommand(o.topics(), o.deadLetters(), o.seals(), o.store())
	return c
}

func (o *adminClient) topics() *cobra.Command {
	c := &cobra.Command{Use: "topics", Short: "Topics of Kafka, and who has which rights to them", Args: cobra.NoArgs}
	plan := &cobra.Command{
		Use: "plan", Short: "Say what apply would do", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, _, err := o.plan(c.Context())
			return err
		},
	}
	var grow bool
	apply := &cobra.Command{
		Use: "apply", Short: "Make topics and give rights, as kafka.topics and kafka.principals say", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, p, err := o.plan(c.Context())
			if err != nil || p.Empty() {
				return err
			}
			if err := o.requireSealsOfNewTopics(c.Context(), s, p); err != nil {
				return err
			}
			if err := admin.Apply(c.Context(), s, p, grow); err != nil {
				return err
			}
			_, err = fmt.Fprintln(o.out, "done")
			return err
		},
	}
	apply.Flags().BoolVar(&grow, "grow", false, "add partitions to topics too, while no run is under way")
	c.AddCommand(plan, apply)
	return c
}

// plan prints the changes that give the brokers the topics and permissions of the
// settings.
func (o *adminClient) plan(ctx context.Context) (kafka.Settings, admin.Changes, error) {
	s, err := o.kafka()
	if err != nil {
		return s, admin.Changes{}, err
	}
	have, err := admin.ReadState(ctx, s)
	if err != nil {
		return s, admin.Changes{}, err
	}
	p := admin.Decide(s.Topics.Topics(), s.Principals.ACLs(), have)
	for _, line := range p.Lines() {
		if _, err := fmt.Fprintln(o.out, line); err != nil {
			return s, p, err
		}
	}
	if p.Empty() {
		_, err = fmt.Fprintln(o.out, "everything is as it is to be")
	}
	return s, p, err
}

func (o *adminClient) deadLetters() *cobra.Command {
	c := &cobra.Command{Use: "dead", Short: "Messages that nobody could handle", Args: cobra.NoArgs}
	var from int64
	var runID string
	list := &cobra.Command{
		Use: "list", Short: "List dead letters, oldest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.listDeadLetters(c.Context(), from, runID) },
	}
	list.Flags().Int64Var(&from, "from", 0, "`offset` of the first")
	list.Flags().StringVar(&runID, "run", "", "only those of the run of this `ID`")
	show := &cobra.Command{
		Use: "show OFFSET", Short: "Show one dead letter whole", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.forEachDeadLetter(args, func(s kafka.Settings, offset int64) error {
				l, err := admin.Find(c.Context(), s, offset)
				if err != nil {
					return err
				}
				return l.Show(o.out)
			})
		},
	}
	var unsealed bool
	replay := &cobra.Command{
		Use: "replay OFFSET...", Short: "Write the messages once more, for services that can handle them by now",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.replay(c.Context(), args, unsealed) },
	}
	replay.Flags().BoolVar(&unsealed, "unsealed", false, "replay letters without a seal too, which services of earlier versions wrote")
	c.AddCommand(list, show, replay)
	return c
}

func (o *adminClient) listDeadLetters(ctx context.Context, from int64, runID string) error {
	s, err := o.kafka()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OFFSET\tAT\tRUN\tTYPE\tREASON")
	for l, err := range admin.DeadLetters(ctx, s, from) {
		if err != nil {
			return err
		}
		if runID == "" || l.Run == runID {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", l.Offset, l.At.UTC().Format(time.RFC3339), escapeControl(l.Run),
				escapeControl(l.Type), escapeControl(l.Reason))
		}
	}
	return w.Flush()
}

// escapeControl returns text of unknown origin in a form that stays on one line.
func escapeControl(text string) string {
	b, err := json.Marshal(text)
	if err != nil || len(b) < 2 {
		return "?"
	}
	return string(b[1 : len(b)-1])
}

// forEachDeadLetter calls do for the offset of each given dead letter.
func (o *adminClient) forEachDeadLetter(args []string, do func(s kafka.Settings, offset int64) error) error {
	s, err := o.kafka()
	if err != nil {
		return err
	}
	for _, arg := range args {
		offset, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || offset < 0 {
			return fmt.Errorf("%q is no offset: 'bai admin dead list' lists them", arg)
		}
		if err := do(s, offset); err != nil {
			return err
		}
	}
	return nil
}

func (o *adminClient) replay(ctx context.Context, args []string, unsealed bool) error {
	return o.forEachDeadLetter(args, func(s kafka.Settings, offset int64) error {
		if s.KeyFile == "" {
			return fmt.Errorf("%s: kafka.key_file: the platform's key is needed, for services take nothing without its seal", o.config)
		}
		l, err := admin.Find(ctx, s, offset)
		if err != nil {
			return err
		}
		l.Trusted = unsealed
		bus, err := kafka.NewBus(s, zap.NewNop())
		if err != nil {
			return err
		}
		defer bus.Close()
		if err := admin.Replay(ctx, s, bus, l); err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.out, "%d written to %s again\n", offset, l.Topic)
		return err
	})
}

func (o *adminClient) store() *cobra.Command {
	c := &cobra.Command{Use: "store", Short: "Indices of Elasticsearch, or the store of a data directory", Args: cobra.NoArgs}
	var data string
	check := &cobra.Command{
		Use: "check", Short: "Say whether setup is needed, or whether the store of a data directory is whole", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if data != "" {
				return o.checkFile(c.Context(), filepath.Join(data, "store.db"))
			}
			return o.withStore(o.check)(c, args)
		},
	}
	check.Flags().StringVar(&data, "data", "", "`directory` of a standalone platform, whose store is read whole; it may run meanwhile")
	c.AddCommand(
		&cobra.Command{
			Use: "setup", Short: "Make the templates and indices, or bring those of an earlier version to this one", Args: cobra.NoArgs,
			Long: `Make the templates and indices, or bring those of an earlier version to this one,
and have them as elasticsearch.shards, replicas and refresh say. It says what it
did. Indices of months that there are keep their settings.`,
			RunE: o.withStore(o.setup),
		},
		check,
		o.forget(),
	)
	return c
}

// check reports that the store needs no setup, or returns an error.
func (o *adminClient) check(ctx context.Context, s *elastic.Store) error {
	if err := s.Check(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintf(o.out, "the store is of version %d, nothing is to be done\n", schema.Version)
	return err
}

// checkFile reports that a store file is intact, or returns an error with a remedy.
func (o *adminClient) checkFile(ctx context.Context, path string) (err error) {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, path)
	if err == nil {
		err = errors.Join(s.Verify(ctx), s.Close())
	}
	if errors.Is(err, sqlite.ErrDamaged) || errors.Is(err, sqlite.ErrNotDatabase) {
		return consistency.UnreadableStore(path, err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.out, "%s is whole\n", path)
	return err
}

// withStore opens the store and calls do.
func (o *adminClient) withStore(do func(context.Context, *elastic.Store) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) (err error) {
		var s adminSettings
		if err := config.Load(o.config, &s); err != nil {
			return err
		}
		if len(s.Elasticsearch.Addresses) == 0 {
			return fmt.Errorf("%s: elasticsearch.addresses: at least one is needed", o.config)
		}
		store, err := elastic.Open(s.Elasticsearch)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		return do(c.Context(), store)
	}
}

func (o *adminClient) setup(ctx context.Context, s *elastic.Store) error {
	done, err := s.Setup(ctx)
	for _, line := range done {
		if _, err := fmt.Fprintln(o.out, line); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.out, "the store is of version %d\n", schema.Version)
	return err
}

// purge has the options of forget.
type purge struct {
	before string
	dry    bool
	yes    bool
}

func (o *adminClient) forget() *cobra.Command {
	var f purge
	c := &cobra.Command{
		Use: "forget --before YYYY-MM", Short: "Remove what belongs to runs of past months, for ever", Args: cobra.NoArgs,
		Long: `Remove the indices of all months before one, whole, with what the runs that were
submitted then wrote and what they came to, and the documents of these runs. It
says what it removes, and removes nothing without --yes, nor where one of these
runs has not finished. 'baictl export' keeps a run before.`,
		RunE: func(c *cobra.Command, args []string) error {
			before, err := f.month(time.Now())
			if err != nil {
				return err
			}
			return o.withStore(func(ctx context.Context, s *elastic.Store) error { return o.forgetBefore(ctx, s, before, f) })(c, args)
		},
	}
	c.Flags().StringVar(&f.before, "before", "", "the first `month` that stays, as 2026-01")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "only say what would be removed")
	c.Flags().BoolVar(&f.yes, "yes", false, "remove it")
	_ = c.MarkFlagRequired("before") // the flag exists
	return c
}

// month returns the first month to keep, which is this month at most.
func (f purge) month(now time.Time) (time.Time, error) {
	before, err := time.Parse("2006-01", f.before)
	if err != nil {
		return before, fmt.Errorf("--before %q is no month: give one as 2026-01", f.before)
	}
	if before.After(now.UTC()) {
		return before, fmt.Errorf("--before %s: the months before it are not over: give %s or an earlier one",
			f.before, now.UTC().Format("2006-01"))
	}
	return before, nil
}

// forgetBefore forgets the runs that were submitted before a time. With --yes it marks that time also if nothing is left to remove: an
// earlier version removed runs without a mark.
func (o *adminClient) forgetBefore(ctx context.Context, s *elastic.Store, before time.Time, f purge) error {
	past, err := s.Expired(ctx, before)
	if err != nil {
		return err
	}
	for _, line := range purgeLines(past) {
		if _, err := fmt.Fprintln(o.out, line); err != nil {
			return err
		}
	}
	nothing := len(past.Indices) == 0 && past.Runs == 0 && len(past.Unfinished) == 0
	if f.dry || nothing && !f.yes {
		return nil
	}
	if !f.yes {
		return errors.New("nothing was removed: give --yes to remove this for ever")
	}
	if _, err := s.DeleteExpired(ctx, before); err != nil || nothing {
		return err
	}
	_, err = fmt.Fprintln(o.out, "done")
	return err
}

// purgeLines returns a description of what would be removed.
func purgeLines(p elastic.Expired) []string {
	lines := make([]string, 0, len(p.Indices)+len(p.Unfinished)+1)
	for _, name := range p.Indices {
		lines = append(lines, "- index "+name)
	}
	if p.Runs > 0 {
		lines = append(lines, fmt.Sprintf("- %d runs", p.Runs))
	}
	for _, run := range p.Unfinished {
		lines = append(lines, "! run "+run+" has not finished: nothing is removed before it has")
	}
	if len(lines) == 0 {
		return []string{"there is nothing to be removed"}
	}
	return lines
}
