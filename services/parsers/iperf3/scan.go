package iperf3

import "bytes"

// blanks returns the index of the first byte from i on that is no blank, or len(text).
func blanks(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// skip returns the index behind the JSON value that begins at i. It is false if the text ends before. The value is not checked: whoever
// wants it decodes it, and the intervals of a long run, which nobody wants, cost little.
func skip(text []byte, i int) (end int, ok bool) {
	if i >= len(text) {
		return len(text), false
	}
	switch text[i] {
	case '"':
		return skipString(text, i)
	case '{', '[':
		return skipNested(text, i)
	}
	n := bytes.IndexAny(text[i:], ",]}\n\r\t ")
	if n < 0 {
		return len(text), false
	}
	return i + n, n > 0
}

func skipString(text []byte, i int) (end int, ok bool) {
	for i++; i < len(text); i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return len(text), false
		}
		back := 0 // backslashes before the quotation mark
		for i+n-back-1 >= i && text[i+n-back-1] == '\\' {
			back++
		}
		if i += n; back%2 == 0 {
			return i + 1, true
		}
	}
	return len(text), false
}

func skipNested(text []byte, i int) (end int, ok bool) {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		case '"':
			if end, ok = skipString(text, i); !ok {
				return end, false
			}
			i = end - 1
		}
	}
	return len(text), false
}

// member reads the next member of an object: the index i is behind its brace, or behind a member. Done means that the object ends there.
func member(text []byte, i int) (key string, value []byte, next int, state memberState) {
	if i = blanks(text, i); i < len(text) && text[i] == ',' {
		i = blanks(text, i+1)
	}
	switch {
	case i < len(text) && text[i] == '}':
		return "", nil, i + 1, done
	case i >= len(text) || text[i] != '"':
		return "", nil, i, broken
	}
	end, ok := skipString(text, i)
	if !ok {
		return "", nil, end, broken
	}
	key = string(text[i+1 : end-1])
	if i = blanks(text, end); i >= len(text) || text[i] != ':' {
		return "", nil, i, broken
	}
	begin := blanks(text, i+1)
	if end, ok = skip(text, begin); !ok {
		return key, text[min(begin, len(text)):end], end, cut
	}
	return key, text[begin:end], end, whole
}

type memberState int

const (
	whole  memberState = iota // key and value are there
	cut                       // the text ends in the value
	done                      // the object ends
	broken                    // what follows is no member
)

// elements calls see with each element of an array, up to the end of the text.
func elements(array []byte, see func(one []byte)) {
	if len(array) == 0 || array[0] != '[' {
		return
	}
	for i := 1; ; {
		if i = blanks(array, i); i < len(array) && array[i] == ',' {
			i = blanks(array, i+1)
		}
		end, ok := skip(array, i)
		if !ok || end == i {
			return
		}
		see(array[i:end])
		i = end
	}
}
