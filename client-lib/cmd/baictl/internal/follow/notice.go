package follow

import (
	"errors"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
)

// reconnectDelay is how long the platform answers before the user is told: one that
// comes and goes is not there.
const reconnectDelay = 500 * time.Millisecond

// Notices tell the user once that the connection is lost, and once that it is
// back. They may be used from any goroutine.
type Notices struct {
	Screen *screen.Screen
	Server string // the platform's address

	mu             sync.Mutex
	lost           bool        // the user was told so
	reconnectTimer *time.Timer // tells that it is back; nil: it is not
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
