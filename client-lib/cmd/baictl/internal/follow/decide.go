package follow

import (
	"strings"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// window is how far back the rate of a transfer looks.
const window = 5 * time.Second

// Describe describes a change, without its phase.
func Describe(c *baiv1.Change) string {
	var parts []string
	if outcome := printer.Word(c.GetOutcome()); outcome != "" {
		parts = append(parts, outcome)
	}
	if c.GetAttempt() > 1 {
		parts = append(parts, "attempt "+printer.Number(float64(c.GetAttempt())))
	}
	if why := exitcode.FailureText(c.GetReason(), c.GetFailureClass(), c.GetMessage()); why != "" {
		parts = append(parts, why)
	}
	if p := printer.Progress(c.GetProgress()); p != "" && (c.GetMessage() == "" || c.GetProgress().GetUnit() == "bytes") {
		parts = append(parts, p) // the message counts everything else itself
	}
	return printer.Clean(strings.Join(parts, ", "))
}

// isNotable reports whether a change gets a lasting line: all but progress with unchanged
// totals.
func isNotable(last, now *baiv1.Change) bool {
	return last == nil || last.GetPhase() != now.GetPhase() || last.GetAttempt() != now.GetAttempt() ||
		last.GetReason() != now.GetReason() || last.GetMessage() != now.GetMessage() && now.GetProgress() == nil
}

// Style is how a status is shown.
func Style(status string) screen.Style {
	switch status {
	case "succeeded":
		return screen.Good
	case "failed":
		return screen.Bad
	case "canceled", "canceling":
		return screen.Muted
	case "running":
		return screen.Active
	default:
		return screen.Plain
	}
}

// A meter measures the rate of a transfer.
type meter struct{ points []point }

type point struct {
	at   time.Time
	done int64
}

// observe takes a change into account. Anything but bytes, and a beginning from
// anew, resets the meter.
func (m *meter) observe(c *baiv1.Change) {
	p := c.GetProgress()
	if p.GetUnit() != "bytes" {
		m.points = nil
		return
	}
	now := point{c.GetTime().AsTime(), p.GetDone()}
	if n := len(m.points); n > 0 && now.done < m.points[n-1].done {
		m.points = nil
	}
	m.points = append(m.points, now)
	for len(m.points) > 2 && now.at.Sub(m.points[1].at) >= window {
		m.points = m.points[1:]
	}
}

// rate is in bytes a second; 0 where it is not known.
func (m *meter) rate() int64 {
	if len(m.points) < 2 {
		return 0
	}
	first, last := m.points[0], m.points[len(m.points)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return int64(float64(last.done-first.done) / took)
}

// liveLine is the live line: phase, time since the submission, and counts.
func liveLine(c *baiv1.Change, elapsed time.Duration, rate int64) string {
	parts := []string{printer.Word(c.GetPhase()), printer.Duration(elapsed.Truncate(time.Second))}
	if p := c.GetProgress(); p != nil {
		parts = append(parts, printer.Progress(p))
		if p.GetTotal() > 0 {
			parts = append(parts, printer.Number(float64(100*p.GetDone()/p.GetTotal()))+"%")
		}
		if rate > 0 {
			parts = append(parts, printer.Bytes(rate)+"/s")
		}
	}
	if c.GetMessage() != "" {
		parts = append(parts, c.GetMessage())
	}
	return strings.Join(parts, "  ")
}
