package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/segmentio/kafka-go"
)

func TestWhatBrokersMayAnswerOtherwiseInAMoment(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		nil:                      false,
		kafka.Unknown:            true,
		kafka.LeaderNotAvailable: true,
		fmt.Errorf("x: %w", kafka.NotLeaderForPartition): true,
		kafka.BrokerNotAvailable:                         true,
		fmt.Errorf("read: %w", os.ErrDeadlineExceeded):   true,
		context.DeadlineExceeded:                         false,
		kafka.UnknownTopicOrPartition:                    false,
		kafka.TopicAuthorizationFailed:                   false,
		errors.New("connection refused"):                 false,
	} {
		if got := isTransient(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}

func TestATopicIsRefusedForGoodOnlyWhereNoWaitHelps(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		kafka.LeaderNotAvailable: true,
		fmt.Errorf("%w: Unable to replicate the partition 1 time(s): All brokers are currently fenced", kafka.InvalidReplicationFactor):                     true,
		fmt.Errorf("%w: Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached", kafka.InvalidReplicationFactor): false,
		kafka.TopicAuthorizationFailed: false,
		errors.New("fenced"):           false,
	} {
		if got := (&topicError{topic: "bai.status", err: err}).isTemporary(); got != want {
			t.Errorf("%v: temporary is %t", err, got)
		}
	}
}

func TestWhatIsUnsettledIsAskedAgainUntilItIsSettled(t *testing.T) {
	t.Parallel()
	answers := []error{kafka.BrokerNotAvailable, kafka.LeaderNotAvailable, nil}
	requests := 0
	err := RetryTransient(t.Context(), func(context.Context) error { requests++; return answers[requests-1] })
	if err != nil || requests != 3 {
		t.Errorf("asked %d times: %v", requests, err)
	}
	refused := RetryTransient(t.Context(), func(context.Context) error { return kafka.TopicAuthorizationFailed })
	if !errors.Is(refused, kafka.TopicAuthorizationFailed) {
		t.Errorf("a refusal is %v", refused)
	}
}
