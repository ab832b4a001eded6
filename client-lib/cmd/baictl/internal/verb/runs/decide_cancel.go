package runs

import (
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// cancelStatus says what became of the wish that a run end. One that neither has ended
// nor is canceling yet was asked to: its own state would sound as if nothing was done.
func cancelStatus(run *baiv1.Run) string {
	switch run.GetPhase() { //nolint:exhaustive // all others go on
	case baiv1.Phase_PHASE_FINISHED, baiv1.Phase_PHASE_CANCELING:
		return printer.Status(run)
	}
	return "asked to end"
}
