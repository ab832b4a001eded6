package alarm

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/series"
	"github.com/benchmark-ai/bai/client-lib/internal/plot"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// shortID is the beginning of an ID, as tables have it.
func shortID(id string) string { return id[:min(8, len(id))] }

// since is when an incident came into its state.
func since(i *baiv1.Incident) *timestamppb.Timestamp {
	if n := len(i.GetTransitions()); n > 0 {
		return i.GetTransitions()[n-1].GetTime()
	}
	return i.GetOpenTime()
}

func date(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format("2006-01-02")
}

// minute is a time to the minute, in this machine's zone; empty for none.
func minute(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format("2006-01-02 15:04")
}

// withUnit is a value with its unit.
func withUnit(x float64, unit string) string {
	return strings.TrimSpace(printer.Number(x) + " " + unit)
}

// metric is the metric of an incident with the labels of its samples, without the unit.
func metric(i *baiv1.Incident) string {
	return series.Name(&baiv1.SeriesHistory{Metric: i.GetMetric(), Labels: i.GetLabels(), Cell: i.GetCell()})
}

// change is the size of an incident: "-6.6 %", "112 > 100", or what is missing.
func change(i *baiv1.Incident) string {
	switch i.GetRule().GetWhen() {
	case "above":
		return printer.Number(i.GetAfter()) + " > " + printer.Number(i.GetBefore())
	case "below":
		return printer.Number(i.GetAfter()) + " < " + printer.Number(i.GetBefore())
	case "failed", "missing":
		return i.GetRule().GetWhen()
	}
	if i.Magnitude != nil && !math.IsNaN(i.GetMagnitude()) && !math.IsInf(i.GetMagnitude(), 0) {
		return printer.PercentForm(i.GetMagnitude())(i.GetMagnitude()) + " %"
	}
	return printer.Signed(i.GetAfter() - i.GetBefore())
}

// changeSentence is a change with all that is known of it: "-6.6 % [-8.3, -4.9], p=3e-07, from
// 101.5 to 94.75 MB/s".
func changeSentence(i *baiv1.Incident) string {
	text := change(i)
	switch i.GetRule().GetWhen() {
	case "above", "below":
		return strings.TrimSpace(text + " " + i.GetUnit())
	case "failed", "missing":
		return ""
	}
	if iv := i.GetInterval(); iv != nil && i.Magnitude != nil {
		form := printer.PercentForm(i.GetMagnitude())
		text += " [" + form(iv.GetLow()) + ", " + form(iv.GetHigh()) + "]"
	}
	if i.P != nil {
		text += fmt.Sprintf(", p=%.2g", i.GetP())
	}
	text += ", from " + printer.Number(i.GetBefore()) + " to " + withUnit(i.GetAfter(), i.GetUnit())
	if i.GetKind() == "drift" {
		text += ", gradual"
	}
	return text
}

// rule is a rule in words: "regression of the median by 2 % or more, to perf-team".
func rule(i *baiv1.Incident) string {
	r := i.GetRule()
	text := r.GetWhen()
	if s := r.GetStatistic(); s != "" && i.GetMetric() != "" {
		text += " of the " + s
	}
	switch r.GetWhen() {
	case "above", "below":
		text = r.GetStatistic() + " " + r.GetWhen() + " " + withUnit(r.GetLimit(), cmp.Or(r.GetUnit(), i.GetUnit()))
	case "beyond":
		text = fmt.Sprintf("%s worse than baseline %s by more than %s %%", r.GetStatistic(), r.GetBaseline(),
			printer.Number(100*r.GetLimit()))
	}
	if m := r.GetMinChange(); m > 0 {
		text += fmt.Sprintf(" by %s %% or more", printer.Number(100*m))
	}
	if n := r.GetForPoints(); n > 1 {
		text += fmt.Sprintf(", for %d points", n)
	}
	if n := r.GetConfirmPairs(); n > 0 {
		text += fmt.Sprintf(", confirmed by %d pairs of runs", n)
	}
	if len(r.GetNotify()) > 0 {
		text += ", to " + strings.Join(r.GetNotify(), ", ")
	}
	return strings.TrimSpace(text)
}

