// Package powertest does to files what a power cut may do to those that were
// written lately. Each function changes the file at a path, and returns the error
// of the disk.
package powertest

import "os"

// page is the size of a page of memory, which a disk gets whole or not at all.
const page = 4096

// Truncate takes the last bytes.
func Truncate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, max(info.Size()-7, 0))
}

// Empty takes all bytes.
func Empty(path string) error { return os.Truncate(path, 0) }

// ZeroFirst makes zeros of the first page.
func ZeroFirst(path string) error {
	return rewrite(path, func(text []byte) []byte { return zero(text, 0) })
}

// ZeroMiddle makes zeros of the page in the middle.
func ZeroMiddle(path string) error {
	return rewrite(path, func(text []byte) []byte { return zero(text, len(text)/2/page*page) })
}

// Extend adds zeros behind the end.
func Extend(path string) error {
	return rewrite(path, func(text []byte) []byte { return append(text, make([]byte, 5000)...) })
}

func zero(text []byte, at int) []byte {
	clear(text[at:min(at+page, len(text))])
	return text
}

func rewrite(path string, change func([]byte) []byte) error {
	text, err := os.ReadFile(path) //nolint:gosec // a file of a test
	if err != nil {
		return err
	}
	return os.WriteFile(path, change(text), 0o600)
}
