package receiver_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/internal/post"
)

func TestAProxyThatAsksToWaitIsWaitedForAndTheNoticeMayHaveArrived(t *testing.T) {
	answer := fmt.Errorf("%w: %w", post.ErrUnanswered, &post.TemporaryError{Status: 502, Text: "later", After: time.Minute})
	err := receiver.FromPost(answer)
	away, ok := errors.AsType[*receiver.TemporaryError](err)
	if !ok || away.After != time.Minute || !errors.Is(err, receiver.ErrUnanswered) || err.Error() != answer.Error() {
		t.Errorf("%v: asks to wait %+v, unanswered %t", err, away, errors.Is(err, receiver.ErrUnanswered))
	}
	if err := receiver.FromPost(post.ErrUnanswered); !errors.Is(err, receiver.ErrUnanswered) || errors.As(err, &away) {
		t.Errorf("without an answer: %v", err)
	}
}
