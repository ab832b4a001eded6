package collect_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// FuzzLines writes output in pieces that the input chooses, and compares the shipped lines with a plain split of the text.
func FuzzLines(f *testing.F) {
	f.Add([]byte("hello\nworld\n"), []byte{3, 1, 200})
	f.Add([]byte("a\xff\n\n\x00é"+strings.Repeat("long ", 30)+"\nend"), []byte{1})
	f.Add([]byte(strings.Repeat("ö", 40)+"\n"), []byte{7})
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		v := newVolume(t)
		var plain [2][]byte // of each stream
		for i, rest := 0, text; len(rest) > 0; i++ {
			n, stream := len(rest), 0
			if len(cuts) > 0 {
				n, stream = min(n, int(cuts[i%len(cuts)])%100+1), int(cuts[i%len(cuts)])%3/2
			}
			v.record(t, pod.Record{Err: stream == 1, Time: int64(i), Data: rest[:n]})
			plain[stream], rest = append(plain[stream], rest[:n]...), rest[n:]
		}
		v.exit(t, pod.Exit{})
		s := settings(v)
		s.MaxLine = 50
		store := newStore(t)
		collectAll(t, s, store)
		store.complete(t)
		for stream := range plain {
			compare(t, plain[stream], store, stream == 1)
		}
	})
}

// compare checks the lines of one stream.
func compare(t *testing.T, plain []byte, store *fakeStore, isErr bool) {
	t.Helper()
	var got []event.Line
	for _, ev := range store.events {
		if logs, ok := ev.(event.Logs); ok {
			for _, l := range logs.Lines {
				if l.Stderr == isErr {
					got = append(got, l)
				}
			}
		}
	}
	lines := bytes.SplitAfter(plain, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	if len(got) != len(lines) {
		t.Fatalf("%d lines, want %d: %+v", len(got), len(lines), got)
	}
	for i, raw := range lines {
		if err := same(got[i], raw); err != nil {
			t.Errorf("line %d %+v of %q: %v", i, got[i], raw, err)
		}
	}
}

func same(l event.Line, raw []byte) error {
	text := bytes.TrimSuffix(raw, []byte("\n"))
	switch {
	case l.Unterminated == bytes.HasSuffix(raw, []byte("\n")):
		return fmt.Errorf("open %v", l.Unterminated)
	case !utf8.ValidString(l.Text) || len(l.Text) > 50:
		return fmt.Errorf("text %q", l.Text)
	case utf8.Valid(text) && l.Truncated != (len(text) > 50):
		return fmt.Errorf("cut %v", l.Truncated)
	case !l.Truncated && utf8.Valid(text) && (l.Text != string(text) || l.Raw != 0):
		return fmt.Errorf("text %q, raw %d", l.Text, l.Raw)
	case (l.Truncated || !utf8.Valid(text)) && l.Raw != int64(len(text)):
		return fmt.Errorf("raw %d", l.Raw)
	}
	return nil
}
