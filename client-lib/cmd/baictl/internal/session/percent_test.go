package session_test

import (
	"math"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

func TestAShareIsReadInPercentOrAsAFraction(t *testing.T) {
	for text, want := range map[string]struct {
		share float64
		shown string
	}{
		"2%": {0.02, "2%"}, "2 %": {0.02, "2%"}, "0.02": {0.02, "2%"}, "2.3%": {0.023, "2.3%"}, "0": {0, ""}, "0%": {0, ""},
		"999%": {9.99, "999%"}, "1e-3": {0.001, "0.1%"}, ".5": {0.5, "50%"},
	} {
		var p session.Percent
		if err := p.Set(text); err != nil || float64(p) != want.share || p.String() != want.shown {
			t.Errorf("%q is read as %v, %s (%v), want %v, %s", text, float64(p), p.String(), err, want.share, want.shown)
		}
	}
}

func TestAnotherShareIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "no share", "%": "no share", "two": "no share", "-2%": "no share", "-0.02": "no share", "NaN": "no share", "nan%": "no share",
		"0x1%": "no share", "1e1%": "no share", "2%%": "no share", "inf%": "no share", "Inf": "want 2% or 0.02", "5": "may be 5% or a factor", "1": "may be 1%",
		"1000%": "less than 1000%",
	} {
		p := session.Percent(0.5)
		if err := p.Set(text); err == nil || !strings.Contains(err.Error(), want) || p != 0.5 {
			t.Errorf("%q is read as %v, %v, want %q", text, float64(p), err, want)
		}
	}
}

func FuzzAShareThatIsShownIsReadAgain(f *testing.F) {
	for _, text := range []string{"2%", "0.02", "1e-3", "-1", "x", "12.5 %"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p, again session.Percent
		if p.Set(text) != nil || p < 1e-300 {
			return
		}
		if strings.Contains(p.String(), "e") { // as 1e-07%, which a user never needs
			return
		}
		if err := again.Set(p.String()); err != nil && p < 9.9 || err == nil && math.Abs(float64(again/p)-1) > 1e-5 {
			t.Errorf("%q is shown as %s, which is read as %v, %v", text, p.String(), float64(again), err)
		}
	})
}
