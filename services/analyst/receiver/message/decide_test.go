package message

import (
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestAHeadlineSaysWhatIsTheMatterAndInWhichDirection(t *testing.T) {
	change := store.Float(-0.0823)
	odd := store.Float(math.NaN())
	for want, i := range map[string]incident.Incident{
		"rate of sums is 8.23 % lower, which is worse":    {Rule: incident.Rule{When: incident.Regression}, Direction: "down", Magnitude: &change},
		"rate of sums is 8.23 % higher":                   {Rule: incident.Rule{When: incident.Change}, Direction: "up", Magnitude: &change},
		"rate of sums is higher":                          {Rule: incident.Rule{When: incident.Change}, Direction: "up"},
		"rate of sums is lower, which is worse":           {Rule: incident.Rule{When: incident.Regression}, Direction: "down", Magnitude: &odd},
		"rate of sums is different":                       {Rule: incident.Rule{When: incident.Change}},
		"rate of sums is above 100 MB/s: 120 MB/s":        {Rule: incident.Rule{When: incident.Above, Limit: 100, Unit: "MB/s"}, After: 120, Unit: "MB/s"},
		"rate of sums is 8.23 % lower than baseline main": {Rule: incident.Rule{When: incident.Beyond, Baseline: "main"}, Direction: "down", Magnitude: &change},
		"no value of rate of sums":                        {Rule: incident.Rule{When: incident.Missing}},
		"rate of sums was 8.23 % lower, which was worse":  {State: incident.Resolved, Rule: incident.Rule{When: incident.Regression}, Direction: "down", Magnitude: &change},
		"runs of sums fail":                               {Rule: incident.Rule{When: incident.Failed}},
	} {
		i.Rule.Metric, i.Rule.Task = "rate", "sums"
		if got := Headline(i); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestANoticeSaysThatRunsConfirmItsIncidentAndHowToRepeatThem(t *testing.T) {
	const again = "both again: baictl rerun old && baictl rerun new"
	i := incident.Incident{Rule: incident.Rule{When: incident.Regression}, Reasons: []string{again}, Confirmation: &incident.Confirmation{Verdict: incident.VerdictConfirmed}}
	text := Of(notice.Notice{Became: incident.Firing, Incidents: []incident.Incident{i}}).Text()
	if !strings.Contains(text, "  runs of both editions confirm it\n") || !strings.Contains(text, again) {
		t.Error(text)
	}
	i.Confirmation.Verdict = incident.VerdictInsufficient
	if text := Of(notice.Notice{Incidents: []incident.Incident{i}}).Text(); strings.Contains(text, "confirm it") {
		t.Error(text)
	}
}

func TestATitleSaysHowManyMoreThereAre(t *testing.T) {
	i := incident.Incident{Rule: incident.Rule{When: incident.Failed, Task: strings.Repeat("long", 100)}}
	n := notice.Notice{Became: incident.Resolved, Incidents: []incident.Incident{i, i}, More: 3, Test: true}
	got := Of(n).Title
	if !strings.HasPrefix(got, "[TEST] Resolved: runs of long") || !strings.HasSuffix(got, "… and 4 more") || utf8.RuneCountInString(got) > maxTitle {
		t.Errorf("title %q", got)
	}
	if got := Of(notice.Notice{}).Title; got == "" {
		t.Error("a notice without anything has no title")
	}
}

func FuzzTextsOfUsersAreOneLineOfVisibleText(f *testing.F) {
	for _, text := range []string{"", "rate", "a\r\nBcc: b", "\u202egnitset", "\xff\xfe", "a\u2028b", "\x1b[31m", "\u200bx", strings.Repeat("é", 1000)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, got := range []string{Clean(text), Inert(text)} {
			if !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00") {
				t.Errorf("%q became %q", text, got)
			}
		}
		clean := Clean(text)
		if utf8.RuneCountInString(clean) > maxText || strings.ContainsFunc(clean, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			t.Errorf("%q became %q", text, clean)
		}
		if Clean(clean) != clean {
			t.Errorf("%q cleaned again is %q", clean, Clean(clean))
		}
	})
}
