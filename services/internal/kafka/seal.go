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
	"github.com/benchmark-ai/bai/services/internal/store"
)

// sealHeader carries the seal of a message: that a service wrote it.
const sealHeader = "bai_seal"

// sealsKey is that of the one document of KindSeals.
const sealsKey = "seals"

// How old what is known of the demand for seals may be: of a topic of which seals are
// demanded, for that is not taken back, and of others.
const (
	sealsAge  = 5 * time.Second
	sealsSoon = 100 * time.Millisecond
)

// errUnsealed says that a message must have a seal and has none that is right.
var errUnsealed = errors.New("the message does not carry the seal of a service")

// errNoSealKey says that nobody here can tell a right seal from a wrong one.
var errNoSealKey = errors.New("messages must have seals, and without their key nobody can tell whether these are right: set kafka.seal_key_file to the file that the other services have")

// readSealKeys reads a file with a key on each line.
func readSealKeys(path string) ([][]byte, error) {
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
		return nil, fmt.Errorf("read the key of the seals: %s has no key, want one of %d bytes or more on each line", path, minKey)
	}
	return keys, nil
}

// checkSealKeys says why keys are none for seals. A key by which the tokens of runs
// are made is none.
func checkSealKeys(keys [][]byte, platform []byte) error {
	for i, key := range keys {
		if len(key) < minKey {
			return fmt.Errorf("key %d of the seals has %d bytes, want %d or more", i+1, len(key), minKey)
		}
		if bytes.Equal(key, platform) {
			return errors.New("the key of the seals is the platform's key: make one of its own with 'openssl rand -hex 32'")
		}
	}
	return nil
}

// sealer seals messages with the first of its keys, and knows the seals of all.
type sealer struct{ keys [][]byte }

// seal returns m with a seal, instead of any that it had, where its topic has such.
func (s sealer) seal(m kafka.Message) kafka.Message {
	if len(s.keys) == 0 || m.Topic != event.TopicDead && !slices.Contains(Sealed(), m.Topic) {
		return m
	}
	m.Headers = slices.DeleteFunc(slices.Clone(m.Headers), func(h kafka.Header) bool { return h.Key == sealHeader })
	m.Headers = append(m.Headers, kafka.Header{Key: sealHeader, Value: []byte(sealOf(s.keys[0], vouched(m)...))})
	return m
}

// right reports whether m has a seal of one of the keys.
func (s sealer) right(m kafka.Message) bool {
	told, parts := []byte(header(m, sealHeader)), vouched(m)
	return slices.ContainsFunc(s.keys, func(key []byte) bool { return hmac.Equal(told, []byte(sealOf(key, parts...))) })
}

// vouched is what the seal of m vouches for. Of a dead letter the headers say where
// the message comes from, and whether it may be replayed.
func vouched(m kafka.Message) [][]byte {
	parts := [][]byte{[]byte(m.Topic), m.Key, m.Value}
	if m.Topic != event.TopicDead {
		return parts
	}
	for _, h := range m.Headers {
		if h.Key != sealHeader {
			parts = append(parts, []byte(h.Key), h.Value)
		}
	}
	return parts
}

// SealSource says from where on messages must have a seal.
type SealSource interface {
	// Seals returns what is noted now.
	Seals(ctx context.Context) (Seals, error)
	// Change is that of SealsIn.
	Change(ctx context.Context, change func(Seals) Seals) (Seals, error)
}

// SealsIn is what a store has noted of seals.
type SealsIn struct{ Docs store.Docs }

// Seals implements SealSource. Where nothing is noted it is the zero value.
func (s SealsIn) Seals(ctx context.Context) (Seals, error) {
	seals, _, err := s.get(ctx)
	return seals, err
}

func (s SealsIn) get(ctx context.Context) (Seals, int64, error) {
	seals, version, err := store.Get[Seals](ctx, s.Docs, store.KindSeals, sealsKey)
	if errors.Is(err, store.ErrNotFound) {
		return Seals{}, 0, nil
	}
	if err != nil {
		return Seals{}, 0, fmt.Errorf("read from where on seals are demanded: %w", err)
	}
	return seals, version, nil
}

