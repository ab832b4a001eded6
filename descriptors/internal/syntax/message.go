package syntax

import (
	"bytes"
	"fmt"
	"strings"
)

// messageRule replaces the parser's messages with that beginning.
type messageRule struct {
	begin, message, remedy string
}

// messageRules are tried in order. An empty message keeps the parser's own.
func messageRules() []messageRule {
	const quotes = "close the quotes on the line, or use three of them around a text of several lines"
	return []messageRule{
		{"unexpected character", "this is no value", "put text into quotes"},
		{"expected keyword", "this is no value", "put text into quotes; true and false are lower case"},
		{"expected value, not end", "the value is missing", "write key = value"},
		{"basic strings cannot have new lines", "the text in quotes has no end on its line", quotes},
		{"literal strings cannot have new lines", "the text in quotes has no end on its line", quotes},
		{"unterminated", "the text in quotes has no end", "close the quotes"},
		{"multiline", "the text has no end, or holds a character that it may not", "end it with the three quotes that it begins with"},
		{
			"invalid escape character", "a backslash that stands for nothing",
			`write \\, or single quotes, in which a backslash is a backslash`,
		},
		{"expected '=' after key", "a key without a value", "write key = value"},
		{"expected newline", "more on the line than one key and its value", "put text into quotes, and each key on its own line"},
		{"expected ',' or ']'", "a comma is missing in the list, or its end", "write a comma between two values, and ] at the end"},
		{"expected ',' or '}'", "a comma is missing in the table, or its end", "write a comma between two keys, and } at the end"},
		{"expected ']' to close", "the header of the table is not closed", "write [name]"},
		{"expected ']]' to close", "the header of the table is not closed", "write [[name]]"},
		{"invalid character at start of key", "this is no key", "write key = value, and # before a comment"},
		{"array is incomplete", "the list is not closed", "write ] at the end"},
		{"inline table is incomplete", "the table is not closed", "write } at the end"},
	}
}

// translate rewords a message about the beginning of text for authors of files.
func translate(message string, text []byte) (string, string) {
	word := firstWord(text)
	for _, s := range messageRules() {
		if !strings.HasPrefix(message, s.begin) {
			continue
		}
		if word != "" {
			return fmt.Sprintf("%s: %s", s.message, word), s.remedy
		}
		return s.message, s.remedy
	}
	return message, ""
}

// firstWord is the beginning of a line, in quotes, for a message.
func firstWord(text []byte) string {
	const most = 24
	line, _, _ := bytes.Cut(text, []byte("\n"))
	word, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	runes := []rune(string(word))
	if len(runes) == 0 {
		return ""
	}
	if len(runes) > most {
		return fmt.Sprintf("%q…", string(runes[:most]))
	}
	return fmt.Sprintf("%q", string(runes))
}

// unclosed is the message for a list, table or text that is still open at line, where
// something else begins.
func unclosed(line int) (string, string) {
	return fmt.Sprintf("what begins here is not closed before line %d, or lacks a comma", line),
		"close it with the bracket or the quotes that it begins with"
}
