package follow

import (
	"io"
	"strings"
	"testing"
	"time"
)

func FuzzWhateverALogHoldsIsReadLineByLine(f *testing.F) {
	for _, seed := range []string{"", "\n", "a", "a\nb\n", "2026-01-02T03:04:05.123456789Z x\n", "2026-01-02T03:04:05Z\n", " \n\n", strings.Repeat("x", 40<<10) + "\ny"} {
		f.Add(seed, 8)
	}
	f.Fuzz(func(t *testing.T, log string, limit int) {
		limit = max(1, min(limit, 1<<16))
		texts, lengths := readAll(strings.NewReader(log), limit)
		want := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
		if log == "" {
			want = nil
		}
		if len(texts) != len(want) {
			t.Fatalf("%d lines, want %d", len(texts), len(want))
		}
		for i, line := range want {
			if texts[i] != line[:min(len(line), limit)] || lengths[i] != len(line) {
				t.Errorf("line %d is %q of %d, want %q", i, texts[i], lengths[i], line)
			}
			checkStamp(t, line)
		}
	})
}

// checkStamp checks that the time of a line is cut off, if it has one.
func checkStamp(t *testing.T, line string) {
	t.Helper()
	stamp, rest, _ := strings.Cut(line, " ")
	at, text, ok := cutTimestamp([]byte(line))
	if when, err := time.Parse(time.RFC3339Nano, stamp); ok != (err == nil) || ok && (at != when.UnixNano() || string(text) != rest) {
		t.Errorf("%q is %d %q %t", line, at, text, ok)
	}
}

// readAll returns the beginnings and the lengths of all lines.
func readAll(r io.Reader, limit int) (texts []string, lengths []int) {
	for l := newLines(r); ; {
		text, length, _, err := l.next(limit)
		if err != nil {
			return texts, lengths
		}
		texts, lengths = append(texts, string(text)), append(lengths, length)
	}
}
