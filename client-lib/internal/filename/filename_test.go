package filename_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/internal/filename"
)

func TestWindowsGetsNamesThatItHasAndLinuxItsOwn(t *testing.T) {
	for name, want := range map[string]string{
		"1/benchmark-0/2026-11-23T07:47:50.json": "1/benchmark-0/2026-11-23T07%3A47%3A50.json",
		`a/C:\x`:                                 "a/C%3A%5Cx",
		"a\nb":                                   "a%0Ab",
		"100%":                                   "100%25",
		"a%3Ab":                                  "a%253Ab",
		"dots.../x. ":                            "dots..%2E/x.%20",
		"con/NUL.txt":                            "%63on/%4EUL.txt",
		"com1 .log":                              "%63om1 .log",
		"COM10/common":                           "COM10/common",
		"plain/完成.txt":                           "plain/完成.txt",
	} {
		got, escaped := filename.On("windows", name)
		if got != want || escaped != (want != name) {
			t.Errorf("%q is %q (%t) on Windows, want %q", name, got, escaped, want)
		}
		if back, err := filename.Unescape(got); back != name || err != nil {
			t.Errorf("%q comes back as %q, %v", name, back, err)
		}
		if got, escaped := filename.On("linux", name); got != name || escaped {
			t.Errorf("%q is %q on Linux", name, got)
		}
	}
	for _, name := range []string{"a%", "a%2", "a%zz", "a%+1"} {
		if _, err := filename.Unescape(name); err == nil {
			t.Errorf("%q is taken for an escaped name", name)
		}
	}
}

func FuzzEscapedNamesComeBackAndSuitEverySystem(f *testing.F) {
	for _, name := range []string{"a:b", `\`, "%25", "nul", "x.", "a//b", "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := filename.Escape(name)
		if strings.ContainsAny(got, "<>:\"\\|?*\x00\n") {
			t.Errorf("%q becomes %q", name, got)
		}
		if back, err := filename.Unescape(got); back != name || err != nil {
			t.Errorf("%q becomes %q, and that %q, %v", name, got, back, err)
		}
	})
}
