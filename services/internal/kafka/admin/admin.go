package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
)

// ReadState reads from the brokers the topics of settings, and the rights to topics and groups.
func ReadState(ctx context.Context, s kafka.Settings) (State, error) {
	c, done, err := kafka.NewClient(s)
	if err != nil {
		return State{}, err
	}
	defer done()
	have := State{Topics: make(map[string]kafka.Topic)}
	for _, readPart := range []func(context.Context) error{
		func(ctx context.Context) error { return have.topics(ctx, c, s.Topics.Topics()) },
		func(ctx context.Context) error { return have.configs(ctx, c) },
		func(ctx context.Context) error { return have.readACLs(ctx, c) },
	} {
		if err := kafka.RetryTransient(ctx, readPart); err != nil {
			return State{}, err
		}
	}
	return have, nil
}

func (have *State) topics(ctx context.Context, c *kafkago.Client, wanted []kafka.Topic) error {
	var names []string
	for _, t := range wanted {
		names = append(names, t.Name)
	}
	meta, err := c.Metadata(ctx, &kafkago.MetadataRequest{Topics: names})
	if err != nil {
		return fmt.Errorf("look for topics: %w", err)
	}
	for _, t := range meta.Topics {
		switch {
		case errors.Is(t.Error, kafkago.UnknownTopicOrPartition):
		case t.Error != nil:
			return fmt.Errorf("look for topic %q: %w", t.Name, t.Error)
		case len(t.Partitions) > 0:
			have.Topics[t.Name] = kafka.Topic{
				Name: t.Name, Partitions: len(t.Partitions), Replication: len(t.Partitions[0].Replicas),
				Configs: make(map[string]string),
			}
		}
	}
	return nil
}

func (have *State) configs(ctx context.Context, c *kafkago.Client) error {
	req := &kafkago.DescribeConfigsRequest{}
	for _, name := range slices.Sorted(maps.Keys(have.Topics)) {
		req.Resources = append(req.Resources,
			kafkago.DescribeConfigRequestResource{ResourceType: kafkago.ResourceTypeTopic, ResourceName: name})
	}
	if len(req.Resources) == 0 {
		return nil
	}
	resp, err := c.DescribeConfigs(ctx, req)
	if err != nil {
		return fmt.Errorf("read the settings of topics: %w", err)
	}
	for _, r := range resp.Resources {
		if r.Error != nil {
			return fmt.Errorf("read the settings of topic %q: %w", r.ResourceName, r.Error)
		}
		for _, e := range r.ConfigEntries {
			have.Topics[r.ResourceName].Configs[e.ConfigName] = e.ConfigValue
		}
	}
	return nil
}

func (have *State) readACLs(ctx context.Context, c *kafkago.Client) error {
	resp, err := c.DescribeACLs(ctx, &kafkago.DescribeACLsRequest{Filter: kafkago.ACLFilter{
		ResourceTypeFilter: kafkago.ResourceTypeAny, ResourcePatternTypeFilter: kafkago.PatternTypeAny,
		Operation: kafkago.ACLOperationTypeAny, PermissionType: kafkago.ACLPermissionTypeAny,
	}})
	if err == nil {
		err = resp.Error
	}
	if errors.Is(err, kafkago.SecurityDisabled) {
		have.ACLsDisabled = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read who has which rights: %w", err)
	}
	for _, r := range resp.Resources {
		kind, ok := kinds()[r.ResourceType]
		if !ok {
			continue
		}
		for _, acl := range r.ACLs {
			rule := Rule{Host: acl.Host, Deny: acl.PermissionType == kafkago.ACLPermissionTypeDeny, ACL: access.ACL{
				Principal: acl.Principal, Resource: kind, Name: r.ResourceName,
				Prefixed: r.PatternType == kafkago.PatternTypePrefixed, Operation: acl.Operation.String(),
			}}
			if rule.Host == "*" {
				rule.Host = ""
			}
			have.ACLs = append(have.ACLs, rule)
		}
	}
	slices.SortFunc(have.ACLs, func(a, b Rule) int { return cmp.Or(a.Compare(b.ACL), cmp.Compare(a.String(), b.String())) })
	return nil
}

