package printer

import "strings"

// Wrap is text in lines of at most so many cells, broken between words; 0 means
// that nothing is broken. A word that is longer has a line of its own.
func Wrap(text string, width int) []string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	if width <= 0 {
		return []string{strings.Join(words, " ")}
	}
	var lines []string
	line := words[0]
	for _, word := range words[1:] {
		if Width(line)+1+Width(word) > width {
			lines = append(lines, line)
			line = word
			continue
		}
		line += " " + word
	}
	return append(lines, line)
}

// Hang is text in lines of at most so many cells behind a beginning, which the
// lines after the first leave free; 0 is a page's width.
func Hang(begin, text string, width int) string {
	if width == 0 {
		width = Page
	}
	indent := strings.Repeat(" ", Width(begin))
	lines := Wrap(text, max(width-Width(begin), narrowestText))
	if len(lines) == 0 {
		return strings.TrimRight(begin, " ")
	}
	return begin + strings.Join(lines, "\n"+indent)
}

// Indent4 is text with four spaces before each line that is not empty, made safe for a
// terminal.
func Indent4(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("    "+Clean(strings.TrimRight(line, "\r\n")), " ") + "\n")
	}
	return b.String()
}
