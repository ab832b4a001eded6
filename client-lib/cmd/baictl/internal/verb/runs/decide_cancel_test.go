package runs

import (
	"testing"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func TestARunThatGoesOnWasAskedToEnd(t *testing.T) {
	for want, run := range map[string]*baiv1.Run{
		"asked to end": {Phase: baiv1.Phase_PHASE_RUNNING},
		"canceling":    {Phase: baiv1.Phase_PHASE_CANCELING},
		"succeeded":    {Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED},
	} {
		if got := cancelStatus(run); got != want {
			t.Errorf("%v: %q, want %q", run, got, want)
		}
	}
}
