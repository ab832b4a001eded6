package runs

import (
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// long is how long a run without a deadline goes on before that is worth a hint.
const long = 24 * time.Hour

// longRunHint is a hint about a run that goes on for long and that nothing ends.
func longRunHint(run *baiv1.Run, now time.Time) string {
	began := run.GetStartTime()
	if run.GetPhase() != baiv1.Phase_PHASE_RUNNING || began == nil || now.Sub(began.AsTime()) < long || run.GetDescriptorToml() == "" {
		return ""
	}
	d, _ := parser.Parse(run.GetDescriptorFile(), []byte(run.GetDescriptorToml()))
	if d == nil || d.Limits.Deadline > 0 {
		return ""
	}
	return fmt.Sprintf("running for %s without limits.deadline; baictl cancel %s ends it", printer.Duration(now.Sub(began.AsTime())),
		run.GetId())
}
