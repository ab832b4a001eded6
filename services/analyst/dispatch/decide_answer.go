package dispatch

import (
	"cmp"
	"errors"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
)

// answered returns a delivery after the answer to it, and how long the receiver asks to wait.
func answered(d notice.Delivery, answer string, err error, now time.Time) (next notice.Delivery, wait time.Duration) {
	d.Sending, d.At, d.Next = time.Time{}, now, time.Time{}
	var no *receiver.RejectedError
	switch {
	case err == nil:
		d.Status, d.Answer = notice.Sent, cmp.Or(message.Clean(answer), "ok")
		return d, 0
	case errors.As(err, &no), d.Notice.Test: // who tests wants to know now
		d.Status, d.Answer = notice.Refused, message.Clean(err.Error())
		return d, 0
	case errors.Is(err, receiver.ErrUnanswered):
		d.Notice.Again = true
	}
	if away, ok := errors.AsType[*receiver.TemporaryError](err); ok {
		wait = away.After
	}
	d.Answer, d.Next = message.Clean(err.Error()), now.Add(pause(d.Attempts, wait))
	return d, wait
}
