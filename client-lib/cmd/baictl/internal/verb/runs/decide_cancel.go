package runs

import (
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// cancelStatus describes a canceled run. For a run that has not ended and is not
// canceling yet, it confirms the request: the run's own state would sound as if the
// request had failed.
func cancelStatus(run *baiv1.Run) string {
	switch run.GetPhase() { //nolint:exhaustive // all others go on
	case baiv1.Phase_PHASE_FINISHED, baiv1.Phase_PHASE_CANCELING:
		return printer.Status(run)
	}
	return "asked to end"
}
