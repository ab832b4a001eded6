package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
)

// DeadLetter is a dead letter: a message that no consumer could handle.
type DeadLetter struct {
	Offset    int64             // among dead letters, which identifies it
	At        time.Time         // when it became a dead letter
	Run       string            // according to its key
	Type      string            // of the event: bai.metrics.v1
	Reason    string            // why it could not be handled
	Value     []byte            // the original value, or its beginning
	Headers   map[string]string // original headers that services use, without the run's token
	Truncated string            // parts of the message that were cut; empty for none
	Forged    bool              // its writer may not write for the run
	Signed    bool              // a service wrote the letter, according to its signature
	Trusted   bool              // the operator who replays it vouches that a service wrote it

	Topic          string // topic of the original message
	Partition      int
	OriginalOffset int64 // its offset there
}

// DeadLetters yields the dead letters from an offset on, oldest first. The last one is that of the time of the call.
func DeadLetters(ctx context.Context, s kafka.Settings, from int64) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		inspector, err := kafka.NewVerifier(s)
		if err != nil {
			yield(DeadLetter{}, err)
			return
		}
		for m, err := range kafka.Scan(ctx, s, event.TopicDead, 0, from) {
			if err != nil {
				yield(DeadLetter{}, fmt.Errorf("read dead letters: %w", err))
				return
			}
			l := parseDeadLetter(m)
			l.Signed = inspector.Verify(m)
			if !yield(l, nil) {
				return
			}
		}
	}
}

// parseDeadLetter parses a dead letter.
func parseDeadLetter(m kafkago.Message) DeadLetter {
	l := DeadLetter{Offset: m.Offset, At: m.Time, Run: string(m.Key), Value: m.Value, Headers: make(map[string]string), OriginalOffset: -1}
	hasCut := false
	for _, h := range m.Headers {
		text := string(h.Value)
		switch h.Key {
		case kafka.DeadCut:
			l.Truncated, hasCut = text, true
		case kafka.DeadForged:
			l.Forged = true
		case kafka.DeadTopic:
			l.Topic = text
		case kafka.DeadReason:
			l.Reason = text
		case kafka.DeadPartition:
			l.Partition, _ = strconv.Atoi(text)
		case kafka.DeadOffset:
			l.OriginalOffset, _ = strconv.ParseInt(text, 10, 64)
		default:
			l.Headers[h.Key] = text
		}
	}
	l.Type = l.Headers["ce_type"]
	if !hasCut { // by an earlier version
		if len(m.Value) >= kafka.MaxDead {
			l.Truncated = "value"
		}
		l.Forged = strings.Contains(l.Reason, access.ForgedReason)
	}
	return l
}

// Find returns the dead letter at an offset.
func Find(ctx context.Context, s kafka.Settings, offset int64) (DeadLetter, error) {
	for l, err := range DeadLetters(ctx, s, offset) {
		if err != nil {
			return l, err
		}
		if l.Offset == offset {
			return l, nil
		}
		break
	}
	return DeadLetter{}, fmt.Errorf("dead letter %d: there is none, or it is kept no more", offset)
}

// Replay writes the message of a dead letter to its topic once more, for consumers that can handle it by now. A message that was cut is
// read from its original place, while it is there. Handling a message twice has no effect. Replay needs the platform's key, with which it
// writes messages of pods. It refuses a forged message, because a replayed one would count as the run's own. If s has a signing key, it
// also refuses a letter without a signature unless Trusted is set.
func Replay(ctx context.Context, s kafka.Settings, bus *kafka.Bus, l DeadLetter) error {
	switch {
	case l.Topic == "" || l.Topic == event.TopicDead:
		return fmt.Errorf("replay dead letter %d: it does not say from which topic it came", l.Offset)
	case l.Forged:
		return fmt.Errorf("replay dead letter %d: whoever wrote it may not speak for run %.128q, and a replay would seal it as if they might: have the run's own pod write it, or leave it", l.Offset, l.Run)
	}
	inspector, err := kafka.NewVerifier(s)
	if err != nil {
		return err
	}
	if inspector.HasKey() && !l.Signed && !l.Trusted {
		return fmt.Errorf("replay dead letter %d: it has no seal of a service, so that anybody may have written it who can write to the brokers, and a replay would seal it: read it with 'bai admin dead show', and replay it with --unsealed where a service of an earlier version wrote it", l.Offset)
	}
	if l.Truncated != "" {
		if err := l.restore(ctx, s); err != nil {
			return fmt.Errorf("replay dead letter %d: it was cut, and %w", l.Offset, err)
		}
	}
	if err := bus.Republish(ctx, l.Topic, l.Run, l.Value, l.Headers); err != nil {
		return fmt.Errorf("replay dead letter %d: %w", l.Offset, err)
	}
	return nil
}

// restore reads the whole message of l from its original place.
func (l *DeadLetter) restore(ctx context.Context, s kafka.Settings) error {
	for m, err := range kafka.Scan(ctx, s, l.Topic, l.Partition, l.OriginalOffset) {
		if err != nil {
			return err
		}
		if m.Offset != l.OriginalOffset {
			break
		}
		l.Run, l.Value, l.Headers = string(m.Key), m.Value, kafka.KnownHeaders(m)
		return nil
	}
	return fmt.Errorf("offset %d of partition %d of %s is kept no more", l.OriginalOffset, l.Partition, l.Topic)
}

// Show writes all of l for people to read.
func (l DeadLetter) Show(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "offset     %d\nat         %s\nrun        %s\ntype       %s\nfrom       %s, partition %d, offset %d\nreason     %s\n",
		l.Offset, l.At.UTC().Format(time.RFC3339), line(l.Run), line(l.Type), line(l.Topic), l.Partition, l.OriginalOffset, line(l.Reason))
	if l.Truncated != "" {
		fmt.Fprintf(&b, "cut        the message is longer than what follows: %s\n", line(l.Truncated))
	}
	if l.Forged {
		b.WriteString("forged     it is not replayed\n")
	}
	if l.Signed {
		b.WriteString("sealed     by a service\n")
	}
	_, err := io.WriteString(out, b.String()+"\n")
	_, err2 := out.Write(append(printable(l.Value), '\n'))
	return errors.Join(err, err2)
}

// line returns text without line feeds and tabs.
func line(text string) string {
	return strings.NewReplacer("\n", "\uFFFD", "\t", "\uFFFD").Replace(string(printable([]byte(text))))
}

// printable replaces the control characters of terminals.
func printable(text []byte) []byte {
	out := []rune(strings.ToValidUTF8(string(text), "\uFFFD"))
	for i, r := range out {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			out[i] = '\uFFFD'
		}
	}
	return []byte(string(out))
}
