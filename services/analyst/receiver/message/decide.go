// Package message says in plain text what a notice is about. It is pure, and its texts have no markup: each receiver escapes them as its
// place needs it.
package message

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
)

// Message is the text of a notice. No text in it has a line feed, a control character or one that changes the direction of writing.
type Message struct {
	Title   string   // at most 140 characters
	Remarks []string // that it is a test, that it may have come before, that it sums up others
	Entries []Entry  // one for each incident and each end of the notice
	More    string   // how many of them the notice leaves out; empty for none
	URL     string   // from the settings; empty without one
	Footer  string
}

// Entry is the text of one incident or one end.
type Entry struct {
	Headline string
	Lines    []string
}

// maxTitle is the longest title, in characters.
const maxTitle = 140

// Of returns the message of a notice.
func Of(n notice.Notice) Message {
	m := Message{Title: title(n), URL: n.URL, Footer: fmt.Sprintf("receiver %s, notice %s", Clean(n.Receiver), Clean(n.ID))}
	if n.Namespace != "" { // a digest may be of several
		m.Footer = "namespace " + Clean(n.Namespace) + ", " + m.Footer
	}
	if n.Test {
		m.Remarks = append(m.Remarks, "This is a test of the receiver: nothing has happened.")
	}
	if n.Again {
		m.Remarks = append(m.Remarks, "Sent again after an interruption: this notice may have arrived already.")
	}
	if len(n.Digest) > 0 {
		m.Remarks = append(m.Remarks, fmt.Sprintf("This receiver is over its rate: this digest sums up %d notices.", len(n.Digest)))
	}
	for _, i := range n.Incidents {
		m.Entries = append(m.Entries, Entry{Headline: Headline(i), Lines: lines(i)})
	}
	for _, e := range n.Ends {
		m.Entries = append(m.Entries, Entry{Headline: EndHeadline(e), Lines: endLines(e)})
	}
	if n.More > 0 {
		m.More = fmt.Sprintf("and %d more", n.More)
	}
	return m
}

