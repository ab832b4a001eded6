// Package quantity reads sizes, amounts of CPU and spans of time as people
// write them.
package quantity

import (
	"errors"
	"math"
	"math/big"
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
	return number.times(factor)
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
	places, factor := 3, int64(1000)
	switch unit {
	case "":
	case "m":
		places, factor = 0, 1
	default:
		return "", ErrUnit
	}
	thousandths, err := number.times(factor)
	switch {
	case err != nil || thousandths > 1e9:
		return "", ErrTooLarge
	case len(number.fraction) > places || thousandths == 0:
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

// decimal is a number that is not negative, by its digits: no float64 is 16.1. The whole has no zero in front, and the fraction none at its
// end.
type decimal struct{ whole, fraction string }

const (
	maxWhole    = 19 // digits of the largest int64
	maxFraction = 64 // more digits than 1/1024⁵ has: those beyond do not change a product that is rounded down
)

// times returns a product, rounded down. The factor is at most 1024⁵. The only error is ErrTooLarge.
func (d decimal) times(factor int64) (int64, error) {
	if len(d.whole) > maxWhole {
		return 0, ErrTooLarge
	}
	fraction := d.fraction[:min(len(d.fraction), maxFraction)]
	n, _ := new(big.Int).SetString("0"+d.whole+fraction, 10) // digits
	n.Mul(n, big.NewInt(factor))
	n.Quo(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil))
	if !n.IsInt64() {
		return 0, ErrTooLarge
	}
	return n.Int64(), nil
}

// cut parts a number that is not negative from its unit.
func cut(s string) (decimal, string, error) {
	end := strings.LastIndexAny(s, "0123456789.") + 1
	whole, fraction, _ := strings.Cut(s[:end], ".")
	if digits := whole + fraction; digits == "" || strings.Trim(digits, "0123456789") != "" {
		return decimal{}, "", ErrSyntax
	}
	return decimal{strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")}, strings.TrimPrefix(s[end:], " "), nil
}

func factor(unit string) (int64, bool) {
	if unit == "" {
		return 1, true
	}
	base := int64(1000)
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
	product := base
	for range power {
		product *= base
	}
	return product, true
}
