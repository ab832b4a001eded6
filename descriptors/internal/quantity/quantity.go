// Package quantity reads sizes, amounts of CPU and spans of time as people
// write them.
package quantity

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// The errors of this package; none of them says the input.
var (
	ErrSyntax   = errors.New("not a number with a unit")
	ErrUnit     = errors.New("unknown unit")
	ErrTooLarge = errors.New("too large")
)

// Size is a number of bytes: a number with one of the units k, M, G, T, P (of
// 1000) and Ki, Mi, Gi, Ti, Pi (of 1024), each with or without a B behind it.
func Size(s string) (int64, error) {
	number, unit, err := cut(s)
	if err != nil {
		return 0, err
	}
	factor, ok := factor(strings.TrimSuffix(unit, "B"))
	if !ok {
		return 0, ErrUnit
	}
	bytes := number * factor
	if bytes >= math.MaxInt64 {
		return 0, ErrTooLarge
	}
	return int64(bytes), nil
}

// Memory is a Size as Kubernetes writes it: 16GiB as 16Gi, 4KB as 4k.
func Memory(s string) (string, error) {
	if _, err := Size(s); err != nil {
		return "", err
	}
	s = strings.TrimSuffix(strings.ReplaceAll(s, " ", ""), "B")
	if number, ok := strings.CutSuffix(s, "K"); ok {
		s = number + "k"
	}
	return s, nil
}

// CPUs is an amount of CPU as Kubernetes writes it: 2, 0.5 or 500m. Finer than
// a thousandth there is not.
func CPUs(s string) (string, error) {
	number, unit, err := cut(s)
	if err != nil {
		return "", err
	}
	thousandths := number
	switch unit {
	case "":
		thousandths *= 1000
	case "m":
	default:
		return "", ErrUnit
	}
	switch {
	case thousandths > 1e9:
		return "", ErrTooLarge
	case thousandths != math.Trunc(thousandths) || thousandths == 0:
		return "", ErrSyntax
	}
	return strings.ReplaceAll(s, " ", ""), nil
}

// Duration is a span of time: numbers with the units d, h, m, s and ms, as
// 1d12h or 90s.
func Duration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		days, rest = "0", s
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || strings.ContainsAny(rest, "-+µu") || strings.Contains(rest, "ns") {
		return 0, ErrSyntax
	}
	whole := time.Duration(n) * 24 * time.Hour
	if found && rest == "" {
		return whole, nil
	}
	part, err := time.ParseDuration(rest)
	if err != nil {
		return 0, ErrSyntax
	}
	if part > math.MaxInt64-whole {
		return 0, ErrTooLarge
	}
	return whole + part, nil
}

// cut parts a number that is not negative from its unit.
func cut(s string) (float64, string, error) {
	end := strings.LastIndexAny(s, "0123456789.") + 1
	for _, c := range s[:end] {
		if c != '.' && (c < '0' || c > '9') {
			return 0, "", ErrSyntax
		}
	}
	number, err := strconv.ParseFloat(s[:end], 64)
	if err != nil {
		return 0, "", ErrSyntax
	}
	return number, strings.TrimPrefix(s[end:], " "), nil
}

func factor(unit string) (float64, bool) {
	if unit == "" {
		return 1, true
	}
	base := 1000.0
	if prefix, ok := strings.CutSuffix(unit, "i"); ok {
		base, unit = 1024, prefix
	}
	if unit == "k" && base == 1000 {
		unit = "K"
	}
	power := strings.Index("KMGTP", unit)
	if len(unit) != 1 || power < 0 {
		return 0, false
	}
	return math.Pow(base, float64(power+1)), true
}
