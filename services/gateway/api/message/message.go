// Package message writes the values that messages of several services of the API have.
package message

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/event"
)

// Phase returns a phase. The enums of the API have the words of events, in upper case and
// with a prefix. A word that the API lacks becomes the unspecified value.
func Phase(p event.Phase) baiv1.Phase {
	return baiv1.Phase(baiv1.Phase_value["PHASE_"+strings.ToUpper(string(p))])
}

// Outcome returns an outcome, or the unspecified one.
func Outcome(o event.Outcome) baiv1.Outcome {
	return baiv1.Outcome(baiv1.Outcome_value["OUTCOME_"+strings.ToUpper(string(o))])
}

// Class returns a class of failures, or the unspecified one.
func Class(c event.Class) baiv1.FailureClass {
	return baiv1.FailureClass(baiv1.FailureClass_value["FAILURE_CLASS_"+strings.ToUpper(string(c))])
}

// Time returns t, or nil if t is zero.
func Time(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// TimeAt is Time for a time that may be missing.
func TimeAt(t *time.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return Time(*t)
}

// Int32 returns a count, which is never negative.
func Int32(n int) int32 { return int32(min(max(n, 0), 1<<31-1)) } //nolint:gosec // it is in range
