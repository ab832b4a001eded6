package dispatch

import (
	"cmp"
	"errors"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/analyst/receiver"
	"github.com/benchmark-ai/bai/services/analyst/receiver/message"
)

// answered returns a delivery after the answer to it, which is the last of a number of failures in a row if it is one.
func answered(d notice.Delivery, answer string, err error, failures int, now time.Time) notice.Delivery {
	d.Sending, d.At, d.Next, d.Until, d.Asked = time.Time{}, now, time.Time{}, time.Time{}, false
	wait := askedWait(err)
	if wait > 0 {
		d.Until, d.Asked = now.Add(wait), true
	}
	var no *receiver.RejectedError
	switch {
	case err == nil:
		d.Status, d.Answer = notice.Sent, cmp.Or(message.Clean(answer), "ok")
		return d
	case errors.As(err, &no), d.Notice.Test: // who tests wants to know now
		d.Status, d.Answer = notice.Refused, message.Clean(err.Error())
		return d
	case errors.Is(err, receiver.ErrUnanswered):
		d.Notice.Again = true
	}
	d.Answer, d.Next, d.Until = message.Clean(err.Error()), now.Add(pause(d.Attempts, wait)), now.Add(pause(failures, wait))
	return d
}

// askedWait returns how long a receiver asks to wait; zero if it does not.
func askedWait(err error) time.Duration {
	if away, ok := errors.AsType[*receiver.TemporaryError](err); ok {
		return away.After
	}
	return 0
}
