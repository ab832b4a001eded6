package draft

import (
	"regexp"
	"strings"
)

// Words returns a command of words as the language reads it: those with other characters than
// letters, digits and a few marks are in single quotes.
func Words(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = word(w)
	}
	return strings.Join(all, " ")
}

func word(w string) string {
	plain := regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./^$()` + mark + `-]+$`) // the language has no shell, and knows $(NAME)
	if plain.MatchString(w) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// Label returns a text as the value of a label: 1 to 63 letters, digits, -, _ and ., the first
// and last a letter or digit. It is empty if nothing is left.
func Label(text string) string {
	const most = 63
	s := regexp.MustCompile(`[^A-Za-z0-9_.-]+`).ReplaceAllString(text, "-")
	if len(s) > most {
		s = s[:most]
	}
	return strings.Trim(s, "-_.")
}

// ShortName returns a text as the name of a step or role: 1 to 20 lower-case letters, digits
// and hyphens, the first and last no hyphen. It is empty if nothing is left.
func ShortName(text string) string {
	const most = 20
	s := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(text), "-")
	s = strings.Trim(s, "-")
	if len(s) > most {
		s = s[:most]
	}
	return strings.Trim(s, "-")
}

// IsLabel reports whether a text is the key of a label.
func IsLabel(text string) bool { return text != "" && Label(text) == text }

// IsVariable reports whether a text is the name of an environment variable.
func IsVariable(text string) bool {
	return regexp.MustCompile(`^[A-Za-z_.-][A-Za-z0-9_.-]*$`).MatchString(text)
}
