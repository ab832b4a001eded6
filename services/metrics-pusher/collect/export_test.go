package collect

import (
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/spool"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
)

// ForwardFIFO copies from the FIFO of a volume into the spool file until end is called. End waits for a full disk at most drainTimeout, and
// returns how many lines were lost and the reason.
func ForwardFIFO(s Settings, drainTimeout time.Duration) (end func() (lost int64, reason string)) {
	return forwardFIFO(s, drainTimeout, func(v, state *volume.Volume, l *spool.Losses) *pipe {
		return openPipe(v, state, s, l, nil, zap.NewNop())
	})
}

// ForwardFIFOInto is ForwardFIFO with another file.
func ForwardFIFOInto(s Settings, drainTimeout time.Duration, file *os.File) (end func() (lost int64, reason string)) {
	return forwardFIFO(s, drainTimeout, func(v, _ *volume.Volume, l *spool.Losses) *pipe {
		p := &pipe{losses: l, log: zap.NewNop(), stop: make(chan struct{}), spool: file}
		var err error
		if p.fifo, err = v.FIFO(pod.FIFO); err == nil {
			p.done.Go(p.forward)
		}
		return p
	})
}

func forwardFIFO(s Settings, drainTimeout time.Duration, open func(v, own *volume.Volume, l *spool.Losses) *pipe) (end func() (lost int64, reason string)) {
	l := &spool.Losses{}
	c := Collector{settings: s, series: spool.NewSeriesSet(0, zap.NewNop())}
	if err := c.openVolumes(); err != nil {
		return func() (int64, string) { return -1, err.Error() }
	}
	p := open(c.volume, c.state, l)
	p.drainTimeout = drainTimeout
	return func() (int64, string) {
		p.close()
		c.closeVolumes()
		var lost shipCount
		l.Take(lost.drop)
		return lost.Dropped, lost.Reason
	}
}
