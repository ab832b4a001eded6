package emit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The lines are, to the byte, those of Python's json.dumps: a comma and a colon
// with a space behind them, ASCII only, NaN and Infinity by these names.

var errEmpty = errors.New("emit: no values")

// appendValues appends the members of a line, in the order of their names.
func appendValues(b []byte, values map[string]any) ([]byte, error) {
	if len(values) == 0 {
		return b, errEmpty
	}
	for i, name := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(appendText(b, name), ": "...)
		var err error
		if b, err = appendAny(b, values[name]); err != nil {
			return b, fmt.Errorf("emit %q: %w", name, err)
		}
	}
	return b, nil
}

func appendAny(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return b, errors.New("nil is no number")
	case time.Duration:
		return b, fmt.Errorf("a duration such as %s has no number: emit.Duration emits its seconds", v)
	case json.Number:
		if _, err := strconv.ParseFloat(string(v), 64); !json.Valid([]byte(v)) || errors.Is(err, strconv.ErrSyntax) {
			return b, fmt.Errorf("%q is no number", string(v))
		}
		return append(b, v...), nil
	}
	switch r := reflect.ValueOf(v); {
	case r.CanFloat():
		return appendFloat(b, r.Float()), nil
	case r.CanInt():
		return strconv.AppendInt(b, r.Int(), 10), nil
	case r.CanUint():
		return strconv.AppendUint(b, r.Uint(), 10), nil
	case r.Kind() == reflect.Bool:
		return strconv.AppendBool(b, r.Bool()), nil
	case r.Kind() == reflect.String:
		if !isNumber(r.String()) {
			return b, fmt.Errorf("%q is no number", r.String())
		}
		return appendText(b, r.String()), nil
	default:
		return b, fmt.Errorf("%T is no number", v)
	}
}

// isNumber reports whether the platform reads s as a number: a decimal one, with
// sign, fraction and exponent as it likes, NaN, or an infinity.
func isNumber(s string) bool {
	if strings.ContainsAny(s, "_xXpP") { // of Go's own notation
		return false
	}
	_, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

// appendOptions appends the options, each with a comma before.
func appendOptions(b []byte, opts []Option) []byte {
	if len(opts) == 0 {
		return b
	}
	if o := find(opts, kindStep); o != nil {
		b = strconv.AppendInt(append(b, `, "@step": `...), o.num, 10)
	}
	if has(opts, kindUnitOf) {
		b = appendObject(append(b, `, "@unit": {`...), opts, kindUnitOf)
	} else if o := find(opts, kindUnit); o != nil {
		b = appendText(append(b, `, "@unit": `...), o.text)
	}
	if has(opts, kindLabel) {
		b = appendObject(append(b, `, "@labels": {`...), opts, kindLabel)
	}
	if o := find(opts, kindAt); o != nil {
		b = appendTime(b, o.num, o.nsec)
	}
	return b
}

// find returns the last option of the kind, for it is the one that holds.
func find(opts []Option, k kind) *Option {
	for i := len(opts) - 1; i >= 0; i-- {
		if opts[i].kind == k {
			return &opts[i]
		}
	}
	return nil
}

func has(opts []Option, k kind) bool { return find(opts, k) != nil }

// appendObject appends the members that the options of the kind make, and the
// object's end.
func appendObject(b []byte, opts []Option, k kind) []byte {
	first := true
	for _, o := range opts {
		if o.kind != k {
			continue
		}
		if !first {
			b = append(b, ", "...)
		}
		first = false
		b = append(appendText(b, o.key), ": "...)
		b = appendText(b, o.text)
	}
	return append(b, '}')
}

// appendTime appends the member that says when, digit by digit: no float64 holds
// the nanoseconds of our days.
func appendTime(b []byte, sec int64, nsec int) []byte {
	b = strconv.AppendInt(append(b, `, "@time": `...), sec, 10)
	b = append(b, ".000000000"...)
	for i := len(b) - 1; nsec > 0; i-- {
		b[i] = byte('0' + nsec%10)
		nsec /= 10
	}
	return b
}

// appendFloat appends the shortest text that reads as v.
func appendFloat(b []byte, v float64) []byte {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 1):
		return append(b, "Infinity"...)
	case math.IsInf(v, -1):
		return append(b, "-Infinity"...)
	case abs != 0 && (abs < 1e-4 || abs >= 1e16):
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	begin := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	if slices.Contains(b[begin:], '.') {
		return b
	}
	return append(b, ".0"...)
}

// appendText appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c <= '~' && c != '"' && c != '\\' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		b = appendEscaped(append(b, s[from:i]...), r)
		i += size
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

func appendEscaped(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	}
	if r > 0xffff {
		r -= 0x10000
		return appendUnit(appendUnit(b, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return appendUnit(b, r)
}

func appendUnit(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
