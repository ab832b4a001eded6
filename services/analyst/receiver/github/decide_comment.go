package github

import (
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// The limits of the one comment of a pull request, in bytes, and of an entry before escaping, in characters. GitHub takes 65,536
// characters.
const (
	maxBody  = 60_000
	maxEntry = 2000
)

// comment is a comment of a pull request, as the API has it.
type comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

// entry is a part of the comment, or of a check run: what is known of an incident, or of the newest run of a task.
type entry struct {
	key        string
	conclusion string // in a check run: what it says of the commit
	text       string
}

// mark is the first line of the comment of a receiver.
func mark(receiver string) string {
	return "<!-- benchmark-ai " + incident.ID("comment", receiver) + " -->"
}

// entryOf returns the entry of a notice. A later notice of the same incidents, and of the same task, takes its place.
func entryOf(n notice.Notice) entry {
	key := n.First
	if len(n.Ends) > 0 {
		key = incident.ID("task", n.Namespace, n.Ends[0].Task)
	}
	m := message.Of(n)
	lines := slices.Concat([]string{m.Title}, m.Remarks)
	for _, e := range m.Entries {
		lines = append(lines, "", e.Headline)
		for _, l := range e.Lines {
			lines = append(lines, "  "+l)
		}
	}
	lines = append(lines, "", m.More, m.Footer)
	return entry{key: key, text: inert(message.Limit(strings.Join(lines, "\n"), maxEntry))}
}

// inert returns a text in which nothing is markup. It stands in a block of preformatted text, in which GitHub makes no links and mentions
// nobody.
func inert(text string) string {
	return strings.ReplaceAll(html.EscapeString(text), "@", "@\u200b")
}

// matters reports whether a notice is worth a comment that does not have its entry yet.
func matters(n notice.Notice) bool {
	return len(n.Ends) == 0 || slices.ContainsFunc(n.Ends, func(e notice.End) bool { return e.Outcome != event.Succeeded })
}

// edited returns the body of the comment or check run of a receiver with an entry, the newest one first, and whether it was there.
func edited(body, receiver string, one entry) (next string, had bool) {
	all := []entry{one}
	for _, e := range entriesOf(body) {
		if e.key == one.key {
			had = true
			continue
		}
		all = append(all, e)
	}
	var b strings.Builder
	b.WriteString(mark(receiver) + "\n### Benchmark AI")
	for _, e := range all {
		if b.Len()+len(e.text) > maxBody { // the oldest ones are left out
			break
		}
		head := strings.TrimRight("entry "+e.key+" "+e.conclusion, " ")
		b.WriteString("\n<!-- " + head + " -->\n<pre>\n" + e.text + "\n</pre>\n<!-- end -->")
	}
	return b.String(), had
}

// entriesOf returns the entries of a comment. Parts that are none of ours are left out, and so are those that others have made longer.
func entriesOf(body string) (all []entry) {
	part := regexp.MustCompile(`(?s)<!-- entry ([0-9a-z]{1,64})(?: (success|neutral|failure))? -->\n<pre>\n(.*?)\n</pre>\n<!-- end -->`)
	for _, found := range part.FindAllStringSubmatch(strings.ReplaceAll(body, "\r\n", "\n"), -1) {
		if text := found[3]; len(text) <= 6*maxEntry && !strings.ContainsAny(text, "<>") {
			all = append(all, entry{key: found[1], conclusion: found[2], text: text})
		}
	}
	return all
}
