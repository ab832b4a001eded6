package entrypoint

import (
	"regexp"
	"strings"
	"testing"
)

func TestTheFirstLineThatTellsThatACommandIsReady(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxReadyLine)
	for name, tt := range map[string]struct {
		pattern string
		chunks  []string // of standard error where they begin with !
		want    int      // the chunk with the line's end; -1 for none
	}{
		"a whole line":                             {"ready", []string{"starts\nis ready now\n"}, 0},
		"a line in two pieces":                     {"ready$", []string{"is re", "ady", "\n"}, 2},
		"a line without its end":                   {"ready", []string{"is ready"}, -1},
		"^ and $ are those of the line":            {"^b$", []string{"a\nb\r\n"}, 0},
		"lines of standard error":                  {"ready", []string{"!ready\n"}, 0},
		"the streams have lines of their own":      {"ready", []string{"re", "!ady\n", "ady\n"}, 2},
		"the beginning of a long line is compared": {"y", []string{long + "y\n", "y\n"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := lineMatcher{pattern: regexp.MustCompile(tt.pattern)}
			got := -1
			for i, chunk := range tt.chunks {
				text, isErr := strings.CutPrefix(chunk, "!")
				if m.add(isErr, []byte(text)) {
					got = i
					break
				}
			}
			if got != tt.want {
				t.Errorf("ready after chunk %d, want %d", got, tt.want)
			}
		})
	}
}
