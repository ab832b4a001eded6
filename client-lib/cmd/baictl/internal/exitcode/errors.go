// Package exitcode maps the end of a command line to an exit code, a message and a
// remedy.
package exitcode

import (
	"errors"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// ErrDetached ends the following of a run that the user interrupted.
var ErrDetached = errors.New("interrupted")

// A TimeoutError says that --timeout is over.
type TimeoutError struct{ After time.Duration }

// Error says after how long.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("timed out after %s", printer.Duration(e.After))
}

// A UsageError is a mistake in the command line.
type UsageError struct {
	Message string
	Help    string // the command that says how it is typed right
}

// Error is the message.
func (e *UsageError) Error() string { return e.Message }

// A ParseError says that a parser found no whole result of a tool. What it found was printed.
type ParseError struct{ File, Kind, State, Reason string }

// Error says the state, and why.
func (e *ParseError) Error() string {
	return fmt.Sprintf("%s (%s) is %s: %s", e.File, e.Kind, e.State, e.Reason)
}

// An UnreadError says that a set or a schedule was made and could not be read after that.
type UnreadError struct {
	Noun string // set or schedule
	ID   string
	Err  error // why
}

// Error says which, and why.
func (e *UnreadError) Error() string {
	return fmt.Sprintf("%s %s was made, but cannot be read: %v", e.Noun, e.ID, e.Err)
}

// Unwrap returns the reason.
func (e *UnreadError) Unwrap() error { return e.Err }

// A RegressionError says that series of a file or a task have changed for the worse. It does
// not list the changes: they were printed.
type RegressionError struct {
	Source                  string // file or task
	Regressions, Series, Of int
}

// Error says how many regressions there are, and in how many series.
func (e *RegressionError) Error() string {
	return fmt.Sprintf("%s has %s in %d of %d series", e.Source, printer.Plural(e.Regressions, "regression"), e.Series, e.Of)
}

// A WorseError says that results got worse. They were printed.
type WorseError struct {
	Old, New  string
	Worse, Of int
}

// Error says how many series got worse.
func (e *WorseError) Error() string {
	return fmt.Sprintf("%s is worse than %s in %d of %d series", printer.Name(e.New), printer.Name(e.Old), e.Worse, e.Of)
}

// A ReceiverError says that a receiver did not take a test.
type ReceiverError struct{ Receiver, Answer string }

// Error says what the receiver answered.
func (e *ReceiverError) Error() string {
	return fmt.Sprintf("receiver %s did not take the test: %s", e.Receiver, e.Answer)
}

// A FaultsError says that descriptors are invalid. It does not say why: the
// faults were printed.
type FaultsError struct{ Faults, Files, Of int }

// Error says how many faults there are, and in how many files.
func (e *FaultsError) Error() string {
	if e.Of == 1 {
		return printer.Plural(e.Faults, "fault")
	}
	return fmt.Sprintf("%s in %d of %d files", printer.Plural(e.Faults, "fault"), e.Files, e.Of)
}

// An OutcomeError says that a run did not succeed.
type OutcomeError struct {
	ID      string
	Outcome baiv1.Outcome
	Class   baiv1.FailureClass
	Reason  string
	Message string
}

// Error says how the run ended, and why.
func (e *OutcomeError) Error() string {
	if e.Outcome == baiv1.Outcome_OUTCOME_CANCELED {
		return fmt.Sprintf("run %s was canceled", e.ID)
	}
	return fmt.Sprintf("run %s failed: %s", e.ID, FailureText(e.Reason, e.Class, e.Message))
}

// A SetError says that a set did not succeed.
type SetError struct {
	ID      string
	Outcome baiv1.Outcome
	Counts  string // of its runs
	Message string // why the set stopped; may be empty
}

// Error says how the set ended, and why.
func (e *SetError) Error() string {
	text := fmt.Sprintf("set %s %s: %s", e.ID, printer.Word(e.Outcome), e.Counts)
	if e.Outcome == baiv1.Outcome_OUTCOME_CANCELED {
		text = fmt.Sprintf("set %s was canceled: %s", e.ID, e.Counts)
	}
	if e.Message != "" {
		text += " (" + e.Message + ")"
	}
	return text
}

// A MissingError is a run whose needs are not met. It does not list them: the printed
// checks do.
type MissingError struct {
	File             string
	Faults, Warnings int
	Platform         bool // all of it is the platform's to mend
}

// Error says how much is missing.
func (e *MissingError) Error() string {
	return fmt.Sprintf("a run of %q would fail: %s", e.File, printer.Plural(e.Faults, "fault"))
}

// A DataError is a run whose data are incomplete.
type DataError struct {
	ID           string
	After        time.Duration
	Completeness *baiv1.Completeness
}

// Error lists the stored and the missing data.
func (e *DataError) Error() string {
	return fmt.Sprintf("the data of run %s are not complete after %s: %s", e.ID, printer.Duration(e.After),
		CompletenessText(e.Completeness))
}

// A DetachedError is a command that stopped following a run that continues.
type DetachedError struct {
	ID    string
	Cause error
	Lines bool // it was the run's log that was waited for

	Others bool // there are other runs, which may go on too
	Set    bool // it is a set

	Resume string // the command that goes on with the run and those after it; empty for that of the run alone
}

// Error is why, and which run.
func (e *DetachedError) Error() string {
	if e.Resume != "" && e.ID == "" {
		return fmt.Sprintf("%s: no run was submitted", e.Cause)
	}
	if e.Lines {
		return fmt.Sprintf("%s: reading the log of run %s", e.Cause, e.ID)
	}
	if e.Set {
		return fmt.Sprintf("%s: set %s goes on", e.Cause, e.ID)
	}
	if e.Others {
		return fmt.Sprintf("%s: run %s and others go on", e.Cause, e.ID)
	}
	return fmt.Sprintf("%s: run %s goes on", e.Cause, e.ID)
}

// Unwrap is why.
func (e *DetachedError) Unwrap() error { return e.Cause }
