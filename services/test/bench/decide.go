package main

import (
	"fmt"
	"strings"
)

// result is one measured number. Its JSON is an entry of bench.json.
type result struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"` // 0 where it was not measured
	Unit     string  `json:"unit"`
	Bar      string  `json:"bar"` // empty where the number is only reported
	Measured bool    `json:"measured"`
	Reached  bool    `json:"reached"` // false where there is no bar, or it was not measured
	Against  string  `json:"against"` // the reference and its number; or why it was not measured
}

// atMost and least make a result with a bar.
func atMost(name string, value float64, unit string, bar float64, against string) result {
	return result{name, value, unit, fmt.Sprintf("<= %g", bar), true, value <= bar, against}
}

func atLeast(name string, value float64, unit string, bar float64, against string) result {
	return result{name, value, unit, fmt.Sprintf(">= %g", bar), true, value >= bar, against}
}

// reported makes a result without a bar.
func reported(name string, value float64, unit, against string) result {
	return result{Name: name, Value: value, Unit: unit, Measured: true, Against: against}
}

// unmeasured is a bar for which this machine lacks something.
func unmeasured(name, unit string, bar float64, why string) result {
	return result{Name: name, Unit: unit, Bar: fmt.Sprintf(">= %g", bar), Against: why}
}

// unmeasuredAtMost is unmeasured for a bar that is a limit.
func unmeasuredAtMost(name, unit string, bar float64, why string) result {
	r := unmeasured(name, unit, bar, why)
	r.Bar = fmt.Sprintf("<= %g", bar)
	return r
}

// number is the value, for people.
func (r result) number() string {
	if !r.Measured {
		return "-"
	}
	return fmt.Sprintf("%.4g", r.Value)
}

// state says how the result stands to its bar.
func (r result) state() string {
	switch {
	case !r.Measured:
		return "not measured"
	case r.Bar == "":
		return "-"
	case r.Reached:
		return "yes"
	}
	return "NO"
}

// missed names the bars that were measured and not reached, as an error.
func missed(all []result) error {
	var names []string
	for _, r := range all {
		if r.Measured && r.Bar != "" && !r.Reached {
			names = append(names, fmt.Sprintf("%s is %.4g %s, want %s", r.Name, r.Value, r.Unit, r.Bar))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("not reached: %s", strings.Join(names, "; "))
}
