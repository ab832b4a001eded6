// Package document finds JSON in what benchmark tools print. All and Walk hold it to the grammar and visit its values. Find decodes the
// document of one tool, also if the text ends in the middle of it, or has NaN for a number.
package document

import (
	"bytes"
	"encoding/json"
	"math"
)

// Limits of what is read.
const (
	maxDepth = 1000     // of objects and arrays in one another
	maxWork  = 32 << 20 // bytes that are read in vain: places that look like the beginning of a document and are none
)

// Step is one step of the way from a document to a value in it.
type Step struct {
	Key   []byte // of a member of an object; nil in an array
	Index int    // of an element of an array; -1 in an object
}

// All calls see with each object and each array in a text, in its order, but not with those inside of them. Text around them is skipped:
// tools print warnings. An object may begin anywhere, an array must have its lines for itself, because logs have many brackets.
//
// If the text ends within a document, cut is the place where that begins, else it is -1.
func All(text []byte, see func(document []byte)) (cut int) { return allWithin(text, maxWork, see) }

// allWithin is All that ends after so many bytes were read in vain.
func allWithin(text []byte, most int, see func(document []byte)) (cut int) {
	fresh, work := true, 0 // fresh: nothing but blanks since the beginning of the line
	for i := 0; i < len(text) && work < most; i++ {
		c := text[i]
		if c == '{' || c == '[' && fresh {
			end, ok := valueEnd(text[i:])
			switch {
			case ok && (c == '{' || blankTo(text[i+end:])):
				see(text[i : i+end])
				i += end - 1
			case !ok && i+end >= len(text):
				return i
			default:
				work += end
			}
		}
		fresh = c == '\n' || fresh && blank(c)
	}
	return -1
}

// blankTo reports whether the rest of a line has nothing but blanks.
func blankTo(rest []byte) bool {
	line, _, _ := bytes.Cut(rest[:min(len(rest), 1024)], []byte("\n"))
	return len(bytes.Trim(line, " \t\r")) == 0
}

// valueEnd returns the length of the value at the beginning of a text. If there is none, ok is false, and end says how much of the text
// could be the beginning of one: all of it, if the text ends too early.
func valueEnd(text []byte) (end int, ok bool) {
	s := scanner{text: text}
	ok = s.value()
	return s.at, ok
}

// Walk calls leaf with each value of a document that is neither an object nor an array with members, in the order of the text, and with the
// way to it. Both are valid during the call only. A document is what All found; of one that is cut, Walk visits the values before that.
func Walk(document []byte, leaf func(way []Step, value []byte)) {
	s := scanner{text: document, leaf: leaf}
	s.value()
}

// Text returns the text of a JSON string; it is false for any other value.
func Text(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(bytes.ToValidUTF8(inner, []byte("\uFFFD"))), true
	}
	return text, json.Unmarshal(value, &text) == nil
}

// scanner reads a value, and holds it to the grammar of JSON. It stops at the first byte that breaks it.
type scanner struct {
	text  []byte
	at    int
	depth int
	way   []Step
	leaf  func(way []Step, value []byte)
}

func (s *scanner) value() bool {
	start := s.at
	ok, members := false, false
	switch c := s.peek(); {
	case c == '{' || c == '[':
		ok, members = s.members(c)
	case c == '"':
		ok = s.str()
	case c == '-' || c >= '0' && c <= '9':
		ok = s.number()
	case c == 't':
		ok = s.word("true")
	case c == 'f':
		ok = s.word("false")
	case c == 'n':
		ok = s.word("null")
	}
	cut := s.at == len(s.text) && s.depth > 0 // the end of the text may be in the middle of a number
	if ok && !members && s.leaf != nil && !cut {
		s.leaf(s.way, s.text[start:s.at])
	}
	return ok
}

// peek returns the next byte, or 0 at the end of the text.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) blanks() {
	for s.at < len(s.text) && blank(s.text[s.at]) {
		s.at++
	}
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// members reads an object or an array, from its bracket on.
func (s *scanner) members(open byte) (ok, some bool) {
	if s.depth++; s.depth > maxDepth {
		return false, false
	}
	closing := open + 2 // as it is in ASCII for both
	s.at++
	s.blanks()
	if s.peek() == closing {
		s.at++
		s.depth--
		return true, false
	}
	for i := 0; s.member(open == '{', i); i++ {
		s.blanks()
		switch s.peek() {
		case ',':
			s.at++
			s.blanks()
		case closing:
			s.at++
			s.depth--
			return true, true
		default:
			return false, false
		}
	}
	return false, false
}

// member reads one member of an object, or the element i of an array.
func (s *scanner) member(object bool, i int) bool {
	step := Step{Index: i}
	if object {
		start := s.at
		if s.peek() != '"' || !s.str() {
			return false
		}
		if s.leaf != nil {
			step = Step{Key: key(s.text[start:s.at]), Index: -1}
		}
		if s.blanks(); s.peek() != ':' {
			return false
		}
		s.at++
		s.blanks()
	}
	if s.leaf == nil {
		return s.value()
	}
	s.way = append(s.way, step)
	ok := s.value()
	s.way = s.way[:len(s.way)-1]
	return ok
}

// key returns the text of a key. It is in the document itself unless the key has escapes.
func key(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	text, _ := Text(quoted)
	return []byte(text)
}

func (s *scanner) str() bool {
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return true
		case c < ' ':
			return false
		case c == '\\':
			if s.at++; !s.escape() {
				return false
			}
		}
	}
	return false
}

// escape reads what follows a backslash, and stays on its last byte.
func (s *scanner) escape() bool {
	switch c := s.peek(); {
	case s.at >= len(s.text):
		return false
	case c == 'u':
		for range 4 {
			if s.at++; s.at >= len(s.text) || !hexadecimal(s.text[s.at]) {
				return false
			}
		}
		return true
	default:
		return bytes.IndexByte([]byte(`"\/bfnrt`), c) >= 0
	}
}

func hexadecimal(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		if s.at++; !s.digits() {
			return false
		}
	}
	if s.peek()|0x20 != 'e' {
		return true
	}
	if s.at++; s.peek() == '+' || s.peek() == '-' {
		s.at++
	}
	return s.digits()
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

func (s *scanner) word(word string) bool {
	n := min(len(word), len(s.text)-s.at)
	for i := range n {
		if s.text[s.at] != word[i] {
			return false
		}
		s.at++
	}
	return n == len(word)
}

// Nearest returns the candidate that is spelled most like a name, or "" where none is alike.
func Nearest(name string, candidates []string) string {
	best, least := "", math.MaxInt
	for _, c := range candidates {
		if d := distance(name, c); d < least {
			best, least = c, d
		}
	}
	if least > max(3, len(name)/3) || least >= len(best) {
		return ""
	}
	return best
}

// distance is that of Levenshtein, in bytes. Of long texts, only their beginning counts.
func distance(a, b string) int {
	const most = 100
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
