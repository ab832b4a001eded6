package kafka

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// Pauses between two looks at how far a consumer is behind.
const (
	lagInterval      = 10 * time.Second
	lagFirstInterval = 500 * time.Millisecond // at first, while its group shares out partitions
	lagTimeout       = 5 * time.Second        // for which brokers may take to answer
)

// balancer shares out partitions as consumers do that were told nothing, and has
// a consumer known in its group: each time that it joins by another ID.
type balancer struct {
	kafka.RangeGroupBalancer

	joined chan []byte // the newest ID, if nobody has taken it yet
}

func newBalancer() balancer { return balancer{joined: make(chan []byte, 1)} }

// UserData implements kafka.GroupBalancer. It is called by one goroutine, when
// the consumer is about to join its group: from then on no partition is its own
// until the group has shared them out.
func (b balancer) UserData() ([]byte, error) {
	id := []byte(rand.Text())
	select {
	case <-b.joined:
	default:
	}
	b.joined <- id
	return id, nil
}

// reportLag tells the meter how far c is behind in the partitions that are its own,
// every few seconds until ctx is done, whether or not it gets on. What it does
// not know, as while the brokers are away, it does not tell.
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

// readLag returns the partitions that are the consumer's of that ID, which own are
// where that is known, and how many events of each its group has not committed.
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

// assigned returns the partitions that the group has given to the member of that
// ID, never nil.
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
	committed, err := c.bus.producer.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: own}})
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
		if p.CommittedOffset < 0 { // it begins at the first
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
