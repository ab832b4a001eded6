package kafka

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// minKey is how many bytes the platform's key has at least.
const minKey = 16

// tokenHeader carries the token of the message's run.
const tokenHeader = "bai_token"

// TokenFor returns the right to speak for a run. Who has it cannot tell the
// token of another run from it.
func TokenFor(key []byte, run string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(run))
	return hex.EncodeToString(mac.Sum(nil))
}

// errForged says that a message was written by somebody who may not speak for its
// run.
var errForged = errors.New(ForgedReason)

// ForgedReason is what the reason of a dead letter has in it that somebody wrote who may
// not speak for its run. Letters of earlier versions say it nowhere else.
const ForgedReason = "the message does not carry the token of run"

// credentials is what a process speaks with: the platform's key, which makes the token
// of every run, or the token of one run.
type credentials struct {
	key   []byte
	token string
}

// tokenFor returns the token to write beside what is said of run, empty for none.
func (s credentials) tokenFor(run string) string {
	if len(s.key) > 0 {
		return TokenFor(s.key, run)
	}
	return s.token
}

// check refuses what pods may write but somebody else wrote, for whoever holds
// the key. On other topics seals say who wrote.
func (s credentials) check(m kafka.Message) error {
	if len(s.key) == 0 {
		return nil
	}
	switch m.Topic {
	case event.TopicStatus, event.TopicMetrics, event.TopicLogs:
	default:
		return nil
	}
	if !hmac.Equal([]byte(header(m, tokenHeader)), []byte(TokenFor(s.key, string(m.Key)))) {
		return fmt.Errorf("%w: %w %.128q: whoever wrote it may not speak for that run", event.ErrPoison, errForged, m.Key)
	}
	return nil
}
