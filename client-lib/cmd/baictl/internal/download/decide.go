package download

import (
	"fmt"
	"path"
	"strings"
	"unicode"
)

// CheckName says why a file of that name is not written: it could lie elsewhere
// than where it should, or deceive who looks at it. It is nil for a good name.
func CheckName(name string) error {
	const longest = 255
	refuse := func(why string) error { return &NameError{Name: name, Why: why} }
	switch {
	case name == "":
		return refuse("it is empty")
	case strings.HasPrefix(name, "/") || strings.Contains(name, `\`) || strings.Contains(name, ":"):
		return refuse(`it begins with "/", or holds "\" or ":"`)
	case path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return refuse("it leads elsewhere")
	}
	for _, r := range name {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			return refuse("it holds characters that are not shown")
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > longest-len(partial("", "")) {
			return refuse("a part of it is too long")
		}
	}
	return nil
}

// A NameError refuses a name that a platform gave.
type NameError struct{ Name, Why string }

// Error says which, and why.
func (e *NameError) Error() string { return fmt.Sprintf("artifact %q is refused: %s", e.Name, e.Why) }

// partial is where the bytes of a file lie until all are there. Another content
// has another place.
func partial(name, sha256 string) string {
	return path.Join(path.Dir(name), fmt.Sprintf(".%s.%.12s.part", path.Base(name), fmt.Sprintf("%-12s", sha256)))
}
