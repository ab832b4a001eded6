package store

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of tokens.
const (
	MaxToken  = 128 // bytes of a token; of a longer one these are
	MaxTokens = 512 // tokens of a line, with repetitions; later tokens of the line are dropped
	MaxWords  = 16  // words of one search
)

// Tokenizer makes the tokens by which lines are found. Tokens are the runs of letters, digits and `_ . -` in a line, in lower case, without
// `_ . -` at their ends, and of each run with `_ . -` inside the parts that have a letter: "CUDA_error-7." has the tokens "cuda_error-7",
// "cuda" and "error".
//
// Stores have tokens that were made by this rule: never change it.
//
// Its zero value is ready. Only one goroutine may use it at a time.
type Tokenizer struct {
	line      []byte // in lower case
	skipParts bool   // runs only, not their parts
	remaining int    // tokens that the line may still have
	use       func(token []byte)
}

// Each calls use for each token of a line; use must not keep the slice.
func (t *Tokenizer) Each(text string, use func(token []byte)) {
	t.skipParts, t.remaining, t.use = false, MaxTokens, use
	t.split(text)
}

// Words returns the tokens of every line that has each word of text: in order, each once. LineQuery.Tokens takes them. There are none if
// text has neither a letter nor a digit.
func Words(text string) (words []string) {
	t := Tokenizer{skipParts: true, remaining: len(text), use: func(token []byte) { words = append(words, string(token)) }}
	t.split(text)
	slices.Sort(words)
	return slices.Compact(words)
}

// connectors are the characters that join letters and digits to a run.
const connectors = "_.-"

// class is the class of a character, or a set of classes.
type class byte

const (
	connector class = 1 << iota
	digit
	lowercase // letter
	uppercase
	nonASCII // of no one byte
)

// classOf is the class of each byte, 0 for a separator. It is a table because it is used for every byte of every line.
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

// split emits the tokens of text.
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

// splitRun emits the tokens of b, which lies between two separators and does not begin with a connector.
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

// splitNonASCII is splitRun for text with characters that are not ASCII: these may be separators.
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

// isWordRune reports whether a character is a letter or part of one.
func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// parts emits the parts of a run that have a letter, if connectors join the run.
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

// emitToken passes a token to use.
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

// truncateToken returns the prefix of a long token by which it is searched.
func truncateToken(token []byte) []byte {
	n := MaxToken
	for !utf8.RuneStart(token[n]) {
		n--
	}
	return bytes.TrimRight(token[:n], connectors)
}

// Finder finds lines that have all of some tokens. Only one goroutine may use it at a time.
type Finder struct {
	tokens    []string
	seen      []bool
	tokenizer Tokenizer
}

// NewFinder returns a Finder of lines with all of tokens; without tokens, of every line.
func NewFinder(tokens []string) *Finder {
	return &Finder{tokens: tokens, seen: make([]bool, len(tokens))}
}

// Matches reports whether a line has all tokens.
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
