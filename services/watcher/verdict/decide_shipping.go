package verdict

import (
	"cmp"
	"fmt"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
	"github.com/benchmark-ai/bai/services/watcher/verdict/termination"
)

// promptShipping is how long a collector normally takes after the benchmark. One that takes longer cannot ship its data.
const promptShipping = 10 * time.Second

// shippingVerdict returns v while the collector may be prompt. After that the message says why the pod still exists, and how long it may.
func shippingVerdict(s Observation, v Verdict, end, until time.Time, message string) Verdict {
	if promptUntil := end.Add(promptShipping); s.Now.Before(promptUntil) {
		v.RecheckAt = promptUntil
		return v
	}
	v.Message = fmt.Sprintf("%s; its pod is kept until %s at most, because output is owed that its collector could not ship yet",
		message, until.UTC().Format("2006-01-02 15:04:05 MST"))
	return v
}

// lostOutput returns the text that output was lost with its pods, empty if none was.
func lostOutput(s Observation) string {
	for _, p := range s.Seen.Pods {
		c, _ := objects.Container(p, cluster.ContainerCollect)
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("; output of the %s is lost: %s", objects.Describe(p),
				cmp.Or(termination.LastLine(t.Message), termination.Describe(t)))
		}
	}
	return ""
}
