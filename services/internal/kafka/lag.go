package kafka

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// Pauses between two measurements of a consumer's lag.
const (
	lagInterval      = 10 * time.Second
	lagFirstInterval = 500 * time.Millisecond // at first, while its group shares out partitions
	lagTimeout       = 5 * time.Second        // for which brokers may take to answer
)

// balancer assigns partitions like the default, and identifies a consumer in its group: each time that it joins, by another ID.
type balancer struct {
	kafka.RangeGroupBalancer

	joined chan []byte // the newest ID, until reportLag receives it
}

func newBalancer() balancer { return balancer{joined: make(chan []byte, 1)} }

// UserData implements kafka.GroupBalancer. One goroutine calls it when the consumer is about to join its group: the consumer has no
// partitions from then on until the group has assigned them.
func (b balancer) UserData() ([]byte, error) {
	id := []byte(rand.Text())
	select {
	case <-b.joined:
	default:
	}
	b.joined <- id
	return id, nil
}

// reportLag reports to the meter how far c is behind in its partitions, every few seconds until ctx is done, whether or not c makes
// progress. While the lag is unknown, for example because the brokers are unavailable, it reports none.
func (c *consumer) reportLag(ctx context.Context) {
	var id []byte
	var own []int
	for wait := lagFirstInterval; ; {
		var behind map[int]int64
		select {
		case <-ctx.Done():
			c.bus.settings.Meter.RecordLag(c.group, c.step.Topic, nil)
			return
		case id = <-c.balancer.joined:
			own, wait = nil, lagFirstInterval
		case <-time.After(wait):
			var err error
			if own, behind, err = c.readLag(ctx, id, own); err != nil {
				wait = min(2*wait, lagInterval)
			} else {
				wait = lagInterval
			}
		}
		c.bus.settings.Meter.RecordLag(c.group, c.step.Topic, behind)
	}
}

// readLag returns the partitions of the consumer with that ID, which are own if that is not nil, and for each how many events its group has
// not committed.
func (c *consumer) readLag(ctx context.Context, id []byte, own []int) ([]int, map[int]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, lagTimeout)
	defer cancel()
	if own == nil {
		var err error
		if own, err = c.assigned(ctx, id); err != nil {
			return nil, nil, err
		}
	}
	behind, err := c.lag(ctx, own)
	return own, behind, err
}

// assigned returns the partitions that the group has assigned to the member with that ID, never nil.
func (c *consumer) assigned(ctx context.Context, id []byte) ([]int, error) {
	group := groupID(c.group, c.step.Topic)
	resp, err := c.bus.producer.client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return nil, fmt.Errorf("ask who reads what in group %q: %w", group, err)
	}
	for _, g := range resp.Groups {
		if g.Error != nil || g.GroupState != "Stable" {
			continue
		}
		for _, m := range g.Members {
			if len(id) > 0 && bytes.Equal(m.MemberMetadata.UserData, id) {
				return partitions(m.MemberAssignments.Topics, c.step.Topic), nil
			}
		}
	}
	return nil, fmt.Errorf("ask who reads what in group %q: %w", group, kafka.RebalanceInProgress)
}

// partitions returns those of a topic, never nil.
func partitions(topics []kafka.GroupMemberTopic, topic string) []int {
	out := []int{}
	for _, t := range topics {
		if t.Topic == topic {
			out = append(out, t.Partitions...)
		}
	}
	return out
}

// lag returns how many events of each partition the group has not committed.
func (c *consumer) lag(ctx context.Context, own []int) (map[int]int64, error) {
	out := make(map[int]int64, len(own))
	if len(own) == 0 {
		return out, nil
	}
	group, topic := groupID(c.group, c.step.Topic), c.step.Topic
	committed, err := c.bus.producer.client.OffsetFetch(ctx,
		&kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: own}})
	if err == nil {
		err = committed.Error
	}
	if err != nil {
		return nil, fmt.Errorf("ask how far group %q is: %w", group, err)
	}
	var ask []kafka.OffsetRequest
	for _, p := range committed.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("ask how far group %q is: %w", group, p.Error)
		}
		out[p.Partition] = p.CommittedOffset
		ask = append(ask, kafka.LastOffsetOf(p.Partition))
		if p.CommittedOffset < 0 { // the consumer starts at the first offset
			ask = append(ask, kafka.FirstOffsetOf(p.Partition))
		}
	}
	ends, err := c.bus.producer.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: ask}})
	if err != nil {
		return nil, fmt.Errorf("ask how far %q goes: %w", topic, err)
	}
	for _, p := range ends.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("ask how far partition %d of %q goes: %w", p.Partition, topic, p.Error)
		}
		out[p.Partition] = max(p.LastOffset-max(out[p.Partition], p.FirstOffset), 0)
	}
	return out, nil
}
