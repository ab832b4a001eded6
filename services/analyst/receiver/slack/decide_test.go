package slack

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzEscapedTextsHaveNoMarkup(f *testing.F) {
	for _, text := range []string{"", "<!channel>", "@here", "a&b", "](http://x)", "&lt;!here&gt;", "@@all", strings.Repeat("<", 5000), ":://", "* ` ~ _a_"} {
		f.Add(text, 100)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = max(limit%5000, 10)
		got := escape(text, limit)
		if utf8.RuneCountInString(got) > limit {
			t.Errorf("%q has %d characters, want at most %d", got, utf8.RuneCountInString(got), limit)
		}
		rest := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "", "@\u200b", "").Replace(got)
		if strings.ContainsAny(rest, "<>&@*~`") || strings.Contains(rest, "://") || strings.Contains(rest, "](") {
			t.Errorf("%q became %q", text, got)
		}
	})
}
