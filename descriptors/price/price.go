// Package price has prices of machines: money per hour, in one currency. Amounts are computed
// in whole numbers, so that no sum is rounded before it is complete.
package price

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// Digits of an amount: those before the point, and those after it.
const (
	maxWhole    = 9
	maxFraction = 9
)

// Price is money per hour. Its zero value is no price.
type Price struct {
	nano     int64 // billionths of the currency
	currency string
}

// FaultError refuses a text that is no price.
type FaultError struct {
	Code    string
	Message string // begins in lower case
	Remedy  string
}

// Error implements error.
func (e *FaultError) Error() string { return fmt.Sprintf("%s (%s): %s", e.Message, e.Code, e.Remedy) }

const remedy = `write an amount and a currency, as "3.06 USD"`

// Parse reads a price: an amount of at most 9 digits before the point and 9 after it, a blank,
// and the three capital letters of a currency, as ISO 4217 has them. The error is *FaultError.
func Parse(text string) (Price, error) {
	amount, currency, both := strings.Cut(text, " ")
	nano, err := parseAmount(amount)
	switch {
	case err != nil:
		return Price{}, err
	case !both:
		return Price{}, &FaultError{
			fault.NoCurrency, fmt.Sprintf("%q has no currency", text),
			fmt.Sprintf("write it as \"%s USD\", with the currency that it is in", amount),
		}
	case !isCurrency(currency):
		return Price{}, &FaultError{
			fault.NoCurrency, fmt.Sprintf("%.100q is not the code of a currency", currency),
			`write the three capital letters of one, as "USD" or "EUR"`,
		}
	}
	return Price{nano, currency}, nil
}

// parseAmount returns an amount in billionths.
func parseAmount(text string) (int64, error) {
	whole, fraction, point := strings.Cut(text, ".")
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, &FaultError{fault.BadPrice, fmt.Sprintf("%.100q is negative", text), "write 0 or more and a currency, as \"3.06 USD\""}
	case !isDigits(whole) || point && !isDigits(fraction):
		return 0, &FaultError{fault.BadPrice, fmt.Sprintf("%.100q is not an amount of money", text), remedy}
	case len(whole) > maxWhole || len(fraction) > maxFraction:
		message := fmt.Sprintf("%.100q has more than %d digits before the point, or %d after it", text, maxWhole, maxFraction)
		return 0, &FaultError{fault.BadPrice, message, remedy}
	}
	var nano int64
	for _, digit := range whole + fraction + strings.Repeat("0", maxFraction-len(fraction)) {
		nano = 10*nano + int64(digit-'0') // 18 digits at most
	}
	return nano, nil
}

func isDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

func isCurrency(s string) bool {
	return len(s) == 3 && strings.IndexFunc(s, func(r rune) bool { return r < 'A' || r > 'Z' }) < 0
}

// Less reports whether the amount is smaller than that of o, which is in the same currency.
func (p Price) Less(o Price) bool { return p.nano < o.nano }

// Currency returns the code of the currency.
func (p Price) Currency() string { return p.currency }

// String returns the text of which Parse makes the price, without needless zeros.
func (p Price) String() string {
	const one = 1_000_000_000
	text := fmt.Sprint(p.nano / one)
	if rest := p.nano % one; rest > 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%09d", rest), "0")
	}
	return text + " " + p.currency
}

// Total is a sum of what machines have cost, exact. Its zero value is the sum of nothing.
type Total struct {
	currency string
	sum      big.Int // billionths of the currency per hour, times ns
}

// Add adds what a machine costs in a time. It changes nothing, and reports false, if the sum is
// in another currency. A time below zero counts as none.
func (t *Total) Add(p Price, d time.Duration) bool {
	if t.currency != "" && t.currency != p.currency {
		return false
	}
	t.currency = p.currency
	t.sum.Add(&t.sum, new(big.Int).Mul(big.NewInt(p.nano), big.NewInt(int64(max(d, 0)))))
	return true
}

// Currency returns the code of the currency; it is empty for the sum of nothing.
func (t *Total) Currency() string { return t.currency }

// Amount returns the float64 that is nearest to the sum.
func (t *Total) Amount() float64 {
	hour := new(big.Int).Mul(big.NewInt(int64(time.Hour)), big.NewInt(1_000_000_000))
	amount, _ := new(big.Rat).SetFrac(&t.sum, hour).Float64()
	return amount
}
