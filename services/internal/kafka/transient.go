package kafka

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/control"
)

// isTransient reports whether brokers may answer otherwise in a moment: a partition has no leader yet, or a new one, which Kafka also
// reports as UNKNOWN_SERVER_ERROR; the controller has just changed; or a busy broker gave no answer in time. A missing topic is not
// transient.
func isTransient(err error) bool {
	if kafkaErr, ok := errors.AsType[kafka.Error](err); ok {
		return kafkaErr != kafka.UnknownTopicOrPartition &&
			(kafkaErr == kafka.Unknown || kafkaErr == kafka.BrokerNotAvailable || kafkaErr.Temporary())
	}
	return errors.Is(err, os.ErrDeadlineExceeded) // of a connection
}

// RetryTransient repeats an idempotent request while its error is transient, for coordinationTimeout at most, and returns its last error.
func RetryTransient(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, coordinationTimeout)
	defer cancel()
	for {
		err := request(ctx)
		if !isTransient(err) {
			return err
		}
		if !control.Sleep(ctx, 100*time.Millisecond) {
			return err
		}
	}
}