// Change notes what change makes of what is noted, and returns it. Others may change
// it meanwhile: then change is asked again.
func (s SealsIn) Change(ctx context.Context, change func(Seals) Seals) (Seals, error) {
	for {
		was, version, err := s.get(ctx)
		if err != nil {
			return Seals{}, err
		}
		next := change(was)
		if version == 0 {
			err = store.Create(ctx, s.Docs, store.KindSeals, sealsKey, next)
		} else {
			_, err = store.Replace(ctx, s.Docs, store.KindSeals, sealsKey, version, next)
		}
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
			return Seals{}, fmt.Errorf("note from where on seals are demanded: %w", err)
		}
	}
}

// noted is what was read of Seals, and when.
type noted struct {
	seals Seals
	at    time.Time
	told  bool // that topics are open
}

// admit refuses what somebody wrote who may not: what lacks the token of its run, or
// the seal that it must have. While nobody knows whether it must have one its error
// is another.
func (b *Bus) admit(ctx context.Context, m kafka.Message) error {
	if err := b.speaker.check(m); err != nil {
		return err
	}
	if !slices.Contains(Sealed(), m.Topic) {
		return nil
	}
	seals, err := b.seals(ctx, m.Topic)
	switch {
	case err != nil:
		return err
	case !seals.Demands(m.Topic, m.Partition, m.Offset):
		return nil
	case len(b.sealer.keys) == 0:
		return errNoSealKey
	case b.sealer.right(m):
		return nil
	}
	return fmt.Errorf("%w: %w: nobody knows who wrote it for run %.128q", event.ErrPoison, errUnsealed, m.Key)
}

// seals returns from where on seals are demanded of a topic, as it was a moment ago.
// Where they are, that stays true while the store is away: no demand is taken back.
func (b *Bus) seals(ctx context.Context, topic string) (Seals, error) {
	if b.settings.Seals == nil {
		return Seals{}, nil
	}
	b.mu.Lock()
	known := b.noted
	b.mu.Unlock()
	_, demanded := known.seals.Topics[topic]
	if age := time.Since(known.at); age < sealsSoon || demanded && age < sealsAge {
		return known.seals, nil
	}
	seals, err := b.settings.Seals.Seals(ctx)
	if err != nil && demanded {
		return known.seals, nil
	}
	if err != nil {
		return Seals{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noted.seals, b.noted.at = seals, time.Now()
	return seals, nil
}

// mind reads from where on seals are demanded before a topic is heard. It says once
// of the process where they are not.
func (b *Bus) mind(ctx context.Context, topic string) error {
	if !slices.Contains(Sealed(), topic) || b.settings.Seals == nil {
		return nil
	}
	seals, err := b.seals(ctx, topic)
	if err != nil {
		return err
	}
	if _, demanded := seals.Topics[topic]; demanded && len(b.sealer.keys) == 0 {
		return errNoSealKey
	}
	b.mu.Lock()
	again := b.noted.told
	b.noted.told = true
	b.mu.Unlock()
	if open := seals.Open(); len(open) > 0 && !again {
		b.log.Warn("messages without a seal are believed: whoever can write to the brokers can speak for the platform. When all services write seals, run 'bai admin seals require'",
			zap.Strings("topics", open), zap.Bool("this process writes seals", len(b.sealer.keys) > 0))
	}
	return nil
}

// Unsealed says, in a sentence, on which topics messages without a seal are
// believed; empty where there is none, or where nobody here knows.
func (b *Bus) Unsealed(ctx context.Context) string {
	if b.settings.Seals == nil {
		return ""
	}
	seals, err := b.seals(ctx, "")
	if err != nil {
		return ""
	}
	open := seals.Open()
	if len(open) == 0 {
		return ""
	}
	return fmt.Sprintf("messages without a seal are believed on %s: run 'bai admin seals require' when all services write seals", strings.Join(open, ", "))
}

// Inspector tells messages that have the seal of a service from those that have not.
type Inspector struct{ sealer sealer }

// NewInspector returns one with the keys of settings. Without a key it knows no seal.
func NewInspector(s Settings) (Inspector, error) {
	keys := s.SealKeys
	if s.SealKeyFile != "" && len(keys) == 0 {
		var err error
		if keys, err = readSealKeys(s.SealKeyFile); err != nil {
			return Inspector{}, err
		}
	}
	return Inspector{sealer{keys: keys}}, checkSealKeys(keys, s.Key)
}

// Knows reports whether i has a key.
func (i Inspector) Knows() bool { return len(i.sealer.keys) > 0 }

// Right reports whether m has the seal of a service.
func (i Inspector) Right(m kafka.Message) bool { return i.sealer.right(m) }
