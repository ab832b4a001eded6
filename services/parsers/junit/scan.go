package junit

import (
	"bytes"
	"errors"
)

// maxDepth is how deep elements may be in one another.
const maxDepth = 1000

// Documents that are refused.
var (
	errEntities = errors.New("the XML declares entities, and is not read")
	errDepth    = errors.New("the XML has elements too deep in one another, and is not read")
)

// parser reads the documents of a text.
type parser struct {
	open  *document         // that which is being read
	done  *document         // the last complete one
	depth int               // of elements in the open document
	own   map[string]string // attributes of the last tag
}

// read reads a text. What is before and after documents is skipped.
func (p *parser) read(text []byte) error {
	for {
		i := bytes.IndexByte(text, '<')
		if i < 0 {
			return nil
		}
		length, err := p.markup(text[i:])
		if err != nil || length == 0 {
			return err
		}
		text = text[i+length:]
	}
}

// markup reads what begins with "<", and returns its length; it is 0 if the text ends within.
func (p *parser) markup(text []byte) (length int, err error) {
	switch {
	case p.open == nil && bytes.HasPrefix(text, []byte("<!DOCTYPE")):
		return doctype(text)
	case p.open == nil && !isSuite(text):
		return 1, nil
	case bytes.HasPrefix(text, []byte("<!--")):
		return through(text, "-->"), nil
	case bytes.HasPrefix(text, []byte("<![CDATA[")):
		return through(text, "]]>"), nil
	case bytes.HasPrefix(text, []byte("<?")):
		return through(text, "?>"), nil
	case bytes.HasPrefix(text, []byte("<!")):
		return through(text, ">"), nil
	case bytes.HasPrefix(text, []byte("</")):
		length = through(text, ">")
		if length > 0 {
			p.end(string(bytes.TrimSpace(text[2 : length-1])))
		}
		return length, nil
	}
	return p.tag(text)
}

// through returns the length of a text to the end of a mark, or 0.
func through(text []byte, mark string) int {
	i := bytes.Index(text, []byte(mark))
	if i < 0 {
		return 0
	}
	return i + len(mark)
}

// doctype refuses a declaration of entities.
func doctype(text []byte) (length int, err error) {
	end := bytes.IndexByte(text, '>')
	if end >= 0 && bytes.IndexByte(text[:end], '[') >= 0 {
		end = bytes.IndexByte(text, ']')
	}
	if end < 0 {
		end = len(text) - 1
	}
	if bytes.Contains(text[:end], []byte("<!ENTITY")) {
		return 0, errEntities
	}
	return end + 1, nil
}

// tag reads the tag that begins an element, and opens it.
func (p *parser) tag(text []byte) (length int, err error) {
	length = tagLength(text)
	if length == 0 {
		return 0, nil
	}
	inner, empty := bytes.CutSuffix(text[1:length-1], []byte("/"))
	end := bytes.IndexAny(inner, " \t\r\n/")
	if end < 0 {
		end = len(inner)
	}
	element := string(inner[:end])
	if p.open == nil {
		p.open, p.depth = &document{taken: make(map[string]int)}, 0
	}
	if p.depth++; p.depth > maxDepth {
		return 0, errDepth
	}
	switch element {
	case "testsuites", "testsuite", "testcase":
		p.attributes(inner[end:])
	}
	p.open.begin(element, p.own)
	if empty {
		p.end(element)
	}
	return length, nil
}

// end closes an element. The document ends with its root.
func (p *parser) end(element string) {
	if p.open == nil {
		return
	}
	root := len(p.open.suites) == 1 && (element == "testsuites" || element == "testsuite")
	p.open.end(element)
	if p.depth--; root {
		p.done, p.open = p.open, nil
	}
}

// tagLength returns the length of a tag; ">" may be in the value of an attribute. It is 0 if the text ends within.
func tagLength(text []byte) int {
	quote := byte(0)
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return 0
}

// attributes reads those of a tag.
func (p *parser) attributes(text []byte) {
	if p.own == nil {
		p.own = make(map[string]string)
	}
	clear(p.own)
	for {
		key, rest, ok := bytes.Cut(text, []byte("="))
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if !ok || len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
			return
		}
		value, after, ok := bytes.Cut(rest[1:], rest[:1])
		if !ok {
			return
		}
		p.own[string(bytes.TrimSpace(key))] = unescape(string(value))
		text = after
	}
}
