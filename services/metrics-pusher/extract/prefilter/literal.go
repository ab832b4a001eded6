package prefilter

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// needle is a text to search, by the rarest of its bytes.
type needle struct {
	text string
	fold bool // in letters of either case; the text is in lower case
	rare int  // index of the byte that is searched
}

func newNeedle(l literal) needle {
	n := needle{text: l.text, fold: l.fold}
	if l.fold {
		n.text = strings.ToLower(l.text)
	}
	for i := range n.text {
		if rarity(n.text[i]) > rarity(n.text[n.rare]) {
			n.rare = i
		}
	}
	return n
}

// rarity returns roughly how rare c is in the output of programs.
func rarity(c byte) int {
	switch {
	case c == ' ' || c == 'e' || c == '0':
		return 0
	case c >= 'a' && c <= 'z', c >= '1' && c <= '9', c == '.':
		return 1
	case c == ':' || c == '-' || c == ',' || c == '/' || c == '_':
		return 2
	case c >= 'A' && c <= 'Z', c == '=':
		return 3
	}
	return 4
}

// literal is a text that every match of a pattern contains.
type literal struct {
	text string
	fold bool // in letters of either case
}

// required returns the longest text that every match of pattern contains, empty if there is none.
func required(pattern string) literal {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return literal{}
	}
	return find(re.Simplify())
}

func find(re *syntax.Regexp) literal {
	switch re.Op { //nolint:exhaustive // the others need no text
	case syntax.OpLiteral:
		if isLiteral(re) {
			return literal{string(re.Rune), re.Flags&syntax.FoldCase != 0}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return find(re.Sub[0])
	case syntax.OpConcat:
		return longest(re.Sub)
	}
	return literal{}
}

// longest returns the longest literal of parts that follow each other.
func longest(parts []*syntax.Regexp) literal {
	var best, run literal
	for _, part := range parts {
		l := find(part)
		if isLiteral(part) && l.fold == run.fold {
			run.text += l.text
		} else {
			run = l
		}
		if len(run.text) > len(best.text) {
			best = run
		}
		if !isLiteral(part) {
			run = literal{}
		}
	}
	return best
}

// isLiteral reports whether re matches only its literal. The character of an error in UTF-8 matches others.
func isLiteral(re *syntax.Regexp) bool {
	if re.Op == syntax.OpCapture {
		return isLiteral(re.Sub[0])
	}
	return re.Op == syntax.OpLiteral && !slices.Contains(re.Rune, utf8.RuneError)
}
