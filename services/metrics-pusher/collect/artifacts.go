package collect

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/upload"
)

// sendNotices publishes a status for each notice of the entrypoint about missing results and artifacts. Errors are logged only.
func (c *Collector) sendNotices(ctx context.Context) {
	exit, _ := c.exitStatus(pod.ExitFile)
	c.publishNotices(ctx, "parsers", exit.Notices)
}

// publishNotices publishes a status for each notice about a subject.
func (c *Collector) publishNotices(ctx context.Context, subject string, notices []string) {
	for _, n := range notices {
		h := c.settings.Header.Cause("status/"+subject, fmt.Sprintf("%s %d %s", c.settings.Role, c.settings.Index, n))
		err := c.bus.Publish(ctx, event.Status{Header: h, Phase: event.PhaseRunning, Message: n})
		if err != nil {
			c.log.Warn("the user is not told of "+subject, zap.Error(err))
			return
		}
	}
}

// sendArtifacts sends the artifacts of the benchmark to the gateway, and publishes a status for each file that is not stored. Errors are
// logged only: the measurements matter more. It takes at most artifactsTime of Settings.Drain, so that the ends of the streams can be
// published after it.
func (c *Collector) sendArtifacts(ctx context.Context) {
	if len(c.settings.Artifacts) == 0 {
		return
	}
	sendCtx, cancel := context.WithTimeout(ctx, artifactsTime(c.settings.Drain))
	defer cancel()
	u := upload.Uploader{Settings: c.settings.Collect, VolumesDir: c.settings.VolumesDir, Volume: c.volume, Log: c.log}
	c.publishNotices(ctx, "artifacts", u.Upload(sendCtx))
}
