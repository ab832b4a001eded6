package kafka

import (
	"bytes"
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// signatureHeader has the signature of a message, called seal on the wire: a service wrote the message.
const signatureHeader = "bai_seal"

// signaturePolicyKey is the key of the one document of KindSignatures.
const signaturePolicyKey = "seals"

// Greatest ages of a cached policy: for a topic that requires signatures, because that is never taken back, and for other topics.
const (
	policyMaxAge = 5 * time.Second
	policyMinAge = 100 * time.Millisecond
)

// errUnsigned means that a message needs a signature and has no valid one.
var errUnsigned = errors.New("the message does not carry the seal of a service")

// errNoSigningKey means that this process cannot verify signatures.
var errNoSigningKey = errors.New("messages must have seals, and without their key nobody can tell whether these are right: set kafka.seal_key_file to the file that the other services have")

// readSigningKeys reads a file with a key on each line.
func readSigningKeys(path string) ([][]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key of the seals: %w", err)
	}
	var keys [][]byte
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			keys = append(keys, line)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("read the key of the seals: %s has no key, want one of %d bytes or more on each line", path, access.MinKey)
	}
	return keys, nil
}

// checkSigningKeys returns why keys cannot be used for signatures. The key for the tokens of runs must not be among them.
func checkSigningKeys(keys [][]byte, platform []byte) error {
	for i, key := range keys {
		if len(key) < access.MinKey {
			return fmt.Errorf("key %d of the seals has %d bytes, want %d or more", i+1, len(key), access.MinKey)
		}
		if bytes.Equal(key, platform) {
			return errors.New("the key of the seals is the platform's key: make one of its own with 'openssl rand -hex 32'")
		}
	}
	return nil
}

// signer signs messages with the first of its keys, and verifies signatures of all.
type signer struct{ keys [][]byte }

// sign returns m with a new signature if its topic has signatures.
func (s signer) sign(m kafka.Message) kafka.Message {
	if len(s.keys) == 0 || m.Topic != event.TopicDead && !slices.Contains(SignedTopics(), m.Topic) {
		return m
	}
	m.Headers = slices.DeleteFunc(slices.Clone(m.Headers), func(h kafka.Header) bool { return h.Key == signatureHeader })
	m.Headers = append(m.Headers, kafka.Header{Key: signatureHeader, Value: []byte(signatureOf(s.keys[0], signedParts(m)...))})
	return m
}

// verify reports whether m has a seal of one of the keys.
func (s signer) verify(m kafka.Message) bool {
	got, parts := []byte(header(m, signatureHeader)), signedParts(m)
	return slices.ContainsFunc(s.keys, func(key []byte) bool { return hmac.Equal(got, []byte(signatureOf(key, parts...))) })
}

// signedParts returns the parts of m that the signature covers. For a dead letter these include the headers, which tell where the message
// comes from, and whether it may be replayed.
func signedParts(m kafka.Message) [][]byte {
	parts := [][]byte{[]byte(m.Topic), m.Key, m.Value}
	if m.Topic != event.TopicDead {
		return parts
	}
	for _, h := range m.Headers {
		if h.Key != signatureHeader {
			parts = append(parts, []byte(h.Key), h.Value)
		}
	}
	return parts
}

// SignaturePolicySource has the signature policy.
type SignaturePolicySource interface {
	// Policy returns the current policy.
	Policy(ctx context.Context) (SignaturePolicy, error)
	// Update is that of SignaturePolicyStore.
	Update(ctx context.Context, change func(SignaturePolicy) SignaturePolicy) (SignaturePolicy, error)
}

// SignaturePolicyStore is the signature policy in a store.
type SignaturePolicyStore struct{ Docs store.Docs }

// Policy implements SignaturePolicySource. Without a stored policy it returns the zero value.
func (s SignaturePolicyStore) Policy(ctx context.Context) (SignaturePolicy, error) {
	seals, _, err := s.get(ctx)
	return seals, err
}

func (s SignaturePolicyStore) get(ctx context.Context) (SignaturePolicy, int64, error) {
	seals, version, err := store.Get[SignaturePolicy](ctx, s.Docs, store.KindSignatures, signaturePolicyKey)
	if errors.Is(err, store.ErrNotFound) {
		return SignaturePolicy{}, 0, nil
	}
	if err != nil {
		return SignaturePolicy{}, 0, fmt.Errorf("read from where on seals are demanded: %w", err)
	}
	return seals, version, nil
}

