package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// sendEnvironment ships the environment of the benchmark once its file exists, and again when the file has changed. A restarted collector
// ships it again.
func (c *Collector) sendEnvironment(ctx context.Context) error {
	info, err := c.volume.Root.Lstat(pod.EnvironmentFile)
	if err != nil || info.ModTime().Equal(c.environmentModTime) {
		return nil //nolint:nilerr // it is not known yet
	}
	c.environmentModTime = info.ModTime()
	var e event.Environment
	b, err := c.volume.Read(pod.EnvironmentFile, maxEnvironmentSize)
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err != nil {
		c.log.Warn("where the benchmark runs cannot be read", zap.Error(err))
		return nil
	}
	e.Machine.Node = cmp.Or(c.settings.Node, e.Machine.Node)
	out := c.outputShipper()
	err = c.bus.Publish(ctx, event.Logs{
		Header: out.eventHeader("environment", strconv.FormatBool(e.Final)), Stream: out.stream, Environment: &e, Lines: []event.Line{},
	})
	if errors.Is(err, event.ErrPoison) {
		c.log.Error("where the benchmark runs cannot be shipped", zap.Error(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("ship where the benchmark runs: %w", err)
	}
	return nil
}

// outputShipper returns the source of the benchmark's output.
func (c *Collector) outputShipper() *shipper {
	for _, s := range c.shippers {
		if s.stream.Kind == event.StreamOutput {
			return s
		}
	}
	return c.shippers[0]
}
