package api

import (
	"fmt"
	"time"
)

// receiver receives the messages of a stream. It fails if no message arrives for
// idleTimeout.
type receiver[T any] struct {
	idleTimeout time.Duration
	received    chan recvResult[T]
	done        chan struct{}
}

type recvResult[T any] struct {
	msg T
	err error
}

// newReceiver starts to receive, until receive fails, as it does when the call ends.
func newReceiver[T any](receive func() (T, error), idleTimeout time.Duration) *receiver[T] {
	w := &receiver[T]{idleTimeout: idleTimeout, received: make(chan recvResult[T]), done: make(chan struct{})}
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

// close abandons the stream. The goroutine that receives from it ends with the call.
func (w *receiver[T]) close() { close(w.done) }

func (w *receiver[T]) next() (T, error) {
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
