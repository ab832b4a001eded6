package entrypoint

import (
	"strings"
	"testing"
)

func TestLastWordsKeepTwoStreamsApart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	type piece struct {
		isErr bool
		text  string
	}
	tests := map[string]struct {
		pieces []piece
		want   string
	}{
		"of nothing": {nil, ""},
		"an open line ends where the other goes on": {[]piece{{false, "hello data"}, {true, "ls: cannot access"}}, "hello data\nls: cannot access"},
		"an open line of one stream goes on":        {[]piece{{true, "a"}, {true, "b\n"}}, "ab\n"},
		"lines that are ended are left alone":       {[]piece{{false, "a\n"}, {true, "b\n"}, {false, "c"}}, "a\nb\nc"},
		"nothing does not change the stream":        {[]piece{{false, "a"}, {true, ""}, {false, "b"}}, "ab"},
		"the beginning of what is long is left out": {[]piece{{false, long + "\n"}, {true, "end\n"}}, "end\n"},
		"a line that is long is cut":                {[]piece{{false, long}}, long[:2048]},
		"many are bounded":                          {[]piece{{false, long + "\n"}, {false, long + "\n"}, {false, long + "\n"}, {false, "z"}}, "z"},
		"what is no text is replaced":               {[]piece{{true, "a\xffb\x00c"}}, "a\uFFFDbc"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all tail
			for _, p := range tt.pieces {
				all.add(p.isErr, []byte(p.text))
			}
			if got := all.lastLines(); got != tt.want {
				t.Errorf("%.60q, want %.60q", got, tt.want)
			}
		})
	}
}
