// Package words splits a command into words as a POSIX shell does, without
// expanding anything: no variables, no patterns, no comments.
package words

import (
	"regexp"
	"strings"
)

// A Word is one word of a command.
type Word struct {
	Text   string
	Quoted bool // some of it is in quotes
	Dollar bool // a shell would put a variable's value into it: $NAME or ${NAME}
}

// An UnbalancedError says that a quote has no partner.
type UnbalancedError struct {
	Offset int  // of the quote
	Quote  byte // ', " or \
}

// Error says which quote.
func (e *UnbalancedError) Error() string {
	if e.Quote == '\\' {
		return `a \ at the end, with nothing behind it`
	}
	return "a " + string(e.Quote) + " without its partner"
}

// Split gives the texts of the words of s. Its error is an *UnbalancedError.
func Split(s string) ([]string, error) {
	words, err := Read(s)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	return texts, nil
}

// Read gives the words of s. Its error is an *UnbalancedError.
func Read(s string) ([]Word, error) {
	r := reader{in: s}
	for r.at < len(s) {
		if err := r.step(); err != nil {
			return nil, err
		}
	}
	r.end()
	return r.words, nil
}

type reader struct {
	in    string
	at    int
	words []Word
	word  *Word
	text  strings.Builder
}

func (r *reader) begin() {
	if r.word == nil {
		r.word = &Word{}
	}
}

func (r *reader) end() {
	if r.word == nil {
		return
	}
	r.word.Text = r.text.String()
	r.words = append(r.words, *r.word)
	r.word = nil
	r.text.Reset()
}

func (r *reader) put(c byte) {
	r.begin()
	r.text.WriteByte(c)
	r.at++
}

func (r *reader) step() error {
	switch c := r.in[r.at]; c {
	case ' ', '\t', '\n', '\r':
		r.end()
		r.at++
	case '\'':
		return r.single()
	case '"':
		return r.double()
	case '\\':
		return r.escaped("")
	default:
		r.dollar()
		r.put(c)
	}
	return nil
}

// dollar notes a part that a shell would expand.
func (r *reader) dollar() {
	rest := r.in[r.at:]
	if len(rest) < 2 || rest[0] != '$' {
		return
	}
	r.begin()
	if c := rest[1] | 0x20; c >= 'a' && c <= 'z' || rest[1] == '_' || rest[1] == '{' {
		r.word.Dollar = true
	}
}

func (r *reader) single() error {
	length := strings.IndexByte(r.in[r.at+1:], '\'')
	if length < 0 {
		return &UnbalancedError{r.at, '\''}
	}
	r.begin()
	r.word.Quoted = true
	r.text.WriteString(r.in[r.at+1 : r.at+1+length])
	r.at += length + 2
	return nil
}

func (r *reader) double() error {
	start := r.at
	r.begin()
	r.word.Quoted = true
	for r.at++; r.at < len(r.in); {
		switch r.in[r.at] {
		case '"':
			r.at++
			return nil
		case '\\':
			if err := r.escaped("$`\"\\\n"); err != nil {
				return &UnbalancedError{start, '"'}
			}
		default:
			r.dollar()
			r.put(r.in[r.at])
		}
	}
	return &UnbalancedError{start, '"'}
}

// escaped reads a backslash and the next character. The backslash is kept if the
// character is not in special, unless that is empty; an escaped line end is removed.
func (r *reader) escaped(special string) error {
	if r.at+1 == len(r.in) {
		return &UnbalancedError{r.at, '\\'}
	}
	c := r.in[r.at+1]
	switch {
	case c == '\n':
	case strings.HasPrefix(r.in[r.at+1:], "\r\n"):
		r.at++
	case special != "" && !strings.ContainsRune(special, rune(c)):
		r.begin()
		r.text.WriteByte('\\')
		r.text.WriteByte(c)
	default:
		r.begin()
		r.text.WriteByte(c)
	}
	r.at += 2
	return nil
}

// NeedsShell is the first of words that only a shell would treat as the writer
// seems to expect: an operator, or a variable. It is empty where there is none,
// and where the words call a shell or another interpreter with -c. A variable
// written as ${NAME} needs none where given says that the platform puts its value
// there.
func NeedsShell(words []Word, given func(name string) bool) string {
	for _, w := range words {
		switch {
		case !w.Quoted && len(w.Text) < 5 && strings.HasPrefix(w.Text, "-") && strings.HasSuffix(w.Text, "c"):
			return ""
		case w.Dollar && !allGiven(w.Text, given):
			return w.Text
		case !w.Quoted && isOperator(w.Text):
			return w.Text
		}
	}
	return ""
}

// variable is how a word has a variable that a shell would expand.
var variable = regexp.MustCompile(`\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_{])`)

// allGiven reports whether the platform gives every variable of a word.
func allGiven(word string, given func(name string) bool) bool {
	for _, v := range variable.FindAllString(word, -1) {
		name, braced := strings.CutPrefix(strings.TrimSuffix(v, "}"), "${")
		if !braced || !given(name) {
			return false
		}
	}
	return true
}

func isOperator(word string) bool {
	switch word {
	case "&&", "||", "|", ";", "&", ">", ">>", "<", "<<", "2>", "2>&1", "&>":
		return true
	}
	return false
}
