package session_test

import (
	"testing"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

func TestAChangeIsReadAsPercentOrAsANumber(t *testing.T) {
	for text, want := range map[string]string{
		"2%": "2%", "0.02": "2%", " 2.5 % ": "2.5%", "0": "", "0%": "", "150%": "150%",
		"": "error", "%": "error", "-1%": "error", "NaN": "error", "inf": "error", "two": "error",
	} {
		var p session.Percent
		got := "error"
		if err := p.Set(text); err == nil {
			got = p.String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
