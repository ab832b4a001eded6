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
