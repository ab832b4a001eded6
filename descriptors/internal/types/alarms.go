package types

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

const (
	maxConsecutive = 100 // runs that an alarm waits for
	maxReceivers   = 10

	// A test of fewer pairs cannot show a difference at its level; one of more is not computed.
	minPairs, maxPairs = 5, 20
	maxConfirmations   = 60 // runs that confirm an incident

	baselinePattern = `^[a-z0-9.-]{1,63}$`
)

// alarms are the types of the table alarms.
func alarms() decode.ValueTypes {
	return decode.ValueTypes{
		"share":             {Type: "string", Rule: "a percentage above 0, at most 1000: `2%`, `0.5%`", Read: share},
		"limit":             {Type: "number", Rule: "a finite number", Read: limit},
		"consecutive":       between(1, maxConsecutive),
		"pairs":             between(minPairs, maxPairs),
		"confirmation runs": between(2*minPairs, maxConfirmations),
		"baseline":          text("1 to 63 of `a` to `z`, `0` to `9`, `-` and `.`", baseline),
		"receivers": {
			Type: "list of strings", Rule: fmt.Sprintf("1 to %d names of receivers, none twice", maxReceivers), Read: receivers,
		},
	}
}

// share is what a percentage stands for: 0.02 for 2%.
func share(v decode.Value) any {
	if v.Kind == syntax.Integer || v.Kind == syntax.Float {
		v.Fault(fault.BadShare, fmt.Sprintf("%s has no unit", v.Text), "write a percentage, as \"2%\"")
		return nil
	}
	s, ok := v.String()
	if !ok {
		return nil
	}
	number, found := strings.CutSuffix(s, "%")
	n, err := strconv.ParseFloat(number, 64)
	switch {
	case !found && isPercentage(number) && err == nil:
		v.Fault(fault.BadShare, fmt.Sprintf("%q has no unit", s), fmt.Sprintf("write it as \"%s%%\"", s))
	case !found || !isPercentage(number) || err != nil || n <= 0 || n > 1000:
		v.Fault(fault.BadShare, fmt.Sprintf("%q is not a percentage above 0", s), "write it as \"2%\", at most \"1000%\"")
	default:
		return n / 100
	}
	return nil
}

// limit is a finite number.
func limit(v decode.Value) any {
	if v.Kind != syntax.Integer && v.Kind != syntax.Float {
		v.WrongType("a number")
		return nil
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(v.Text, "_", ""), 64)
	if v.Kind == syntax.Integer {
		var whole int64
		whole, err = v.Node.Int() // it may be hexadecimal
		n = float64(whole)
	}
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		v.Fault(fault.OutOfRange, fmt.Sprintf("%s is not a finite number", v.Text), "write the limit as a number, as 250 or 0.5")
		return nil
	}
	return n
}

func baseline(v decode.Value, s string) any {
	if s == "" || len(s) > longest || !all(s, func(c byte) bool { return isLower(c) || isDigit(c) || c == '-' || c == '.' }) {
		v.Fault(fault.BadName, fmt.Sprintf("%.100q is not the name of a baseline", s), "write at most 63 of a-z, 0-9, - and .")
		return nil
	}
	return s
}

func receivers(v decode.Value) any {
	return distinct{
		what: "a list of names", example: "a receiver", code: fault.BadReceiver, most: maxReceivers,
		valid: func(item decode.Value, s string) bool {
			if !isLabel(s) {
				item.Fault(fault.BadReceiver, fmt.Sprintf("%.100q is not the name of a receiver", s),
					"write the name that the settings of the platform give a receiver; a descriptor has no addresses")
			}
			return isLabel(s)
		},
	}.read(v)
}
