package cursor_test

import (
	"errors"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/cursor"
)

func TestACursorIsTakenBackForItsQueryOnly(t *testing.T) {
	text := cursor.Encode("runs of ann", []byte{1, 2, 3})
	if b, err := cursor.Decode("runs of ann", text); err != nil || string(b) != "\x01\x02\x03" {
		t.Errorf("Unseal: %v, %v", b, err)
	}
	if _, err := cursor.Decode("runs of bob", text); !errors.Is(err, store.ErrCursor) {
		t.Errorf("of another query: %v", err)
	}
}

func TestACursorThatWasChangedIsRefused(t *testing.T) {
	const letters = "AQgw-_"
	text := cursor.Encode("q", []byte{1, 2})
	for i := range text {
		for _, c := range []byte(letters) {
			changed := []byte(text)
			if changed[i] == c {
				continue
			}
			changed[i] = c
			if _, err := cursor.Decode("q", string(changed)); !errors.Is(err, store.ErrCursor) {
				t.Errorf("%s instead of %s: %v", changed, text, err)
			}
		}
	}
}
