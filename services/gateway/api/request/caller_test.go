package request_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/gateway/api/request"
)

func TestTheCallerIsTheUserWhomTheClientNames(t *testing.T) {
	for name, tt := range map[string]struct {
		users []string
		want  string
	}{
		"nobody":                     {nil, "anonymous"},
		"an empty name":              {[]string{"", "ann"}, "ann"},
		"a plain name":               {[]string{"ann@example.org"}, "ann@example.org"},
		"a name with a space":        {[]string{"Ann%20Lee"}, "Ann Lee"},
		"a name beyond ASCII":        {[]string{"J%C3%B6rg"}, "Jörg"},
		"a name with a percent sign": {[]string{"50%25"}, "50%"},
		"no encoding":                {[]string{"50%"}, "50%"},
		"a line feed":                {[]string{"a%0Ab"}, "a%0Ab"},
		"bytes that are no text":     {[]string{"%ff"}, "%ff"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := request.CallerOf(tt.users); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
