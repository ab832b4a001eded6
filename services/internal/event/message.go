package event

import (
	"errors"
	"fmt"
	"time"
)

// Major is the version of the form in which events travel. Within a major
// version fields may be added, and readers ignore those they do not know, so
// that old and new services run side by side. Whatever else changes the form
// begins a new one.
const Major = 1

// ErrPoison says that a message is not an event that its reader can read now
// or at any other time.
var ErrPoison = errors.New("poison")

// Message is an event as it travels, whatever carries it.
type Message struct {
	Topic       string
	Key         string // run: messages of one key keep their order
	ID          string
	Type        string    // topic and major version: bai.status.v1
	Time        time.Time // when the first cause happened
	PublishedAt time.Time // when it was written to its topic; zero where that is not known
	Value       []byte    // JSON
}

// Encode encodes ev. It refuses an event that Decode would refuse, as ErrPoison.
func Encode(ev Event) (Message, error) {
	if err := ev.Validate(); err != nil {
		return Message{}, fmt.Errorf("encode %T: %w: %w", ev, ErrPoison, err)
	}
	value, err := render(ev)
	if err != nil {
		return Message{}, fmt.Errorf("encode %T: %w: %w", ev, ErrPoison, err)
	}
	h := ev.Head()
	return Message{Topic: ev.Topic(), Key: h.Run, ID: h.ID, Type: typeOf(ev), Time: h.Time, Value: value}, nil
}

// Decode reads one event of type T, of the major version that this program
// speaks. Unknown fields are ignored. A message of another type or version, one
// that is not JSON, one that lacks a required field, and one whose key is not
// its run are ErrPoison.
func Decode[T Event](m Message) (T, error) {
	var ev T
	if want := typeOf(ev); m.Type != want {
		return ev, fmt.Errorf("decode %T: %w: type %q, want %q", ev, ErrPoison, m.Type, want)
	}
	if err := parse(m.Value, &ev); err != nil {
		return ev, fmt.Errorf("decode %T: %w: %w", ev, ErrPoison, err)
	}
	if err := ev.Validate(); err != nil {
		return ev, fmt.Errorf("decode %T: %w: %w", ev, ErrPoison, err)
	}
	if key := ev.Head().Run; m.Key != key {
		return ev, fmt.Errorf("decode %T: %w: key %q, but run %q", ev, ErrPoison, m.Key, key)
	}
	if h, ok := any(&ev).(interface{ setPublishedAt(at time.Time) }); ok {
		h.setPublishedAt(m.PublishedAt)
	}
	return ev, nil
}

func typeOf(ev Event) string { return fmt.Sprintf("%s.v%d", ev.Topic(), Major) }
