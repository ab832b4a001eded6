package cluster

import "strings"

// Expand replaces $(NAME) by the value of NAME, as Kubernetes does in commands, arguments and values: a reference to an unknown name stays,
// and $$ is a literal $.
func Expand(s string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		whole, value := expandReference(s[i:], lookup)
		b.WriteString(value)
		s = s[i+whole:]
	}
}

// expandReference returns how many bytes of s, which begins with $, are one reference, and their replacement.
func expandReference(s string, lookup func(string) (string, bool)) (int, string) {
	switch s[1] {
	case '$':
		return 2, "$"
	case '(':
		end := strings.IndexByte(s, ')')
		if end < 0 {
			return 2, s[:2]
		}
		if v, ok := lookup(s[2:end]); ok {
			return end + 1, v
		}
		return end + 1, s[:end+1]
	}
	return 2, s[:2]
}
