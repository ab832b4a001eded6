package extract_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

func TestTheTextOfALine(t *testing.T) {
	for name, tt := range map[string]struct {
		line string
		text string
		raw  int64
		cut  bool
	}{
		"a line":                               {"abc", "abc", 0, false},
		"one at the limit":                     {"12345678", "12345678", 0, false},
		"one over it is cut":                   {"123456789", "12345678", 9, true},
		"no character is cut apart":            {"1234567ö", "1234567", 9, true},
		"what is no UTF-8 is replaced":         {"a\xff\xfeb", "a\uFFFDb", 4, false},
		"and may be longer than there is room": {"\xff1\xff2\xff3", "\uFFFD1\uFFFD2", 6, true},
		"a carriage return stays":              {"a\r", "a\r", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			text, raw, cut := extract.LineText([]byte(tt.line), int64(len(tt.line)), 8)
			if text != tt.text || raw != tt.raw || cut != tt.cut {
				t.Errorf("%q of %d bytes, cut %v; want %q of %d, %v", text, raw, cut, tt.text, tt.raw, tt.cut)
			}
		})
	}
}

func TestTheBeginningOfATextIsWholeCharacters(t *testing.T) {
	const text = "aö€𝄞z"
	for limit := range len(text) + 2 {
		if got := extract.Truncate(text, limit); len(got) > limit || !utf8.ValidString(got) || !strings.HasPrefix(text, got) || len(got) < min(len(text), limit)-3 {
			t.Errorf("%d bytes: %q", limit, got)
		}
	}
}
