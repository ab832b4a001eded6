package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// MinKey is the least length of the platform's key, in bytes.
const MinKey = 16

// TokenHeader is the header with the token of the message's run.
const TokenHeader = "bai_token"

// TokenFor returns the token that lets its holder write for a run. The token of another run cannot be computed from it.
func TokenFor(key []byte, run string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(run))
	return hex.EncodeToString(mac.Sum(nil))
}

// ErrForged means that the writer of a message may not write for its run.
var ErrForged = errors.New(ForgedReason)

// ForgedReason is in the reason of each dead letter whose writer may not write for its run. Letters of earlier versions have no other mark
// of this.
const ForgedReason = "the message does not carry the token of run"

// Credentials are the platform's key, which makes the token of every run, or the
// token of one run.
type Credentials struct {
	Key   []byte
	Token string
}

// For returns the token for messages of run, empty for none.
func (s Credentials) For(run string) string {
	if len(s.Key) > 0 {
		return TokenFor(s.Key, run)
	}
	return s.Token
}

// Check refuses a message without the token of its run, on the topics to which pods may write, if the platform's key is available. On other
// topics the signature counts.
func (s Credentials) Check(m kafka.Message) error {
	if len(s.Key) == 0 {
		return nil
	}
	switch m.Topic {
	case event.TopicStatus, event.TopicMetrics, event.TopicLogs:
	default:
		return nil
	}
	var token []byte
	if i := slices.IndexFunc(m.Headers, func(h kafka.Header) bool { return h.Key == TokenHeader }); i >= 0 {
		token = m.Headers[i].Value
	}
	if !hmac.Equal(token, []byte(TokenFor(s.Key, string(m.Key)))) {
		return fmt.Errorf("%w: %w %.128q: whoever wrote it may not speak for that run", event.ErrPoison, ErrForged, m.Key)
	}
	return nil
}
