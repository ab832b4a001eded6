package verdict

import (
	"fmt"
	"strconv"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/watcher/verdict/objects"
)

// peersUnknown: all pods wait until they know each other's addresses.
func peersUnknown(s Observation) (Verdict, bool) {
	since, waits := peersWait(s)
	if !waits {
		return Verdict{}, false
	}
	known, all := 0, 0
	for _, p := range s.Seen.Pods {
		n, _ := strconv.Atoi(p.Annotations[cluster.AnnotationPods])
		if all = max(all, n); len(cluster.PodAddresses(p)) > 0 {
			known++
		}
	}
	class, message := event.ClassInfra, fmt.Sprintf("waiting for the addresses of %d of its %d pods", all-known, all)
	if known >= all {
		class, message = event.ClassPlatform, fmt.Sprintf("waiting until its %d pods know each other's addresses", all)
	}
	v := pendingVerdict(s, since, class, event.PendingTooLong, message)
	if v.Phase == event.PhaseFinished {
		return v, true
	}
	return debounced(s, v, 4*debounce), true // it is short as a rule
}

// peersWait returns since when all pods wait for addresses, but for those that have them. It is false if no pod waits, or if one is being
// prepared, for which there are other rules.
func peersWait(s Observation) (since time.Time, waits bool) {
	for _, p := range s.Seen.Pods {
		if p.Annotations[cluster.AnnotationPods] == "" {
			continue
		}
		c, _ := objects.Container(p, cluster.ContainerHosts)
		switch r := c.State.Running; {
		case r != nil:
			waits = true
			if r.StartedAt.After(since) {
				since = r.StartedAt.Time
			}
		case c.State.Terminated == nil:
			return time.Time{}, false
		}
	}
	return since, waits
}
