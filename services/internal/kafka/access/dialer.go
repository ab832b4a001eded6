package access

import (
	"context"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
)

// Dialer returns a Dialer whose connections have the security of like, and are closed when ctx ends: closing a Reader waits for its fetch
// in flight, which an idle topic answers only after MaxWait. Connections that are opened after the end of ctx stay open, so that the reader
// can leave its group.
func Dialer(ctx context.Context, like *kafka.Transport) *kafka.Dialer {
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
