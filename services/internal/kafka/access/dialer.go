package kafka

import (
	"context"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
)

// dialer returns a Dialer whose connections are protected as those of like, and
// end with ctx: a Reader that is closed waits for its fetch in flight, which an idle topic answers after
// MaxWait only. What is dialed later is left alone, to leave the group.
func dialer(ctx context.Context, like *kafka.Transport) *kafka.Dialer {
	var d net.Dialer
	return &kafka.Dialer{
		Timeout:       3 * time.Second,
		ClientID:      like.ClientID,
		TLS:           like.TLS,
		SASLMechanism: like.SASL,
		DialFunc: func(dialing context.Context, network, addr string) (net.Conn, error) {
			c, err := d.DialContext(dialing, network, addr)
			if err != nil || ctx.Err() != nil {
				return c, err
			}
			return conn{c, context.AfterFunc(ctx, func() { _ = c.Close() })}, nil
		},
	}
}

type conn struct {
	net.Conn
	forget func() bool
}

// Close implements net.Conn.
func (c conn) Close() error {
	c.forget()
	return c.Conn.Close()
}
