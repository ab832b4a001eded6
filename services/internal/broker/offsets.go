package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// topicPartition is a partition of a topic.
type topicPartition struct {
	topic     string
	partition int32
}

// resetOffsets resets groups behind the end of a log to its end: they would wait until as many records are written as were lost, and never
// receive these. It returns a sentence for each.
func (b *Broker) resetOffsets() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client, err := b.client()
	if err != nil {
		return nil, fmt.Errorf("look how far groups are: %w", err)
	}
	defer client.Close()
	ends, err := ends(ctx, client)
	if err != nil {
		return nil, err
	}
	groups, err := kmsg.NewPtrListGroupsRequest().RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("look how far groups are: %w", err)
	}
	var notes []string
	for _, g := range groups.Groups {
		some, err := resetGroupOffsets(ctx, client, g.Group, ends)
		if err != nil {
			return nil, fmt.Errorf("look how far group %q is: %w", g.Group, err)
		}
		notes = append(notes, some...)
	}
	slices.Sort(notes)
	return notes, nil
}

// ends returns the offset behind the last record of every partition.
func ends(ctx context.Context, client *kgo.Client) (map[topicPartition]int64, error) {
	meta := kmsg.NewPtrMetadataRequest()
	for _, name := range event.Topics() {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		meta.Topics = append(meta.Topics, t)
	}
	metadata, err := meta.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("look for the ends of topics: %w", err)
	}
	req := kmsg.NewPtrListOffsetsRequest()
	for _, k := range metadata.Topics {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = *k.Topic
		for _, n := range k.Partitions {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp = n.Partition, -1 // the end
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("look for the ends of topics: %w", err)
	}
	out := make(map[topicPartition]int64)
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("look for the end of %s/%d: %w", t.Topic, p.Partition, err)
			}
			out[topicPartition{t.Topic, p.Partition}] = p.Offset
		}
	}
	return out, nil
}

// resetGroupOffsets sets one group back.
func resetGroupOffsets(ctx context.Context, client *kgo.Client, group string, ends map[topicPartition]int64) ([]string, error) {
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Group = group
	resp, err := fetch.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group, commit.Generation = group, -1 // no consumer runs yet
	var notes []string
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			back, some := offsetsPastEnd(group, t, ends)
			if notes = append(notes, some...); len(some) > 0 {
				commit.Topics = append(commit.Topics, back)
			}
		}
	}
	if len(commit.Topics) == 0 {
		return nil, nil
	}
	done, err := commit.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	return notes, commitErrors(done)
}

// commitErrors returns why offsets were not committed, nil if all were.
func commitErrors(done *kmsg.OffsetCommitResponse) error {
	var errs []error
	for _, t := range done.Topics {
		for _, p := range t.Partitions {
			errs = append(errs, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return errors.Join(errs...)
}

// offsetsPastEnd returns the request that resets a group in those partitions of a topic behind whose end it is, and a sentence for each.
func offsetsPastEnd(
	group string, t kmsg.OffsetFetchResponseGroupTopic, ends map[topicPartition]int64,
) (kmsg.OffsetCommitRequestTopic, []string) {
	back := kmsg.NewOffsetCommitRequestTopic()
	back.Topic, back.TopicID = t.Topic, t.TopicID
	var notes []string
	for _, p := range t.Partitions {
		end, ok := ends[topicPartition{t.Topic, p.Partition}]
		if !ok || p.Offset <= end {
			continue
		}
		to := kmsg.NewOffsetCommitRequestTopicPartition()
		to.Partition, to.Offset = p.Partition, end
		back.Partitions = append(back.Partitions, to)
		notes = append(notes, fmt.Sprintf("%s/%d ends at record %d: group %s, which had heard up to %d, is set back", t.Topic,
			p.Partition, end, group, p.Offset))
	}
	return back, notes
}
