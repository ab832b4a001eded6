// Package filename writes names that Linux allows on systems and file systems
// that do not have them.
package filename

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// windows is the GOOS of the one system whose names are always escaped: there
// "a:b" is a stream of the file a, and no error.
const windows = "windows"

// On returns how a path of Linux, with slashes, is written on a system (a
// GOOS), and whether that is another name.
func On(system, path string) (local string, escaped bool) {
	if system != windows {
		return path, false
	}
	local = Escape(path)
	return local, local != path
}

// Escape returns a path that every system can have: of each part it writes
// characters that Windows does not allow, and "%", as %XX. Two paths never
// have one escaped form, and Unescape undoes it.
func Escape(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = escape(part)
	}
	return strings.Join(parts, "/")
}

func escape(part string) string {
	var b strings.Builder
	for i := range len(part) {
		c := part[i]
		last := i == len(part)-1 && (c == '.' || c == ' ')
		if c < ' ' || c == 0x7f || strings.IndexByte(`<>:"\|?*%`, c) >= 0 || last || i == 0 && device(part) {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// device reports whether Windows takes a name for a device, whatever its ending.
func device(part string) bool {
	stem, _, _ := strings.Cut(part, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	number, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		number, ok = strings.CutPrefix(stem, "LPT")
	}
	return ok && len([]rune(number)) == 1 && strings.Contains("0123456789¹²³", number)
}

// Refused reports whether an error says that a file system does not have such a
// name, as one made for Windows says it on Linux.
func Refused(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EILSEQ)
}

// Unescape returns the path that Escape was given.
func Unescape(path string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			b.WriteByte(path[i])
			continue
		}
		if i+3 > len(path) {
			return "", fmt.Errorf("%q is not an escaped name: its last %%XX is cut", path)
		}
		c, err := hex.DecodeString(path[i+1 : i+3])
		if err != nil {
			return "", fmt.Errorf("%q is not an escaped name: %q stands where %%XX is wanted", path, path[i:i+3])
		}
		b.Write(c)
		i += 2
	}
	return b.String(), nil
}
