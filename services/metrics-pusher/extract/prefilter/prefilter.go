// Package prefilter tells which texts a regular expression may match, much faster than the expression itself: most lines of a log match no
// pattern.
package prefilter

import (
	"strings"
	"unicode/utf8"
)

// Filter reports which texts may match a pattern. Several goroutines may use it.
type Filter struct {
	needle    needle     // part of every text that matches; empty if there is none
	automaton *automaton // for a pattern whose needle many texts have
}

// minNeedle is how many bytes of a needle few texts have that do not match.
const minNeedle = 3

// New returns the filter of a pattern of package regexp.
func New(pattern string) Filter {
	f := Filter{needle: newNeedle(required(pattern))}
	if len(f.needle.text) < minNeedle {
		f.automaton = newAutomaton(pattern)
	}
	return f
}

// MayMatch reports whether the pattern may match in a text. It is true for each text that the pattern matches.
func (f *Filter) MayMatch(text *Text) bool {
	n, in := &f.needle, text.Original
	if n.fold {
		in = text.lower()
	}
	if n.text == "" || in == "" && n.fold { // letters beyond ASCII may fold to ASCII ones
		return f.automaton.mayMatch(text.Original)
	}
	c := n.text[n.rare]
	for at := n.rare; at < len(in); at++ {
		i := strings.IndexByte(in[at:], c)
		if i < 0 {
			return false
		}
		if at += i; strings.HasPrefix(in[at-n.rare:], n.text) {
			return f.automaton.mayMatch(text.Original)
		}
	}
	return false
}

// Text is a text that several filters read, with its lower-case form once that is needed.
type Text struct {
	Original string // does not change once a filter has read it

	low  string
	done bool
}

// lower returns the text in lower case, empty if it is not all ASCII.
func (t *Text) lower() string {
	if t.done {
		return t.low
	}
	t.done = true
	for i := range len(t.Original) {
		if t.Original[i] >= utf8.RuneSelf {
			return ""
		}
	}
	t.low = strings.ToLower(t.Original)
	return t.low
}
