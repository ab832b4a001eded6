package eks

import "strings"

// yamlOf returns the text of parameters as YAML. They are written as the inside of an object of
// jsonnet, with or without its braces: keys and values with commas, and comments that begin with
// //. Lines stay lines. A text that is YAML already stays as it is.
func yamlOf(text string) string {
	const border = "\n---\n"
	parts := strings.Split(text, border)
	for i, part := range parts {
		if !isJsonnet(part) {
			continue
		}
		part = strings.ReplaceAll(withoutComments(part), "\t", " ")
		if !strings.HasPrefix(strings.TrimSpace(part), "{") {
			part = "{" + strings.TrimSuffix(part, "\n") + "}"
		}
		parts[i] = part
	}
	return strings.Join(parts, border)
}

// isJsonnet reports whether a text begins with a brace, or its first key ends with a comma.
func isJsonnet(text string) bool {
	for line := range strings.Lines(withoutComments(text)) {
		if line = strings.TrimSpace(line); line != "" {
			return strings.HasPrefix(line, "{") || strings.HasSuffix(line, "',") || strings.HasSuffix(line, `",`) ||
				strings.HasSuffix(line, "[{")
		}
	}
	return false
}

// withoutComments returns a text with blanks in place of comments that begin with // or #,
// outside of quotes.
func withoutComments(text string) string {
	b := []byte(text)
	var quote byte
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\n':
			quote = 0 // no text has several lines
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#', c == '/' && i+1 < len(b) && b[i+1] == '/' && (i == 0 || b[i-1] != ':'):
			for ; i < len(b) && b[i] != '\n'; i++ {
				b[i] = ' '
			}
		}
	}
	return string(b)
}