// point is the run of a point with its version, value and time.
func point(i *baiv1.Incident, p *baiv1.IncidentPoint) string {
	if p == nil {
		return ""
	}
	valued := i.GetMetric() != ""
	text := cmp.Or(p.GetRunId(), "no run")
	if v := p.GetVersion(); v != "" {
		text += ", version " + v
	}
	if valued && p.GetRunId() != "" {
		text += ", " + withUnit(p.GetValue(), i.GetUnit())
	}
	return text + ", " + minute(p.GetTime())
}

// line is a line of a description.
type line struct{ name, value string }

// describe describes an incident: a sentence, a line for each field that is set, its
// transitions and its notices.
func describe(i *baiv1.Incident, notices []*baiv1.Notice, width int) string {
	var text strings.Builder
	if m := i.GetMessage(); m != "" {
		text.WriteString(printer.Hang("", printer.Clean(m), width) + "\n\n")
	}
	lines := fields(i)
	for _, t := range i.GetTransitions() {
		lines = append(lines, line{"history", transition(t)})
	}
	for _, n := range notices {
		lines = append(lines, line{"notices", noticeSentence(n)})
	}
	last := ""
	for _, l := range lines {
		name := l.name
		if name == last {
			name = ""
		}
		if last = l.name; l.value != "" {
			text.WriteString(printer.Hang(fmt.Sprintf("%-13s ", name), printer.Clean(l.value), width) + "\n")
		}
	}
	return text.String()
}

func fields(i *baiv1.Incident) []line {
	state := i.GetState() + " since " + minute(since(i))
	if i.GetSilent() {
		state += ", without notices: it lay too far back when it was first seen"
	}
	lines := []line{
		{"incident", i.GetId()},
		{"state", state},
		{"namespace", i.GetNamespace()},
		{"task", i.GetTask()},
		{"metric", metric(i)},
		{"rule", rule(i)},
		{"change", changeSentence(i)},
		{"last good", point(i, i.GetLastGood())},
		{"first bad", point(i, i.GetFirstBad())},
	}
	first, last := i.GetRangeFirst().GetRunId(), i.GetRangeLast().GetRunId()
	if first != last && first != "" && last != "" {
		lines = append(lines, line{"may begin", "at any run from " + first + " to " + last})
	}
	lines = append(lines, line{"cause", i.GetCause()})
	for _, r := range i.GetReasons() {
		lines = append(lines, line{"because", r})
	}
	lines = append(lines, confirmation(i)...)
	if a, b := i.GetLastGood().GetRunId(), i.GetFirstBad().GetRunId(); a != "" && b != "" && i.GetMetric() != "" {
		lines = append(lines, line{"look", fmt.Sprintf("baictl compare %s %s --metric %s", a, b, i.GetMetric())})
	}
	return append(lines, line{"acknowledged", ackSentence(i.GetAck())})
}

// confirmation has a line for the verdict of the runs that confirm an incident, and one for each
// of their pairs.
func confirmation(i *baiv1.Incident) []line {
	c := i.GetConfirmation()
	switch {
	case c == nil:
		return nil
	case len(c.GetRuns()) == 0 && c.GetVerdict() == "":
		return []line{{"confirmation", fmt.Sprintf("runs %s and %s are to be repeated", c.GetOldRunId(), c.GetNewRunId())}}
	}
	lines := []line{{"confirmation", cmp.Or(c.GetVerdict(), "the runs go on")}}
	for n := 0; n < len(c.GetRuns()); {
		pair := []*baiv1.ConfirmationRun{c.GetRuns()[n]}
		if n+1 < len(c.GetRuns()) && c.GetRuns()[n+1].GetPair() == pair[0].GetPair() {
			pair = append(pair, c.GetRuns()[n+1])
		}
		n += len(pair)
		lines = append(lines, line{"pairs", pairSentence(pair, i.GetUnit())})
	}
	return lines
}

