package store

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a line is found by.
const (
	MaxToken  = 128 // bytes of a token; of a longer one these are
	MaxTokens = 512 // tokens of a line, those that repeat counted; of a longer line these are
	MaxWords  = 16  // words that are searched by at once
)

// Tokenizer makes the tokens of lines: what they are found by. These are the
// runs of letters, digits and `_ . -` in a line, in lower case, without `_ . -`
// at their ends, and of each run that `_ . -` join the parts that have a letter:
// "CUDA_error-7." has the tokens "cuda_error-7", "cuda" and "error".
//
// Stores keep tokens that were made by this rule: never change it.
//
// Its zero value is ready. One goroutine uses it at a time.
type Tokenizer struct {
	line      []byte // in lower case
	skipParts bool   // runs only, not their parts
	remaining int    // tokens that the line may still have
	use       func(token []byte)
}

// Each hands the tokens of a line to use, which must not keep them.
func (t *Tokenizer) Each(text string, use func(token []byte)) {
	t.skipParts, t.remaining, t.use = false, MaxTokens, use
	t.split(text)
}

// Words returns the tokens that a line has which has every word of text: in
// order, each once. It is what LineQuery.Tokens asks for. There are none where
// text has neither a letter nor a digit.
func Words(text string) (words []string) {
	t := Tokenizer{skipParts: true, remaining: len(text), use: func(token []byte) { words = append(words, string(token)) }}
	t.split(text)
	slices.Sort(words)
	return slices.Compact(words)
}

// connectors are what joins letters and digits.
const connectors = "_.-"

// class is what a character is, or what characters there are.
type class byte

const (
	connector class = 1 << iota
	digit
	lowercase // letter
	uppercase
	nonASCII // of no one byte
)

// classOf says what a byte is, 0 where it separates: a table, for it is asked of
// every byte of every line.
var classOf = func() (of [256]class) { //nolint:gochecknoglobals // a constant
	for c := range of {
		switch {
		case strings.IndexByte(connectors, byte(c)) >= 0:
			of[c] = connector
		case '0' <= c && c <= '9':
			of[c] = digit
		case 'a' <= c && c <= 'z':
			of[c] = lowercase
		case 'A' <= c && c <= 'Z':
			of[c] = uppercase
		case c >= utf8.RuneSelf:
			of[c] = nonASCII
		}
	}
	return of
}()

// split hands on the tokens of text.
func (t *Tokenizer) split(text string) {
	t.line = append(t.line[:0], text...)
	for b, i := t.line, 0; i < len(b) && t.remaining > 0; {
		if classOf[b[i]]&^connector == 0 {
			i++
			continue
		}
		from, has := i, class(0)
		for i < len(b) && classOf[b[i]] != 0 {
			c := classOf[b[i]]
			if c == uppercase {
				b[i] |= 'a' - 'A'
			}
			has |= c
			i++
		}
		t.splitRun(b[from:i], has)
	}
}

// splitRun hands on what lies between two bytes that separate, and begins with
// none that joins.
func (t *Tokenizer) splitRun(b []byte, has class) {
	if has&nonASCII != 0 {
		t.splitNonASCII(b)
		return
	}
	for classOf[b[len(b)-1]] == connector {
		b = b[:len(b)-1]
	}
	t.emitToken(b)
	if has&connector != 0 && !t.skipParts {
		t.parts(b)
	}
}

// splitNonASCII is stretch where some characters are not ASCII: these may separate.
func (t *Tokenizer) splitNonASCII(b []byte) {
	for run := range bytes.FieldsFuncSeq(b, func(r rune) bool {
		return !isWordRune(r) && !unicode.IsDigit(r) && !strings.ContainsRune(connectors, r)
	}) {
		run = bytes.Map(unicode.ToLower, bytes.Trim(run, connectors))
		if len(run) == 0 {
			continue
		}
		t.emitToken(run)
		if !t.skipParts {
			t.parts(run)
		}
	}
}

// isWordRune says whether a character makes a word.
func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// parts hands on those parts of a run that have a letter, if it is joined.
func (t *Tokenizer) parts(run []byte) {
	for from := 0; from < len(run); {
		to, has := from, class(0)
		for to < len(run) && classOf[run[to]] != connector {
			has |= classOf[run[to]]
			to++
		}
		part := run[from:to]
		if len(part) < len(run) && (has&lowercase != 0 || has&nonASCII != 0 && bytes.ContainsFunc(part, isWordRune)) {
			t.emitToken(part)
		}
		from = to + 1
	}
}

// emitToken hands on a token.
func (t *Tokenizer) emitToken(token []byte) {
	if t.remaining == 0 {
		return
	}
	t.remaining--
	if len(token) > MaxToken {
		token = truncateToken(token)
	}
	t.use(token)
}

// truncateToken returns a long token as it is searched by.
func truncateToken(token []byte) []byte {
	n := MaxToken
	for !utf8.RuneStart(token[n]) {
		n--
	}
	return bytes.TrimRight(token[:n], connectors)
}

// Finder finds lines that have all of some tokens. One goroutine uses it at a
// time.
type Finder struct {
	tokens    []string
	seen      []bool
	tokenizer Tokenizer
}

// NewFinder returns what finds lines with all of tokens; where there are none,
// every line.
func NewFinder(tokens []string) *Finder {
	return &Finder{tokens: tokens, seen: make([]bool, len(tokens))}
}

// Matches says whether a line has all tokens.
func (f *Finder) Matches(text string) bool {
	if len(f.tokens) == 0 {
		return true
	}
	clear(f.seen)
	f.tokenizer.Each(text, func(token []byte) {
		for i, wanted := range f.tokens {
			if wanted == string(token) {
				f.seen[i] = true
			}
		}
	})
	return !slices.Contains(f.seen, false)
}
