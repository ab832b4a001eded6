package access

import (
	"context"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
)

// Dialer returns a Dialer whose connections are protected as those of like, and
// end with ctx: a Reader that is closed waits for its fetch in flight, which an idle topic answers after
// MaxWait only. Later connections go on, so that
// the reader can leave its group.
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