// Text returns the message as lines of plain text.
func (m Message) Text() string {
	var b strings.Builder
	for _, r := range m.Remarks {
		b.WriteString(r + "\n\n")
	}
	for _, e := range m.Entries {
		b.WriteString(e.Headline + "\n")
		for _, l := range e.Lines {
			b.WriteString("  " + l + "\n")
		}
		b.WriteString("\n")
	}
	for _, l := range []string{m.More, m.URL, m.Footer} {
		if l != "" {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

func title(n notice.Notice) string {
	what := "notice without an incident"
	switch {
	case len(n.Incidents) > 0:
		what = Headline(n.Incidents[0])
	case len(n.Ends) > 0:
		what = EndHeadline(n.Ends[0])
	}
	others := len(n.Incidents) + len(n.Ends) - 1 + n.More
	tail := ""
	if others > 0 {
		tail = fmt.Sprintf(" and %d more", others)
	}
	head := strings.ToUpper(string(n.Became[:min(1, len(n.Became))])) + string(n.Became[min(1, len(n.Became)):]) + ": "
	if len(n.Digest) > 0 {
		head = fmt.Sprintf("Digest of %d notices: ", len(n.Digest))
	}
	if n.Test {
		head = "[TEST] " + head
	}
	return head + Limit(what, maxTitle-len(head)-len(tail)) + tail
}

// Headline returns what is the matter, and in which direction.
func Headline(i incident.Incident) string {
	what, verb, value := subject(i), "is", number(i.After, i.Unit)
	if i.State.Over() {
		verb = "was"
	}
	switch i.Rule.When {
	case incident.Above, incident.Below:
		return fmt.Sprintf("%s %s %s %s: %s", what, verb, i.Rule.When, number(i.Rule.Limit, i.Rule.Unit), value)
	case incident.Missing:
		return "no value of " + what
	case incident.Failed:
		return fmt.Sprintf("runs of %s fail", task(i))
	case incident.Beyond:
		return fmt.Sprintf("%s %s %s than baseline %s", what, verb, shift(i), Clean(i.Rule.Baseline))
	case incident.Regression:
		return fmt.Sprintf("%s %s %s, which %s worse", what, verb, shift(i), verb)
	case incident.Change:
	}
	return fmt.Sprintf("%s %s %s", what, verb, shift(i))
}

func subject(i incident.Incident) string {
	return fmt.Sprintf("%s of %s", Clean(i.Rule.Metric), task(i))
}

func task(i incident.Incident) string {
	if i.Rule.Task == "" {
		return "runs without a task name"
	}
	return Clean(i.Rule.Task)
}

// shift returns how much higher or lower the new values are.
func shift(i incident.Incident) string {
	way := map[string]string{"up": "higher", "down": "lower"}[i.Direction]
	switch {
	case way == "":
		way = "different"
	case i.Magnitude != nil && !math.IsNaN(float64(*i.Magnitude)):
		return fmt.Sprintf("%.3g %% %s", math.Abs(float64(*i.Magnitude))*100, way)
	}
	return way
}

// lines returns the details of an incident.
func lines(i incident.Incident) []string {
	all := []string{"state " + string(i.State) + ", incident " + Clean(i.ID)}
	if i.Message != "" {
		all = append(all, Clean(i.Message))
	}
	if i.Magnitude != nil {
		all = append(all, fmt.Sprintf("before %s, after %s, change %s (interval %s to %s)",
			number(i.Before, i.Unit), number(i.After, i.Unit), percent(float64(*i.Magnitude)), percent(float64(i.Interval[0])),
			percent(float64(i.Interval[1]))))
	}
	if i.FirstBad != nil {
		all = append(all, "first bad run "+run(*i.FirstBad))
	}
	if i.LastGood != nil {
		all = append(all, "last good run "+run(*i.LastGood))
	}
	if i.Cause != "" {
		all = append(all, "cause "+Clean(string(i.Cause)))
	}
	if i.Confirmation != nil && i.Confirmation.Verdict == incident.VerdictConfirmed {
		all = append(all, "runs of both editions confirm it")
	}
	for _, r := range i.Reasons[:min(len(i.Reasons), 10)] {
		all = append(all, Clean(r))
	}
	if i.Acked != nil {
		all = append(all, fmt.Sprintf("acknowledged by %s: %s", Clean(i.Acked.By), Clean(i.Acked.Reason)))
	}
	return all
}

func run(p incident.Point) string {
	text := Clean(p.Run)
	if p.Version != "" {
		text += ", version " + Clean(p.Version)
	}
	if !p.Time.IsZero() {
		text += ", " + p.Time.UTC().Format(time.RFC3339)
	}
	return text
}

func number(v float64, unit string) string {
	text := strconv.FormatFloat(v, 'g', 5, 64)
	if unit != "" {
		text += " " + Clean(unit)
	}
	return text
}

func percent(v float64) string { return fmt.Sprintf("%+.1f %%", v*100) }

// maxText is the longest text of a user in a message, in characters.
const maxText = 300

// Clean returns a text of a user as one line of visible text of at most 300 characters: white space and control characters are one space,
// and invisible characters, which could change the order of what follows, are gone.
func Clean(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r) || unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Variation_Selector), r == '\u034f', r == '\u115f', r == '\u3164':
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	return Limit(strings.Join(strings.Fields(text), " "), maxText)
}

// Inert returns a text of a user, cleaned, in which no chat finds a mention or a link in angle brackets.
func Inert(text string) string {
	return strings.NewReplacer("<", "\u2039", ">", "\u203a", "@", "@\u200b").Replace(Clean(text))
}

// Limit returns text cut to at most limit characters, the last of which is an ellipsis if something was cut.
func Limit(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(slices.Concat(runes[:max(limit-1, 0)], []rune("…")))
}
