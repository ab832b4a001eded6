package rpc

import (
	"fmt"
	"time"
)

// Receiver receives the messages of a stream. It fails if no message arrives for
// idleTimeout.
type Receiver[T any] struct {
	idleTimeout time.Duration
	received    chan recvResult[T]
	done        chan struct{}
}

type recvResult[T any] struct {
	msg T
	err error
}

// NewReceiver starts to receive, until receive fails, as it does when the call ends.
func NewReceiver[T any](receive func() (T, error), idleTimeout time.Duration) *Receiver[T] {
	w := &Receiver[T]{idleTimeout: idleTimeout, received: make(chan recvResult[T]), done: make(chan struct{})}
	go func() {
		for {
			msg, err := receive()
			select {
			case w.received <- recvResult[T]{msg, err}:
			case <-w.done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return w
}

// Close abandons the stream. The goroutine that receives from it ends with the call.
func (w *Receiver[T]) Close() { close(w.done) }

// Next returns the next message, or the error of the stream.
func (w *Receiver[T]) Next() (T, error) {
	timer := time.NewTimer(w.idleTimeout)
	defer timer.Stop()
	select {
	case a := <-w.received:
		return a.msg, a.err
	case <-timer.C:
		var none T
		return none, fmt.Errorf("nothing came for %s", w.idleTimeout)
	}
}
