package analysis

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An operand names the runs of one side of a comparison. One of its fields is set.
type operand struct {
	ref      string    // of a run or a set: its ID or name
	baseline string    // name
	tasks    *taskRuns // runs of a task in a range of time
}

// taskRuns selects runs of a task by the time of their submission.
type taskRuns struct {
	task         string
	since, until time.Time // until is the zero time for no end
}

// Beginnings of operands: that of a baseline, and that of all runs of a task.
const (
	baselinePrefix = "baseline:"
	taskPrefix     = "task:"
)

// maxOperand is the maximum number of bytes of an operand.
const maxOperand = 512

// parseOperand reads an operand of the request's field with that name.
func parseOperand(field, text string, now time.Time) (operand, error) {
	if text == "" || len(text) > maxOperand {
		return operand{}, &OperandError{Field: field, Message: fmt.Sprintf("has %d bytes", len(text)), Remedy: operandRemedy}
	}
	if name, ok := strings.CutPrefix(text, baselinePrefix); ok {
		return operand{baseline: name}, checkName(field, name)
	}
	if task, ok := strings.CutPrefix(text, taskPrefix); ok && task != "" && !strings.Contains(task, "@") {
		return operand{tasks: &taskRuns{task: task}}, nil
	}
	text = strings.TrimPrefix(text, taskPrefix)
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return operand{ref: text}, nil
	}
	runs, err := parseRange(text[at+1:], now)
	if err != nil {
		return operand{}, &OperandError{Field: field, Message: fmt.Sprintf("%.100q: %v", text, err), Remedy: rangeRemedy}
	}
	if runs.task = text[:at]; runs.task == "" {
		return operand{}, &OperandError{Field: field, Message: fmt.Sprintf("%.100q has no task before the @", text), Remedy: rangeRemedy}
	}
	return operand{tasks: &runs}, nil
}

const (
	operandRemedy = "give a run, a set, baseline:NAME, task:TASK or TASK@RANGE"
	rangeRemedy   = "write TASK@-14d, or TASK@2026-03-01..2026-03-08"
)

// parseRange reads FROM or FROM..TO.
func parseRange(text string, now time.Time) (taskRuns, error) {
	from, to, both := strings.Cut(text, "..")
	var r taskRuns
	var err error
	if r.since, err = parseTime(from, now); err != nil {
		return taskRuns{}, err
	}
	if !both {
		return r, nil
	}
	if r.until, err = parseTime(to, now); err != nil {
		return taskRuns{}, err
	}
	if !r.since.Before(r.until) {
		return taskRuns{}, fmt.Errorf("%s is not before %s", from, to)
	}
	return r, nil
}

// parseTime reads a date, a time of RFC 3339, or a time before now such as -14d or -36h.
func parseTime(text string, now time.Time) (time.Time, error) {
	if ago, ok := strings.CutPrefix(text, "-"); ok {
		d, err := parseAge(ago)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q is not a time before now", text)
		}
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a date nor a time", text)
}

// parseAge reads a duration of whole days, such as 14d, or one that Go reads. It is not
// negative.
func parseAge(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)     // 179 years
		return time.Duration(n) * 24 * time.Hour, err //nolint:gosec // it has 16 bits
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%s is negative", text)
	}
	return d, err
}

// checkName returns an error if a text is not the name of a baseline.
func checkName(field, name string) error {
	valid := name != "" && len(name) <= 63
	for _, c := range name {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.')
	}
	if !valid {
		return &OperandError{
			Field: field, Message: fmt.Sprintf("%.100q is not the name of a baseline", name),
			Remedy: `take at most 63 of a-z, 0-9, "-" and "."`,
		}
	}
	return nil
}
