package follow

import (
	"errors"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
)

// steady is how long the platform answers before the user is told: one that
// comes and goes is not there.
const steady = 500 * time.Millisecond

// Notices tell the user once that the connection is lost, and once that it is
// back. They may be used from any goroutine.
type Notices struct {
	Screen *screen.Screen
	Server string // the platform's address

	mu   sync.Mutex
	away bool        // the user was told so
	back *time.Timer // tells that it is back; nil: it is not
}

// Lost is called after each failure that will be repeated.
func (n *Notices) Lost(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.back != nil {
		n.back.Stop()
		n.back = nil
	}
	if n.away {
		return
	}
	n.away = true
	why := err.Error()
	if e, ok := errors.AsType[*bai.UnavailableError](err); ok {
		why = e.Message
	}
	n.Screen.Note("baictl: lost the platform at " + n.Server + ", trying to reach it again: " + show.Clean(why))
}

// Found is called when the platform answers again.
func (n *Notices) Found() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away && n.back == nil {
		n.back = time.AfterFunc(steady, n.tell)
	}
}

func (n *Notices) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.back == nil {
		return // lost again just now
	}
	n.away, n.back = false, nil
	n.Screen.Note("baictl: reached the platform again")
}
