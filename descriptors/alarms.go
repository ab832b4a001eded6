package descriptors

import "strings"

// Submitter is the name in Alarm.Notify of whoever submitted the run.
const Submitter = "submitter"

// A Condition is when an alarm opens an incident.
type Condition string

// The conditions.
const (
	OnRegression Condition = "regression"
	OnChange     Condition = "change"
	OnAbove      Condition = "above"
	OnBelow      Condition = "below"
	OnBeyond     Condition = "beyond"
	OnFailed     Condition = "failed"
	OnMissing    Condition = "missing"
)

// Limit reports whether the condition is a limit: above, below or beyond.
func (c Condition) Limit() bool { return c == OnAbove || c == OnBelow || c == OnBeyond }

// Directed reports whether the condition needs a metric that has a direction.
func (c Condition) Directed() bool { return c == OnRegression || c == OnBeyond }

// A Statistic is what of a run's samples is its value.
type Statistic string

// Median is the statistic of an alarm that names none.
const Median Statistic = "median"

// Limit returns the limit of above, below or beyond, and 0 for other conditions.
func (a Alarm) Limit() float64 {
	switch {
	case a.When == OnAbove && a.Above != nil:
		return *a.Above
	case a.When == OnBelow && a.Below != nil:
		return *a.Below
	case a.When == OnBeyond:
		return a.Beyond
	}
	return 0
}

// Consecutive returns how many consecutive runs open an incident.
func (a Alarm) Consecutive() int {
	switch {
	case a.Unread("for"):
		return 1
	case a.For != nil:
		return *a.For
	case a.When.Limit():
		return 2
	}
	return 1
}

// Read returns the alarm without the values of keys that it does not read.
func (a Alarm) Read() Alarm {
	read := Alarm{When: a.When, Above: a.Above, Below: a.Below, Beyond: a.Beyond, For: a.For, Notify: a.Notify}
	for key, set := range map[string]func(){
		"metric":     func() { read.Metric = a.Metric },
		"min_change": func() { read.MinChange = a.MinChange },
		"within":     func() { read.Within = a.Within },
		"unit":       func() { read.Unit = a.Unit },
		"baseline":   func() { read.Baseline = a.Baseline },
		"statistic":  func() { read.Statistic = a.Statistic },
	} {
		if !a.Unread(key) {
			set()
		}
	}
	return read
}

// Unread reports whether an alarm with this condition does not read a key.
func (a Alarm) Unread(key string) bool {
	switch key {
	case "metric":
		return a.When == OnFailed
	case "min_change":
		return a.When != OnRegression && a.When != OnChange
	case "for":
		return !a.When.Limit() && a.When != OnFailed
	case "within":
		return a.When != OnMissing
	case "unit":
		return a.When != OnAbove && a.When != OnBelow
	case "baseline":
		return a.When != OnBeyond
	case "statistic":
		return a.When == OnFailed || a.When == OnMissing
	}
	return false
}

// PlatformDirection returns the direction of a metric that the platform measures itself. The
// times of runs are better if they are shorter; other metrics have none.
func PlatformDirection(metric string) Direction {
	if metric == "run.duration" || metric == "run.queued" {
		return Lower
	}
	return ""
}

// OfPlatform reports whether the platform measures a metric itself.
func OfPlatform(metric string) bool {
	return PlatformDirection(metric) != "" || strings.HasPrefix(metric, "system.")
}
