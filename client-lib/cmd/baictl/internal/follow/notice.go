package follow

import (
	"errors"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
)

// reconnectDelay is how long the platform must answer before the user is notified, so
// that a flapping connection is not reported as restored.
const reconnectDelay = 500 * time.Millisecond

// Notices notify the user once of a lost connection, and once of a restored one. They may
// be used from any goroutine.
type Notices struct {
	Screen *screen.Screen
	Server string // the platform's address

	mu             sync.Mutex
	lost           bool        // the loss was reported
	reconnectTimer *time.Timer // reports the restored connection; nil if none is pending
}

// Lost is called after each failure that will be repeated.
func (n *Notices) Lost(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reconnectTimer != nil {
		n.reconnectTimer.Stop()
		n.reconnectTimer = nil
	}
	if n.lost {
		return
	}
	n.lost = true
	why := err.Error()
	if e, ok := errors.AsType[*bai.UnavailableError](err); ok {
		why = e.Message
	}
	n.Screen.Note("baictl: lost the platform at " + n.Server + ", trying to reach it again: " + printer.Clean(why))
}

// Found is called when the platform answers again.
func (n *Notices) Found() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost && n.reconnectTimer == nil {
		n.reconnectTimer = time.AfterFunc(reconnectDelay, n.noteReconnected)
	}
}

func (n *Notices) noteReconnected() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reconnectTimer == nil {
		return // lost again just now
	}
	n.lost, n.reconnectTimer = false, nil
	n.Screen.Note("baictl: reached the platform again")
}
