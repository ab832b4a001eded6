package session

import (
	"fmt"
	"strconv"
	"strings"
)

// Percent is the value of a flag that is a share: 0.02 is written as 2%, "2 %" or 0.02. It
// implements pflag.Value. Its zero value is a flag that was not given.
type Percent float64

// maxPercent is above each share that is read.
const maxPercent = 10

// Set reads a share of at least 0 and less than 1000 %. A number without a sign is less than 1,
// since 5 may mean 5 % or 500 %.
func (p *Percent) Set(text string) error {
	number, signed := strings.CutSuffix(text, "%")
	limit := 1.0
	if signed {
		number, limit = strings.TrimSpace(number)+"e-2", maxPercent
	}
	x, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || !(x >= 0): // NaN, too
		return fmt.Errorf("%.50q is no share: want 2%% or 0.02", text)
	case x >= limit && !signed:
		return fmt.Errorf("%.50q may be %.50s%% or a factor: want 2%% or 0.02", text, text)
	case x >= limit:
		return fmt.Errorf("%.50q is too large: want less than %d%%", text, 100*maxPercent)
	}
	*p = Percent(x)
	return nil
}

// String is "2%". It is empty for 0.
func (p *Percent) String() string {
	if *p == 0 {
		return ""
	}
	return p.Text() + "%"
}

// Text is the number of percents: "2".
func (p *Percent) Text() string {
	return strconv.FormatFloat(100*float64(*p), 'g', 6, 64)
}

// Type implements pflag.Value.
func (p *Percent) Type() string { return "percent" }