// pairSentence is "1: old 01k… 101 MB/s, new 01k… 94 MB/s, -6.9 %".
func pairSentence(pair []*baiv1.ConfirmationRun, unit string) string {
	values := make(map[string]float64)
	var texts []string
	for _, r := range pair {
		value := r.GetState()
		if r.Value != nil {
			values[r.GetSide()], value = r.GetValue(), withUnit(r.GetValue(), unit)
		}
		texts = append(texts, fmt.Sprintf("%s %s %s", r.GetSide(), r.GetRunId(), value))
	}
	if old, next := values["old"], values["new"]; len(values) == 2 && old > 0 {
		texts = append(texts, printer.PercentForm(next/old-1)(next/old-1)+" %")
	}
	return fmt.Sprintf("%d: %s", pair[0].GetPair(), strings.Join(texts, ", "))
}

// ackSentence is "by ann until 2026-01-31 00:00: known".
func ackSentence(a *baiv1.IncidentAck) string {
	if a == nil {
		return ""
	}
	text := "by " + a.GetUser() + " at " + minute(a.GetTime())
	switch {
	case a.GetAccept():
		text += ", accepted"
	case a.GetWrong():
		text += ", as wrong"
	case a.GetUntil() != nil:
		text += ", until " + minute(a.GetUntil())
	}
	return text + ": " + a.GetReason()
}

func transition(t *baiv1.IncidentTransition) string {
	text := minute(t.GetTime()) + " " + t.GetState()
	if t.GetUser() != "" {
		text += " by " + t.GetUser()
	}
	if t.GetReason() != "" {
		text += ": " + t.GetReason()
	}
	return text
}

func noticeSentence(n *baiv1.Notice) string {
	text := fmt.Sprintf("%s %s to %s", minute(n.GetStatusTime()), n.GetStatus(), n.GetReceiver())
	if n.GetBecame() != "" {
		text += " (" + n.GetBecame() + ")"
	}
	if n.GetAnswer() != "" {
		text += ": " + n.GetAnswer()
	}
	return text
}

// acknowledged says what an acknowledgement made of an incident.
func acknowledged(i *baiv1.Incident) string {
	text := "incident " + shortID(i.GetId()) + " is " + i.GetState()
	if until := i.GetAck().GetUntil(); until != nil {
		text += " until " + minute(until)
	}
	if i.GetMessage() != "" {
		text += ": " + i.GetMessage()
	}
	return printer.Clean(text)
}

// muted says what a mute mutes: "task checksums is muted until 2026-01-31 00:00 (mute 0a1b2c3d)".
func muted(m *baiv1.Mute) string {
	return printer.Clean(fmt.Sprintf("%s is muted until %s (mute %s)", subject(m), minute(m.GetUntil()), shortID(m.GetId())))
}

// subject is what a mute mutes.
func subject(m *baiv1.Mute) string {
	labels := printer.Labels(m.GetLabels())
	switch {
	case m.GetTask() == "" && labels == "":
		return "team " + m.GetNamespace()
	case m.GetTask() == "":
		return "each task with " + labels
	case labels == "":
		return "task " + m.GetTask()
	}
	return "task " + m.GetTask() + " with " + labels
}

// chart is a plot of the recent points of an incident.
func chart(i *baiv1.Incident) plot.History {
	c := plot.History{
		Title: printer.Clean(i.GetTask() + ": " + metric(i)), Subtitle: printer.Clean(i.GetState() + " since " + minute(since(i))),
		YLabel: printer.Clean(strings.TrimSpace(i.GetMetric() + " " + i.GetUnit())), XLabel: "time of the run",
	}
	bad := -1
	for n, p := range i.GetRecent() {
		c.Points = append(c.Points, plot.Point{X: float64(n), Y: p.GetValue(), Low: math.NaN(), High: math.NaN()})
		if bad < 0 && p.GetRunId() != "" && p.GetRunId() == i.GetFirstBad().GetRunId() {
			bad = n
		}
		if every := max(1, len(i.GetRecent())/4); n%every == 0 {
			c.Ticks = append(c.Ticks, plot.Tick{X: float64(n), Text: date(p.GetTime())})
		}
	}
	if bad > 0 {
		c.Changes = []plot.Mark{{X: float64(bad) - 0.5, Text: printer.Clean(change(i)), Kind: plot.Worse}}
	}
	if bad > 0 && i.GetKind() != "" {
		c.Levels = []plot.Level{
			{First: 0, Last: float64(bad - 1), Y: i.GetBefore()},
			{First: float64(bad), Last: float64(len(c.Points) - 1), Y: i.GetAfter()},
		}
	}
	return c
}