// kinds are the resources that the platform needs rights to.
func kinds() map[kafkago.ResourceType]string {
	return map[kafkago.ResourceType]string{kafkago.ResourceTypeTopic: "topic", kafkago.ResourceTypeGroup: "group"}
}

// Apply carries out p, and p.Grow only if grow is set. After a failure a new plan completes the work. The brokers may show the changes a
// little later.
func Apply(ctx context.Context, s kafka.Settings, p Changes, grow bool) error {
	c, done, err := kafka.NewClient(s)
	if err != nil {
		return err
	}
	defer done()
	var errs []error
	for _, step := range []func(context.Context, *kafkago.Client) error{p.create, p.alter, p.grant} {
		errs = append(errs, kafka.RetryTransient(ctx, func(ctx context.Context) error { return step(ctx, c) }))
	}
	if grow { // once: a topic that has grown cannot grow to the same number again
		errs = append(errs, p.grow(ctx, c))
	}
	return errors.Join(errs...)
}

func (p Changes) create(ctx context.Context, c *kafkago.Client) error {
	if len(p.Create) == 0 {
		return nil
	}
	_, err := kafka.Create(ctx, c, p.Create)
	return err
}

func (p Changes) alter(ctx context.Context, c *kafkago.Client) error {
	topics := make(map[string][]kafkago.IncrementalAlterConfigsRequestConfig)
	for _, s := range p.Alter {
		topics[s.Topic] = append(topics[s.Topic],
			kafkago.IncrementalAlterConfigsRequestConfig{Name: s.Key, Value: s.To, ConfigOperation: kafkago.ConfigOperationSet})
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		resp, err := c.IncrementalAlterConfigs(ctx,
			&kafkago.IncrementalAlterConfigsRequest{Resources: []kafkago.IncrementalAlterConfigsRequestResource{
				{ResourceType: kafkago.ResourceTypeTopic, ResourceName: name, Configs: topics[name]},
			}})
		if err == nil && len(resp.Resources) > 0 {
			err = resp.Resources[0].Error
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("change settings of topic %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (p Changes) grant(ctx context.Context, c *kafkago.Client) error {
	if len(p.Grant) == 0 {
		return nil
	}
	req := &kafkago.CreateACLsRequest{}
	for _, r := range p.Grant {
		acl := kafkago.ACLEntry{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: r.Name, ResourcePatternType: kafkago.PatternTypeLiteral,
			Principal: r.Principal, Host: "*", Operation: kafkago.ACLOperationTypeRead, PermissionType: kafkago.ACLPermissionTypeAllow,
		}
		if r.Resource == "group" {
			acl.ResourceType = kafkago.ResourceTypeGroup
		}
		if r.Prefixed {
			acl.ResourcePatternType = kafkago.PatternTypePrefixed
		}
		if r.Operation == "Write" {
			acl.Operation = kafkago.ACLOperationTypeWrite
		}
		req.ACLs = append(req.ACLs, acl)
	}
	resp, err := c.CreateACLs(ctx, req)
	if err != nil {
		return fmt.Errorf("give rights: %w", err)
	}
	if err := errors.Join(resp.Errors...); err != nil {
		return fmt.Errorf("give rights: %w", err)
	}
	return nil
}

func (p Changes) grow(ctx context.Context, c *kafkago.Client) error {
	if len(p.Grow) == 0 {
		return nil
	}
	req := &kafkago.CreatePartitionsRequest{}
	for _, g := range p.Grow {
		req.Topics = append(req.Topics, kafkago.TopicPartitionsConfig{Name: g.Topic, Count: int32(g.To)}) //nolint:gosec // validated
	}
	resp, err := c.CreatePartitions(ctx, req)
	if err != nil {
		return fmt.Errorf("add partitions: %w", err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(resp.Errors)) {
		if err := resp.Errors[name]; err != nil {
			errs = append(errs, fmt.Errorf("add partitions to topic %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
