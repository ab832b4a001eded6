package adminverb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/joining"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/admin"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
)

func (o *adminClient) seals() *cobra.Command {
	c := &cobra.Command{
		Use: "seals", Short: "The seals by which services know each other's messages", Args: cobra.NoArgs,
		Long: `Services seal the messages by which they tell each other what becomes of runs, with
the key in kafka.seal_key_file, which no pod of a run has. Messages without a seal
are refused from the offsets on that are noted in the store.`,
	}
	var data string
	c.PersistentFlags().StringVar(&data, "data", "", "`directory` of a standalone platform, which runs, instead of --config")
	c.AddCommand(
		&cobra.Command{
			Use: "show", Short: "Say from which offsets on messages must have a seal", Args: cobra.NoArgs,
			Long: fmt.Sprintf(`Say for each partition which offsets it has, from which on messages must have a
seal, and how many of its newest %d messages have none. Where services of an
earlier version run, new messages have none.`, admin.Sampled),
			RunE: func(c *cobra.Command, _ []string) error { return o.withSeals(c.Context(), data, o.showSeals) },
		},
		&cobra.Command{
			Use: "require", Short: "Demand a seal of every message from now on", Args: cobra.NoArgs,
			Long: `Demand a seal of every message that comes from now on. Messages that are there stay
believed, so that runs in flight and replays go on. Run it once all services have
the key and none of an earlier version runs, for what that would write is refused.
Services learn of it at once. Run it again when the messages of before are
no longer kept: then seals are demanded of all. It is never taken back.`,
			RunE: func(c *cobra.Command, _ []string) error { return o.withSeals(c.Context(), data, o.requireSeals) },
		},
	)
	return c
}

// withSeals calls do with the settings of the brokers and the signature policy in the
// store.
func (o *adminClient) withSeals(
	ctx context.Context, data string, do func(context.Context, kafka.Settings, kafka.SignaturePolicyStore) error,
) (err error) {
	var j joining.Settings
	if data != "" {
		if j, err = joining.Read(data); err != nil {
			return err
		}
	} else {
		var s adminSettings
		if err := config.Load(o.config, &s); err != nil {
			return err
		}
		switch {
		case len(s.Kafka.Brokers) == 0:
			return fmt.Errorf("%s: kafka.brokers: at least one is needed, or --data for a standalone platform", o.config)
		case len(s.Elasticsearch.Addresses) == 0:
			return fmt.Errorf("%s: elasticsearch.addresses: at least one is needed, or --data for a standalone platform", o.config)
		}
		j.Kafka, j.Elasticsearch = s.Kafka, &s.Elasticsearch
	}
	j.Kafka.Source = "bai-admin"
	if j.Elasticsearch == nil {
		j.Elasticsearch = &elastic.Settings{}
	}
	docs, err := program.OpenStore(ctx, j.Store, *j.Elasticsearch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, docs.Close()) }()
	return do(ctx, j.Kafka, kafka.SignaturePolicyStore{Docs: docs})
}

func (o *adminClient) showSeals(ctx context.Context, s kafka.Settings, in kafka.SignaturePolicyStore) error {
	seals, err := in.Policy(ctx)
	if err != nil {
		return err
	}
	partitions, err := admin.InspectSignatures(ctx, s, seals)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOPIC\tPARTITION\tFIRST\tEND\tSEALS FROM\tWITHOUT SEAL")
	for _, p := range partitions {
		from, without := strconv.FormatInt(p.RequiredFrom, 10), "unknown"
		if p.RequiredFrom < 0 {
			from = "not demanded"
		}
		if p.Unsigned >= 0 {
			without = fmt.Sprintf("%d of %d", p.Unsigned, min(p.Range.End-p.Range.First, admin.Sampled))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\n", p.Topic, p.Partition, p.Range.First, p.Range.End, from, without)
	}
	return w.Flush()
}

func (o *adminClient) requireSeals(ctx context.Context, s kafka.Settings, in kafka.SignaturePolicyStore) error {
	inspector, err := kafka.NewVerifier(s)
	if err != nil {
		return err
	}
	if !inspector.HasKey() {
		return errors.New("kafka.seal_key_file: is needed: without a key services write no seals, and nothing that they write would be believed. Make one with 'openssl rand -hex 32', and give all services the same")
	}
	if _, err := kafka.RequireSignatures(ctx, s, in); err != nil {
		return err
	}
	if err := o.showSeals(ctx, s, in); err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.out, "seals are demanded of every message from these offsets on")
	return err
}

// requireSealsOfNewTopics requires signatures of all messages on the topics that the plan
// creates, if the settings have the signing key and the store. It comes before they are
// created.
func (o *adminClient) requireSealsOfNewTopics(ctx context.Context, s kafka.Settings, p admin.Changes) (err error) {
	isSigned := func(t kafka.Topic) bool { return slices.Contains(kafka.SignedTopics(), t.Name) }
	if s.SigningKeyFile == "" || !slices.ContainsFunc(p.Create, isSigned) {
		return nil // services report that signatures are not required
	}
	c, done, err := kafka.NewClient(s)
	if err != nil {
		return err
	}
	defer done()
	missing, err := kafka.Missing(ctx, c, p.Create)
	if err != nil {
		return err
	}
	var a adminSettings
	if err := config.Load(o.config, &a); err != nil {
		return err
	}
	if len(a.Elasticsearch.Addresses) == 0 {
		_, err := fmt.Fprintln(o.out,
			"messages without a seal are believed on the new topics: set elasticsearch.addresses, then run 'bai admin seals require'")
		return err
	}
	docs, err := program.OpenStore(ctx, "", a.Elasticsearch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, docs.Close()) }()
	return kafka.RequireSignaturesOfNew(ctx, kafka.SignaturePolicyStore{Docs: docs}, missing)
}
