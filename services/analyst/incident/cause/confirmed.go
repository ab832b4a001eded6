package cause

import (
	"fmt"
	"slices"

	"github.com/benchmark-ai/bai/services/analyst/incident"
)

// Confirmed returns the class of a change, and the reasons for it, once runs were to confirm it.
// Of returns the class that follows from the differences, and c has the verdict of the runs; nil
// if none were made.
//
// Noise and environment are what the runs say, whatever differs. A change that the runs confirm
// comes from the editions: where nothing that is known differs, or only the nodes do, it is a
// regression. One that they do not tell is insufficient.
func Confirmed(of incident.Cause, reasons []string, c *incident.Confirmation) (incident.Cause, []string) {
	if c == nil || c.Verdict == "" {
		return of, reasons
	}
	next := confirmedClass(of, c.Verdict)
	reasons = slices.Clone(reasons)
	if n := len(reasons); next != of && n > 0 && reasons[n-1] == conclusion(of) {
		reasons = reasons[:n-1]
	}
	reasons = append(reasons, c.Why)
	if len(c.Runs) > 0 {
		reasons = append(reasons, fmt.Sprintf("both again: baictl rerun %s && baictl rerun %s", c.Old, c.New))
	}
	for _, gap := range c.Gaps {
		reasons = append(reasons, "not repeated as it was: "+gap)
	}
	return next, reasons
}

// confirmedClass returns the class that follows from a verdict.
func confirmedClass(of incident.Cause, v incident.Verdict) incident.Cause {
	switch v {
	case incident.VerdictNoise:
		return incident.CauseNoise
	case incident.VerdictEnvironment:
		return incident.CauseEnvironment
	case incident.VerdictInsufficient:
		return incident.CauseInsufficient
	case incident.VerdictConfirmed:
	}
	if of == incident.CauseEnvironment || of == incident.CauseInsufficient {
		return incident.CauseRegression
	}
	return of
}
