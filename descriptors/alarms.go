package descriptors

import (
	"slices"
	"strings"
)

// Submitter is the name, among those to notify, of whoever submitted the run.
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

// Confirmable reports whether runs can confirm the condition: it is about values.
func (c Condition) Confirmable() bool { return c != OnFailed && c != OnMissing }

// Runs returns how many runs are made at most to confirm an incident.
func (c Confirm) Runs() int {
	if c.MaxRuns != nil {
		return *c.MaxRuns
	}
	return 3 * c.Pairs
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
	read := Alarm{When: a.When, Above: a.Above, Below: a.Below, Beyond: a.Beyond, For: a.For, Notify: a.Notify, Confirm: a.Confirm}
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

// Images returns the images that the descriptor names, each once.
func (d Descriptor) Images() []string {
	images := []string{d.Env.DockerImage}
	for _, r := range d.Roles {
		images = append(images, r.DockerImage)
	}
	for _, s := range d.Steps {
		images = append(images, s.Image)
	}
	if d.Server != nil {
		images = append(images, d.Server.Env.DockerImage)
	}
	slices.Sort(images)
	return slices.DeleteFunc(slices.Compact(images), func(name string) bool { return name == "" })
}

// Metrics that the platform computes for each run, and the beginnings of those that it computes
// for each metric in Cost.Per.
const (
	CostAmount    = "cost.amount"   // in the currency of the machines' prices
	EnergyJoules  = "energy.joules" // J
	CostPer       = "cost.per."
	EnergyPer     = "energy.per."
	EnergyUnit    = "J"
	durationUnit  = "s"
	systemMetrics = "system."
)

// PlatformDirection returns the direction of a metric that the platform measures itself. Times,
// cost and energy of runs are better if they are less; other metrics have none.
func PlatformDirection(metric string) Direction {
	switch {
	case metric == "run.duration", metric == "run.queued", ofCost(metric), ofEnergy(metric):
		return Lower
	}
	return ""
}

// ofCost reports whether a metric is money.
func ofCost(metric string) bool {
	return metric == CostAmount || strings.HasPrefix(metric, CostPer)
}

// ofEnergy reports whether a metric is energy.
func ofEnergy(metric string) bool {
	return metric == EnergyJoules || strings.HasPrefix(metric, EnergyPer)
}

// PlatformUnit returns the unit of a metric that the platform measures itself, "" if it is not
// known before a run: that of money is the currency of a price.
func PlatformUnit(metric string) string {
	switch {
	case ofEnergy(metric):
		return EnergyUnit
	case ofCost(metric), PlatformDirection(metric) == "":
		return ""
	}
	return durationUnit
}

// OfPlatform reports whether the platform measures a metric itself.
func OfPlatform(metric string) bool {
	return PlatformDirection(metric) != "" || strings.HasPrefix(metric, systemMetrics)
}
