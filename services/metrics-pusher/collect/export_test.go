package collect

import (
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Carry carries from a FIFO into a file of a volume until end is called, which
// waits for a full disk no longer than patience and returns what was lost, as
// Dropped and Reason of an end.
func Carry(s Settings, patience time.Duration) (end func() (lost int64, reason string)) {
	return carry(s, patience, func(v, own *volume, l *losses) *pipe { return openPipe(v, own, s, l, nil, zap.NewNop()) })
}

// CarryInto is Carry, into another file.
func CarryInto(s Settings, patience time.Duration, file *os.File) (end func() (lost int64, reason string)) {
	return carry(s, patience, func(v, _ *volume, l *losses) *pipe {
		p := &pipe{lost: l, log: zap.NewNop(), stop: make(chan struct{}), spool: file}
		var err error
		if p.fifo, err = v.fifo(pod.FIFO); err == nil {
			p.done.Go(p.carry)
		}
		return p
	})
}

func carry(s Settings, patience time.Duration, open func(v, own *volume, l *losses) *pipe) (end func() (lost int64, reason string)) {
	l := &losses{}
	c := Collector{settings: s, series: &series{}}
	if err := c.openVolumes(); err != nil {
		return func() (int64, string) { return -1, err.Error() }
	}
	p := open(c.volume, c.own, l)
	p.patience = patience
	return func() (int64, string) {
		p.close()
		c.closeVolumes()
		var lost count
		l.take(lost.drop)
		return lost.Dropped, lost.Reason
	}
}
