package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the maximum number of bytes in the name of a file: a Linux path, an
// attempt and a pod.
const maxName = 4096 + 64

// maxPlain is the maximum number of bytes of a name that a key includes.
const maxPlain = 400

// CheckName returns *NameError for an invalid name. A name is ATTEMPT/ROLE-INDEX/PATH,
// such as "1/benchmark-0/results/out.json", and its path has no empty, "." or ".."
// part. Every Linux path that is UTF-8 is valid.
func CheckName(name string) error {
	refuse := func(format string, args ...any) error {
		return &NameError{Name: name, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(name) > maxName:
		return refuse("has %d bytes, %d at most", len(name), maxName)
	case !utf8.ValidString(name):
		return refuse("is not UTF-8")
	case strings.ContainsRune(name, 0):
		return refuse("has a NUL")
	}
	parts := strings.Split(name, "/")
	if len(parts) < 3 {
		return refuse("is not ATTEMPT/ROLE-INDEX/PATH, such as 1/benchmark-0/out.json")
	}
	if attempt, err := strconv.Atoi(parts[0]); err != nil || attempt < 1 || strconv.Itoa(attempt) != parts[0] {
		return refuse("does not begin with the number of an attempt")
	}
	if !isPodName(parts[1]) {
		return refuse("has %q where a role and the index of a pod are wanted, such as benchmark-0", parts[1])
	}
	if slices.ContainsFunc(parts[2:], func(part string) bool { return part == "" || part == "." || part == ".." }) {
		return refuse("has an empty part, or one that leads elsewhere")
	}
	return nil
}

// isPodName reports whether s is a role and the index of a pod.
func isPodName(s string) bool {
	role, index, ok := strings.Cut(s, "-")
	n, err := strconv.Atoi(index)
	return ok && role != "" && strings.Trim(role, "abcdefghijklmnopqrstuvwxyz") == "" && err == nil && n >= 0 && strconv.Itoa(n) == index
}

// keyOf returns the key of a file's document. The key includes as much of the name as
// fits, without control characters.
func keyOf(run, name string) string {
	if len(name) <= maxPlain && !strings.ContainsFunc(name, unicode.IsControl) {
		return run + "!" + name
	}
	sum := sha256.Sum256([]byte(name))
	plain := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name[:min(len(name), maxPlain)], ""))
	return run + "!" + plain + "!" + hex.EncodeToString(sum[:])
}

// remainingSize returns the maximum size of another file of a run, given the run's
// files. The error is *LimitError if the run may have no more.
func (s Settings) remainingSize(others []File) (int64, error) {
	var total int64
	for _, f := range others {
		total += f.Size
	}
	switch {
	case len(others) >= s.MaxFiles:
		return 0, &LimitError{Message: fmt.Sprintf("the run has %d artifacts already, the most that are kept (gateway.artifacts.max_files)",
			len(others))}
	case total >= s.MaxTotal:
		return 0, &LimitError{Message: fmt.Sprintf("the artifacts of the run have %d bytes already, of %d that are kept (gateway.artifacts.max_total)", total, s.MaxTotal)}
	}
	return min(s.MaxSize, s.MaxTotal-total), nil
}

// tooLarge returns the error for a file larger than limit.
func (s Settings) tooLarge(name string, limit int64) error {
	if limit < s.MaxSize {
		return &LimitError{Message: fmt.Sprintf("artifact %q does not fit into the %d bytes that are left of those kept for a run (gateway.artifacts.max_total)", name, limit)}
	}
	return &LimitError{Message: fmt.Sprintf("artifact %q has more than the %d bytes that are kept of a file (gateway.artifacts.max_size)",
		name, limit)}
}
