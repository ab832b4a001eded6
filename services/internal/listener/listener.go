// Package listener has listeners go on after errors that pass, such as that the
// process has no file descriptor left.
package listener

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Bounds of the pause after an error.
const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = time.Second
)

// Retry returns l with an Accept that tries again after every error, with growing
// pauses, until l is closed: that is its only error, net.ErrClosed. Whoever
// connects meanwhile waits in the queue of the kernel. Close may be called more
// than once.
func Retry(l net.Listener) net.Listener {
	return &retryListener{Listener: l, closed: make(chan struct{})}
}

type retryListener struct {
	net.Listener

	once   sync.Once
	closed chan struct{}
	err    error // of Close
}

// Accept implements net.Listener.
func (r *retryListener) Accept() (net.Conn, error) {
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		conn, err := r.Listener.Accept()
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		select {
		case <-r.closed:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
	}
}

// Close implements net.Listener.
func (r *retryListener) Close() error {
	r.once.Do(func() {
		close(r.closed)
		r.err = r.Listener.Close()
	})
	return r.err
}
