package exitcode

import (
	"errors"
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// The exit codes.
const (
	OK       = 0
	Failed   = 1
	Usage    = 2
	Platform = 3
	Time     = 4
	Canceled = 5
	Changed  = 6 // a regression stands, or results got worse
)

// Code is the exit code after err.
func Code(err error) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*OutcomeError](err); ok {
		return outcomeCode(e.Outcome, e.Class)
	}
	if e, ok := errors.AsType[*SetError](err); ok {
		return outcomeCode(e.Outcome, 0)
	}
	_, parse := errors.AsType[*ParseError](err)
	if _, refused := errors.AsType[*ReceiverError](err); parse || refused {
		return Failed
	}
	_, changed := errors.AsType[*RegressionError](err)
	if _, worse := errors.AsType[*WorseError](err); changed || worse {
		return Changed
	}
	_, timedOut := errors.AsType[*TimeoutError](err)
	switch {
	case timedOut || errors.Is(err, ErrDetached):
		return Time
	case IsUserError(err):
		return Usage
	default:
		return Platform
	}
}

// IsUserError says whether the user has to type or write something else.
func IsUserError(err error) bool {
	_, usage := errors.AsType[*UsageError](err)
	_, faults := errors.AsType[*FaultsError](err)
	_, invalid := errors.AsType[*bai.InvalidError](err)
	_, absent := errors.AsType[*bai.NotFoundError](err)
	_, exists := errors.AsType[*bai.ExistsError](err)
	missing, lacks := errors.AsType[*MissingError](err)
	return usage || faults || invalid || absent || exists || lacks && !missing.Platform
}

func outcomeCode(outcome baiv1.Outcome, class baiv1.FailureClass) int {
	switch outcome {
	case baiv1.Outcome_OUTCOME_SUCCEEDED:
		return OK
	case baiv1.Outcome_OUTCOME_CANCELED:
		return Canceled
	case baiv1.Outcome_OUTCOME_FAILED, baiv1.Outcome_OUTCOME_UNSPECIFIED:
	}
	switch class {
	case baiv1.FailureClass_FAILURE_CLASS_PLATFORM:
		return Platform
	case baiv1.FailureClass_FAILURE_CLASS_TIMEOUT:
		return Time
	case baiv1.FailureClass_FAILURE_CLASS_USER, baiv1.FailureClass_FAILURE_CLASS_INFRA, baiv1.FailureClass_FAILURE_CLASS_UNSPECIFIED:
	}
	return Failed
}

// FromChange is the error after a run's last change, nil if it succeeded.
func FromChange(run string, last *baiv1.Change) error {
	if outcomeCode(last.GetOutcome(), last.GetFailureClass()) == OK {
		return nil
	}
	return &OutcomeError{
		ID: run, Outcome: last.GetOutcome(), Class: last.GetFailureClass(),
		Reason: last.GetReason(), Message: last.GetMessage(),
	}
}

// FromRun is the error after a run that has ended, nil if it succeeded.
func FromRun(run *baiv1.Run) error {
	return FromChange(run.GetId(), &baiv1.Change{
		Outcome: run.GetOutcome(), FailureClass: run.GetFailureClass(), Reason: run.GetReason(), Message: run.GetMessage(),
	})
}

// FromSet is the error after a set that has finished, nil if all of its runs succeeded.
func FromSet(set *baiv1.Set) error {
	if outcomeCode(set.GetOutcome(), 0) == OK {
		return nil
	}
	return &SetError{ID: set.GetId(), Outcome: set.GetOutcome(), Counts: printer.SetCounts(set), Message: set.GetMessage()}
}

// Line is an error on one line, with the remedy.
func Line(err error) string {
	text := printer.Clean(strings.TrimSpace(err.Error()))
	if r := remedy(err); r != "" {
		text += " (" + printer.Clean(r) + ")"
	}
	return text
}

// remedy is the remedy for an error; empty without one.
func remedy(err error) string {
	if e, ok := errors.AsType[*DetachedError](err); ok {
		return resumeHint(e)
	}
	if e, ok := errors.AsType[*UnreadError](err); ok {
		return fmt.Sprintf("look: baictl %s get %s", e.Noun, e.ID)
	}
	if e, ok := errors.AsType[*UsageError](err); ok && e.Help != "" {
		return "see " + e.Help
	}
	if e, ok := errors.AsType[*OutcomeError](err); ok && e.Outcome != baiv1.Outcome_OUTCOME_CANCELED {
		return fmt.Sprintf("see baictl %s %s", diagnosticVerb(e.Reason), e.ID)
	}
	if e, ok := errors.AsType[*SetError](err); ok {
		return "see baictl set get " + e.ID
	}
	if e, ok := errors.AsType[*DataError](err); ok {
		return "look again: baictl get " + e.ID
	}
	if e, ok := errors.AsType[*bai.NotFoundError](err); ok {
		return map[string]string{
			"": "see baictl list", "descriptor": "see baictl descriptors list", "data": "see baictl data list",
			"schedule": "see baictl schedule list", "set": "see baictl set list", "incident": "see baictl alarms --all",
		}[e.What]
	}
	if e, ok := errors.AsType[*bai.InvalidError](err); ok && len(e.Faults) == 1 {
		return e.Faults[0].GetRemedy()
	}
	if e, ok := errors.AsType[*bai.ExistsError](err); ok && e.RunID != "" {
		return "it belongs to run " + e.RunID
	}
	if e, ok := errors.AsType[*bai.UnavailableError](err); ok {
		return unavailableHint(e)
	}
	return ""
}

// diagnosticVerb is the verb that says more about a failed run: logs where the benchmark's
// own output does, why where there may be none.
func diagnosticVerb(reason string) string {
	switch reason {
	case "NonZeroExit", "NoResults", "StepFailed", "Signaled", "OOMKilled", "EndedEarly", "DeadlineExceeded":
		return "logs"
	}
	return "why"
}

func resumeHint(e *DetachedError) string {
	switch {
	case e.Resume != "" && e.ID == "":
		return "begin again: " + e.Resume
	case e.Resume != "":
		return fmt.Sprintf("come back: %s, end it: baictl cancel %s", e.Resume, e.ID)
	case e.Set:
		return fmt.Sprintf("come back: baictl set watch %s, end it: baictl set cancel %s", e.ID, e.ID)
	case e.Lines:
		return "come back: baictl logs -f " + e.ID
	case e.Others:
		return "see baictl list"
	}
	return fmt.Sprintf("come back: baictl watch %s, end it: baictl cancel %s", e.ID, e.ID)
}

func unavailableHint(e *bai.UnavailableError) string {
	again := ""
	if e.Key != "" { // the answer may be lost, and not the run
		again = "submit again with --idempotency-key " + e.Key
	}
	switch {
	case e.RunID != "":
		return fmt.Sprintf("run %s may still be run: submit again with --idempotency-key %s, or look: baictl get %s", e.RunID, e.Key,
			e.RunID)
	case e.RetryAfter > 0:
		return "" // the message says when
	case e.Away && again != "":
		return "is `bai standalone` running? else give --server or BAI_SERVER, and " + again
	case e.Away:
		return "is `bai standalone` running? else give --server or BAI_SERVER"
	case again != "":
		return "the run may exist: " + again
	default:
		return "try again"
	}
}
