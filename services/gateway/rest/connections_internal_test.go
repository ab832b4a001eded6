package rest

import (
	"net"
	"testing"
)

// fakeConn is a connection of a client.
type fakeConn struct {
	net.Conn

	client string
	closed bool
}

// RemoteAddr implements net.Conn.
func (f *fakeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.client), Port: 1} }

// Close implements net.Conn.
func (f *fakeConn) Close() error {
	f.closed = true
	return nil
}

func TestNobodysConnectionMakesRoomForThoseOfAClientThatHasTooMany(t *testing.T) {
	t.Parallel()
	c := newConnections(Settings{MaxConnections: 16, MaxConnectionsPerClient: 2})
	honest := &fakeConn{client: "10.0.0.1"}
	if _, ok := c.add(honest); !ok {
		t.Fatal("the first connection is refused")
	}
	for range 2 {
		taken, ok := c.add(&fakeConn{client: "10.0.0.2"})
		if !ok {
			t.Fatal("a client is refused before it has too many")
		}
		c.markActive(taken)
	}
	for range 5 {
		if _, ok := c.add(&fakeConn{client: "10.0.0.2"}); ok {
			t.Error("a client has more connections than it may")
		}
	}
	if honest.closed {
		t.Error("the silent connection of another client was closed for it")
	}
	own := &fakeConn{client: "10.0.0.1"}
	for _, conn := range []net.Conn{own, &fakeConn{client: "10.0.0.1"}} {
		if _, ok := c.add(conn); !ok {
			t.Error("a client with silent connections is refused")
		}
	}
	if !honest.closed || own.closed {
		t.Errorf("its oldest silent connection is closed: %t, a newer one: %t", honest.closed, own.closed)
	}
}
