package session

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Percent is a flag with a relative change: 2%, or 0.02. It is not negative.
type Percent float64

// String implements pflag.Value.
func (p *Percent) String() string {
	if *p == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(*p), 'g', 12, 64) + "%"
}

// Set implements pflag.Value.
func (p *Percent) Set(text string) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a change: write 2%%, or 0.02", text)
	}
	if percent {
		v /= 100
	}
	*p = Percent(v)
	return nil
}

// Type implements pflag.Value.
func (*Percent) Type() string { return "PERCENT" }
