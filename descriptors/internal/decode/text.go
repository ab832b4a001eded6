package decode

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// Unreadable reports a text of more than most bytes, and one that is no text at all.
func Unreadable(text []byte, most int) (f Fault, bad bool) {
	f = Fault{At: syntax.Position{Line: 1, Column: 1}}
	switch {
	case len(text) > most:
		f.Code = fault.TooLarge
		f.Message = fmt.Sprintf("the file is larger than %d KiB, the most that is taken", most>>10)
		f.Remedy = "name data and code in [data] or [ml.script] instead of writing them here"
	case bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")):
		f.Code, f.Message, f.Remedy = fault.NotUTF8, "the file is UTF-16", "save it as UTF-8"
	case bytes.IndexByte(text, 0) >= 0:
		f.At = syntax.NewLines(text).Position(bytes.IndexByte(text, 0))
		f.Code, f.Message, f.Remedy = fault.Binary, "the file holds a NUL byte: it is no text", "name a TOML file"
	case !utf8.Valid(text):
		f.At = syntax.NewLines(text).Position(invalid(text))
		f.Code, f.Message, f.Remedy = fault.NotUTF8, "the file is not UTF-8 from here on", "save it as UTF-8"
	case len(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))) == 0:
		f.Code, f.Message, f.Remedy = fault.Empty, "the file is empty", `begin with spec_version = "1.0"`
	default:
		return Fault{}, false
	}
	return f, true
}

// invalid is the offset of the first byte of text that is not UTF-8.
func invalid(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}

// Broken are the faults of a text that is not TOML.
func Broken(all []syntax.Fault) []Fault {
	faults := make([]Fault, len(all))
	for i, f := range all {
		faults[i] = Fault{At: f.At, Code: Code(f), Message: f.Message, Remedy: f.Remedy}
	}
	return faults
}

// Code is that of a fault of TOML.
func Code(f syntax.Fault) string {
	switch f.Code {
	case syntax.Duplicate:
		return fault.Duplicate
	case syntax.TooDeep:
		return fault.TooDeep
	case syntax.Malformed:
	}
	return fault.Syntax
}

// HasError reports whether one of some faults is an error, and no warning.
func HasError(faults []Fault) bool {
	return slices.ContainsFunc(faults, func(f Fault) bool { return !f.Warning })
}