// Update replaces the policy by the result of change, and returns it. If another process changes the policy meanwhile, change is called
// again.
func (s SignaturePolicyStore) Update(ctx context.Context, change func(SignaturePolicy) SignaturePolicy) (SignaturePolicy, error) {
	for {
		was, version, err := s.get(ctx)
		if err != nil {
			return SignaturePolicy{}, err
		}
		next := change(was)
		if version == 0 {
			err = store.Create(ctx, s.Docs, store.KindSignatures, signaturePolicyKey, next)
		} else {
			_, err = store.Replace(ctx, s.Docs, store.KindSignatures, signaturePolicyKey, version, next)
		}
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
			return SignaturePolicy{}, fmt.Errorf("note from where on seals are demanded: %w", err)
		}
	}
}

// policyCache is the policy as last read, and the time of the read.
type policyCache struct {
	policy SignaturePolicy
	readAt time.Time
	warned bool // that topics are open
}

// authenticate refuses a message whose writer may not write it: one without the token of its run, or without the required signature. While
// it is unknown whether the message needs a signature, the error is not event.ErrPoison.
func (b *Bus) authenticate(ctx context.Context, m kafka.Message) error {
	if err := b.credentials.Check(m); err != nil {
		return err
	}
	if !slices.Contains(SignedTopics(), m.Topic) {
		return nil
	}
	seals, err := b.signaturePolicy(ctx, m.Topic)
	switch {
	case err != nil:
		return err
	case !seals.RequiresSignature(m.Topic, m.Partition, m.Offset):
		return nil
	case len(b.signer.keys) == 0:
		return errNoSigningKey
	case b.signer.verify(m):
		return nil
	}
	return fmt.Errorf("%w: %w: nobody knows who wrote it for run %.128q", event.ErrPoison, errUnsigned, m.Key)
}

// signaturePolicy returns the policy as it was a moment ago. If the topic requires signatures, the cached policy stays valid while the
// store is unavailable: no requirement is taken back.
func (b *Bus) signaturePolicy(ctx context.Context, topic string) (SignaturePolicy, error) {
	if b.settings.SignaturePolicy == nil {
		return SignaturePolicy{}, nil
	}
	b.mu.Lock()
	cached := b.policyCache
	b.mu.Unlock()
	_, demanded := cached.policy.Topics[topic]
	if age := time.Since(cached.readAt); age < policyMinAge || demanded && age < policyMaxAge {
		return cached.policy, nil
	}
	seals, err := b.settings.SignaturePolicy.Policy(ctx)
	if err != nil && demanded {
		return cached.policy, nil
	}
	if err != nil {
		return SignaturePolicy{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.policyCache.policy, b.policyCache.readAt = seals, time.Now()
	return seals, nil
}

// checkSigning reads the policy before a topic is consumed. Once per process it warns of topics that require no signatures.
func (b *Bus) checkSigning(ctx context.Context, topic string) error {
	if !slices.Contains(SignedTopics(), topic) || b.settings.SignaturePolicy == nil {
		return nil
	}
	seals, err := b.signaturePolicy(ctx, topic)
	if err != nil {
		return err
	}
	if _, demanded := seals.Topics[topic]; demanded && len(b.signer.keys) == 0 {
		return errNoSigningKey
	}
	b.mu.Lock()
	warned := b.policyCache.warned
	b.policyCache.warned = true
	b.mu.Unlock()
	if open := seals.UnsignedTopics(); len(open) > 0 && !warned {
		b.log.Warn("messages without a seal are believed: whoever can write to the brokers can speak for the platform. When all services write seals, run 'bai admin seals require'",
			zap.Strings("topics", open), zap.Bool("this process writes seals", len(b.signer.keys) > 0))
	}
	return nil
}

// UnsignedWarning returns a sentence with the topics on which messages without a signature are accepted; empty if there are none, or if
// this process has no policy.
func (b *Bus) UnsignedWarning(ctx context.Context) string {
	if b.settings.SignaturePolicy == nil {
		return ""
	}
	seals, err := b.signaturePolicy(ctx, "")
	if err != nil {
		return ""
	}
	open := seals.UnsignedTopics()
	if len(open) == 0 {
		return ""
	}
	return fmt.Sprintf("messages without a seal are believed on %s: run 'bai admin seals require' when all services write seals",
		strings.Join(open, ", "))
}

// Verifier verifies the signatures of services.
type Verifier struct{ signer signer }

// NewVerifier returns a Verifier with the keys of settings. Without a key it accepts no signature.
func NewVerifier(s Settings) (Verifier, error) {
	keys := s.SigningKeys
	if s.SigningKeyFile != "" && len(keys) == 0 {
		var err error
		if keys, err = readSigningKeys(s.SigningKeyFile); err != nil {
			return Verifier{}, err
		}
	}
	return Verifier{signer{keys: keys}}, checkSigningKeys(keys, s.Key)
}

// HasKey reports whether i has a key.
func (i Verifier) HasKey() bool { return len(i.signer.keys) > 0 }

// Verify reports whether m has the seal of a service.
func (i Verifier) Verify(m kafka.Message) bool { return i.signer.verify(m) }
