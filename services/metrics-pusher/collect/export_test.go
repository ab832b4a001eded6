package collect

import (
	"time"

	"go.uber.org/zap"
)

// Carry carries from a FIFO into a file of a volume until end is called, which
// waits for a full disk no longer than patience and returns what was lost, as
// Dropped and Reason of an end.
func Carry(s Settings, patience time.Duration) (end func() (lost int64, reason string)) {
	l := &losses{}
	p := openPipe(s, l, zap.NewNop())
	p.patience = patience
	return func() (int64, string) {
		p.close()
		var c count
		l.take(c.drop)
		return c.Dropped, c.Reason
	}
}
