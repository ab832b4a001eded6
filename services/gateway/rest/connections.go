package rest

import (
	"cmp"
	"container/list"
	"net"
	"sync"
)

// connections are those that are open, within bounds.
type connections struct {
	all, each, silent int // at most, of all clients, of each, and of all that have said nothing yet

	mu    sync.Mutex
	count int
	by    map[string]int // by client
	queue list.List      // of *counted that have said nothing yet, the oldest first
}

func newConnections(s Settings) *connections {
	c := &connections{all: cmp.Or(s.MaxConnections, 4096), by: map[string]int{}}
	c.each = cmp.Or(s.MaxConnectionsPerClient, max(1, c.all/2))
	c.silent = max(1, c.all/4)
	return c
}

// counted is an open connection.
type counted struct {
	net.Conn

	of     *connections
	client string
	silent *list.Element // nil once it has said something
	once   sync.Once
}

// add counts a connection. Where too many have said nothing yet, or there are too
// many in all, it closes the oldest of those that have said nothing; where its client
// has too many, the oldest such one of that client's, so that nobody's connections make
// room for another's. It says false for one too many.
func (c *connections) add(conn net.Conn) (*counted, bool) {
	added := &counted{Conn: conn, of: c, client: clientOf(conn.RemoteAddr())}
	if oldest := c.inTheWay(added.client); oldest != nil {
		_ = oldest.Close() // the goroutine that reads it sees that
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count >= c.all || c.by[added.client] >= c.each {
		return nil, false
	}
	c.count++
	c.by[added.client]++
	added.silent = c.queue.PushBack(added)
	return added, true
}

// inTheWay returns the connection that makes room for a new one of a client; nil where
// there is room, or none that has said nothing.
func (c *connections) inTheWay(client string) *counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	full, greedy := c.queue.Len() >= c.silent || c.count >= c.all, c.by[client] >= c.each
	if !full && !greedy {
		return nil
	}
	for e := c.queue.Front(); e != nil; e = e.Next() {
		if old, ok := e.Value.(*counted); ok && (!greedy || old.client == client) {
			return old
		}
	}
	return nil
}

// spoke notes that a connection has said something.
func (c *connections) spoke(conn *counted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard(conn)
}

func (c *connections) heard(conn *counted) {
	if conn.silent != nil {
		c.queue.Remove(conn.silent)
		conn.silent = nil
	}
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() { c.of.remove(c) })
	return c.Conn.Close()
}

func (c *connections) remove(conn *counted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard(conn)
	c.count--
	if c.by[conn.client]--; c.by[conn.client] == 0 {
		delete(c.by, conn.client)
	}
}

// clientOf is the host of an address.
func clientOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}
