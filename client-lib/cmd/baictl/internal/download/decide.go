package download

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

// longest is how many bytes a part of a path can have.
const longest = 255

// CheckName says why a file of that name is not written: it could lie elsewhere
// than where it should. It is nil for every other name that Linux allows, also
// for one that must be cleaned before it is shown.
func CheckName(name string) error {
	refuse := func(why string) error { return &NameError{Name: name, Why: why} }
	switch {
	case name == "":
		return refuse("it is empty")
	case strings.HasPrefix(name, "/"):
		return refuse(`it begins with "/"`)
	case path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return refuse("it leads elsewhere")
	case strings.ContainsRune(name, 0):
		return refuse("it holds a NUL")
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > longest {
			return refuse("a part of it is too long")
		}
	}
	return nil
}

// A NameError refuses a name that a platform gave.
type NameError struct{ Name, Why string }

// Error says which, and why.
func (e *NameError) Error() string { return fmt.Sprintf("artifact %q is refused: %s", e.Name, e.Why) }

// sumDigits is how many digits of a digest distinguish contents of one name.
const sumDigits = 12

// partial is the path of an incomplete download. Each content has its own path.
func partial(name, digest string) string {
	base := path.Base(name)
	if sum := sha256.Sum256([]byte(base)); len(base)+len("...part")+sumDigits > longest {
		base = hex.EncodeToString(sum[:])
	}
	return path.Join(path.Dir(name), fmt.Sprintf(".%s.%.*s.part", base, sumDigits, digest))
}
