package json

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// step of a path: a key, or the index of an element.
type step struct {
	key   string
	index int // -1 for a key
}

// parsePath reads a path.
func parsePath(path string) ([]step, error) {
	var steps []step
	rest := path
	for rest != "" {
		one, after, err := firstStep(rest, len(steps) == 0)
		if err != nil {
			return nil, fmt.Errorf("the path %q: %w", path, err)
		}
		steps, rest = append(steps, one), after
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("the path is empty")
	}
	return steps, nil
}

// firstStep reads the first step of a path.
func firstStep(path string, first bool) (one step, rest string, err error) {
	switch {
	case strings.HasPrefix(path, `["`):
		quoted, err := strconv.QuotedPrefix(path[1:])
		if err != nil || !strings.HasPrefix(path[1+len(quoted):], "]") {
			return step{}, "", fmt.Errorf("%q is no key in brackets", report.Clip(path))
		}
		one.index = -1
		if json.Unmarshal([]byte(quoted), &one.key) != nil {
			return step{}, "", fmt.Errorf("%q is no key in brackets", report.Clip(path))
		}
		return one, path[len(quoted)+2:], nil
	case path[0] == '[':
		inner, after, ok := strings.Cut(path[1:], "]")
		n, err := strconv.ParseUint(inner, 10, 31)
		if !ok || err != nil {
			return step{}, "", fmt.Errorf("%q is no index in brackets", report.Clip(path))
		}
		return step{index: int(n)}, after, nil
	}
	if !first {
		after, ok := strings.CutPrefix(path, ".")
		if !ok {
			return step{}, "", fmt.Errorf("a point is missing before %q", report.Clip(path))
		}
		path = after
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	if end == 0 {
		return step{}, "", fmt.Errorf("a key is missing before %q", report.Clip(path))
	}
	return step{key: path[:end], index: -1}, path[end:], nil
}

// appendPath appends the path of a way.
func appendPath(path []byte, way []document.Step) []byte {
	for i, s := range way {
		switch {
		case s.Index >= 0:
			path = append(path, '[')
			path = strconv.AppendInt(path, int64(s.Index), 10)
			path = append(path, ']')
		case plain(s.Key):
			if i > 0 {
				path = append(path, '.')
			}
			path = append(path, s.Key...)
		default:
			quoted, err := json.Marshal(string(s.Key))
			if err != nil { // a string can always be written
				continue
			}
			path = append(path, '[')
			path = append(path, quoted...)
			path = append(path, ']')
		}
	}
	return path
}

// plain reports whether a key can be in a path as it is.
func plain(key []byte) bool {
	for _, c := range key {
		if c <= ' ' || c == '.' || c == '[' || c == ']' || c == '"' || c == '\\' || c == 0x7F {
			return false
		}
	}
	return len(key) > 0 && utf8.Valid(key)
}

// leads reports whether a way is that of a path, and whether the path leads to an object or array on that way.
func leads(path []step, way []document.Step) (there, within bool) {
	if len(path) > len(way) {
		return false, false
	}
	for i, p := range path {
		w := way[i]
		if p.index != w.Index || p.index < 0 && p.key != string(w.Key) {
			return false, false
		}
	}
	return len(path) == len(way), len(path) < len(way)
}
