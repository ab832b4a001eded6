package printer

import (
	"fmt"
	"math"
)

// Signed is a Number with its sign: "+12.5".
func Signed(x float64) string {
	if x < 0 {
		return Number(x)
	}
	return "+" + Number(x)
}

// PercentForm returns the form of changes in percent, without the sign %: as many digits as a change
// needs, for it and its interval: 0.0666 and 0.049 are "+6.7" and "+4.9". Of very large ones
// three digits count.
func PercentForm(change float64) func(float64) string {
	percent, digits := math.Abs(100*change), 1
	switch {
	case percent >= 100:
		digits = 0
	case percent > 0 && percent < 0.1:
		digits = 3
	case percent < 1:
		digits = 2
	}
	return func(x float64) string {
		if math.Abs(100*x) >= 1e6 {
			return fmt.Sprintf("%+.3g", 100*x)
		}
		return fmt.Sprintf("%+.*f", digits, 100*x)
	}
}
