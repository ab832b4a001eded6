package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/report"
)

// Number is a number as a document has it. It is empty if there is none.
type Number string

// UnmarshalJSON never fails: what is no number is left out.
func (n *Number) UnmarshalJSON(text []byte) error {
	if *n = ""; text[0] == '-' || text[0] >= '0' && text[0] <= '9' {
		*n = Number(text)
	}
	return nil
}

// Times returns the number times a power of ten, exactly. It is false if there is no number.
func (n Number) Times(exponent int) (float64, bool) {
	if exponent == 0 {
		return report.Number(string(n))
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if power == "" {
		power = "0"
	}
	p, err := strconv.Atoi(power)
	if err != nil || mantissa == "" {
		return 0, false
	}
	v, ok := report.Number(mantissa + "e" + strconv.Itoa(p+exponent))
	if !ok {
		return 0, false
	}
	return v, true
}

// Found is what a text has of the documents of a tool.
type Found[T any] struct {
	Doc    *T     // the last that is complete; if none is, the complete elements of the last
	Cut    bool   // Doc, or one after it, ends in the middle
	Around []byte // the text outside of complete documents
}

// Find decodes the last JSON object in a text that is wanted. It begins at the start of a line, or has the key of the tool as its first:
// tools print warnings before and after.
func Find[T any](text []byte, key string, wanted func(*T) bool) Found[T] {
	f := search(text, key, wanted)
	if f.Doc != nil && !f.Cut {
		return f
	}
	if finite, changed := withoutInfinities(text); changed {
		return search(finite, key, wanted)
	}
	return f
}

// withoutInfinities returns a text with null for the words that tools print for numbers that are not finite: NaN, Inf and Infinity, in
// letters of either case and with a sign or without one, as the value of a member or an element of an array.
func withoutInfinities(text []byte) (finite []byte, changed bool) {
	done := 0
	for at := 0; at < len(text); at++ {
		n := infinity(text[at:])
		if n == 0 {
			continue
		}
		begin := at
		if at > 0 && (text[at-1] == '-' || text[at-1] == '+') {
			begin--
		}
		if before := bytes.TrimRight(text[done:begin], "\t\n\f\r "); len(before) > 0 &&
			bytes.IndexByte([]byte(":[,"), before[len(before)-1]) >= 0 {
			finite = append(append(finite, text[done:begin]...), "null"...)
			done = at + n
			at = done - 1
		}
	}
	if done == 0 {
		return text, false
	}
	return append(finite, text[done:]...), true
}

// infinity returns the length of the word at the beginning of a text that stands for a number that is not finite, or 0.
func infinity(text []byte) int {
	if c := text[0] | 0x20; c != 'n' && c != 'i' {
		return 0
	}
	n := 0
	for n < len(text) && n <= len("infinity") && isWord(text[n]) {
		n++
	}
	switch strings.ToLower(string(text[:n])) {
	case "nan", "inf", "infinity":
		return n
	}
	return 0
}

// isWord reports whether a byte is of a word, as regular expressions have it.
func isWord(c byte) bool { return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func search[T any](text []byte, key string, wanted func(*T) bool) (f Found[T]) {
	read, from, complete := 0, 0, false
	for vain := 0; vain <= 16*len(text); { // however often a text begins a document and does not end it
		at := begin(text, key, from)
		if at < 0 {
			break
		}
		n, last := extent(text[at:])
		doc, ok := decode[T](text[at : at+n])
		if ok {
			f.Around = append(f.Around, text[read:at]...)
			if read, from = at+n, at+n; wanted(doc) {
				f.Doc, f.Cut, complete = doc, false, true
			}
			continue
		}
		vain, from = vain+n, at+1
		f.Cut = f.Cut || begins(text[at:], key)
		if doc, ok := decode[T](slices.Concat(text[at:at+last], []byte("]}"))); ok && wanted(doc) {
			if f.Cut = true; !complete {
				f.Doc = doc
			}
		}
	}
	f.Around = append(f.Around, text[read:]...)
	return f
}

// begin returns the place of the first brace that may begin a document, or -1.
func begin(text []byte, key string, from int) int {
	for at := from; ; at++ {
		i := bytes.IndexByte(text[at:], '{')
		if i < 0 {
			return -1
		}
		at += i
		first := at == 0 || text[at-1] == '\n' || text[at-1] == '\r'
		if first && (begins(text[at:], `"`) || begins(text[at:], "}")) || begins(text[at:], key) {
			return at
		}
	}
}

// begins reports whether a brace and a word are the beginning of a text.
func begins(text []byte, word string) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text[1:min(len(text), 64)], " \t\r\n"), []byte(word))
}

// extent returns the length of the object at the beginning of a text, or that of the text if it does not end, and where in it the last
// whole object in an array ends.
func extent(text []byte) (n, last int) {
	var open []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			i = closing(text, i+1)
		case '{', '[':
			open = append(open, c)
		case '}', ']':
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1, last
			}
			if c == '}' && string(open) == "{[" {
				last = i + 1
			}
		}
	}
	return len(text), last
}

// closing returns the place of the quotation mark that ends a string, or the end of the text.
func closing(text []byte, from int) int {
	for i := from; ; i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return len(text)
		}
		i += n
		escapes := 0
		for i-escapes > from && text[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// decode decodes an object. Values of another type than theirs are left out.
func decode[T any](text []byte) (doc *T, ok bool) {
	doc = new(T)
	err := json.Unmarshal(text, doc)
	var other *json.UnmarshalTypeError
	return doc, err == nil || errors.As(err, &other)
}

// Starts reports whether a text has the beginning of a document: a brace and the first key, and others within that begin its value.
func Starts(text []byte, keys ...string) bool {
	at := bytes.Index(text, []byte(keys[0]))
	if at < 0 || !bytes.HasSuffix(bytes.TrimRight(text[:at], " \t\r\n"), []byte("{")) {
		return false
	}
	rest := text[at:]
	for _, key := range keys {
		after, ok := bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n:[{"), []byte(key))
		if !ok {
			return false
		}
		rest = after
	}
	return true
}
