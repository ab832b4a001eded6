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

// signatureHeader carries the seal of a message: that a service wrote it.
const signatureHeader = "bai_seal"

// signaturePolicyKey is that of the one document of KindSeals.
const signaturePolicyKey = "seals"

// How old what is known of the demand for seals may be: of a topic of which seals are
// demanded, for that is not taken back, and of others.
const (
	policyMaxAge = 5 * time.Second
	policyMinAge = 100 * time.Millisecond
)

// errUnsigned says that a message must have a seal and has none that is right.
var errUnsigned = errors.New("the message does not carry the seal of a service")

// errNoSigningKey says that nobody here can tell a right seal from a wrong one.
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

// checkSigningKeys says why keys are none for seals. A key by which the tokens of runs
// are made is none.
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

// signer seals messages with the first of its keys, and knows the seals of all.
type signer struct{ keys [][]byte }

// sign returns m with a seal, instead of any that it had, where its topic has such.
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

// signedParts is what the seal of m vouches for. Of a dead letter the headers say where
// the message comes from, and whether it may be replayed.
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

// SignaturePolicySource says from where on messages must have a seal.
type SignaturePolicySource interface {
	// Policy returns what is noted now.
	Policy(ctx context.Context) (SignaturePolicy, error)
	// Update is that of SignaturePolicyStore.
	Update(ctx context.Context, change func(SignaturePolicy) SignaturePolicy) (SignaturePolicy, error)
}

// SignaturePolicyStore is what a store has noted of seals.
type SignaturePolicyStore struct{ Docs store.Docs }

// Policy implements SignaturePolicySource. Where nothing is noted it is the zero value.
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

// Update notes what change makes of what is noted, and returns it. Others may change
// it meanwhile: then change is asked again.
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

// policyCache is what was read of Seals, and when.
type policyCache struct {
	policy SignaturePolicy
	readAt time.Time
	warned bool // that topics are open
}

// authenticate refuses what somebody wrote who may not: what lacks the token of its run, or
// the seal that it must have. While nobody knows whether it must have one its error
// is another.
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

// signaturePolicy returns from where on seals are demanded of a topic, as it was a moment ago.
// Where they are, that stays true while the store is away: no demand is taken back.
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

// checkSigning reads from where on seals are demanded before a topic is heard. It says once
// of the process where they are not.
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

// UnsignedWarning says, in a sentence, on which topics messages without a seal are
// believed; empty where there is none, or where nobody here knows.
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
	return fmt.Sprintf("messages without a seal are believed on %s: run 'bai admin seals require' when all services write seals", strings.Join(open, ", "))
}

// Verifier tells messages that have the seal of a service from those that have not.
type Verifier struct{ signer signer }

// NewVerifier returns one with the keys of settings. Without a key it knows no seal.
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
