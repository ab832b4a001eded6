package rest

import (
	"cmp"
	"container/list"
	"net"
	"sync"
)

// connections are those that are open, within bounds.
type connections struct {
	maxTotal, maxPerClient, maxIdle int // at most, of all clients, of each, and of all that have said nothing yet

	mu        sync.Mutex
	count     int
	perClient map[string]int // by client
	idle      list.List      // of *counted that have said nothing yet, the oldest first
}

func newConnections(s Settings) *connections {
	c := &connections{maxTotal: cmp.Or(s.MaxConnections, 4096), perClient: map[string]int{}}
	c.maxPerClient = cmp.Or(s.MaxConnectionsPerClient, max(1, c.maxTotal/2))
	c.maxIdle = max(1, c.maxTotal/4)
	return c
}

// trackedConn is an open connection.
type trackedConn struct {
	net.Conn

	tracker  *connections
	client   string
	idleElem *list.Element // nil once it has said something
	once     sync.Once
}

// add counts a connection. Where too many have said nothing yet, or there are too
// many in all, it closes the oldest of those that have said nothing; where its client
// has too many, the oldest such one of that client's, so that nobody's connections make
// room for another's. It says false for one too many.
func (c *connections) add(conn net.Conn) (*trackedConn, bool) {
	added := &trackedConn{Conn: conn, tracker: c, client: clientOf(conn.RemoteAddr())}
	if oldest := c.evictable(added.client); oldest != nil {
		_ = oldest.Close() // the goroutine that reads it sees that
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count >= c.maxTotal || c.perClient[added.client] >= c.maxPerClient {
		return nil, false
	}
	c.count++
	c.perClient[added.client]++
	added.idleElem = c.idle.PushBack(added)
	return added, true
}

// evictable returns the connection that makes room for a new one of a client; nil where
// there is room, or none that has said nothing.
func (c *connections) evictable(client string) *trackedConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	full, greedy := c.idle.Len() >= c.maxIdle || c.count >= c.maxTotal, c.perClient[client] >= c.maxPerClient
	if !full && !greedy {
		return nil
	}
	for e := c.idle.Front(); e != nil; e = e.Next() {
		if old, ok := e.Value.(*trackedConn); ok && (!greedy || old.client == client) {
			return old
		}
	}
	return nil
}

// markActive notes that a connection has said something.
func (c *connections) markActive(conn *trackedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeIdle(conn)
}

func (c *connections) removeIdle(conn *trackedConn) {
	if conn.idleElem != nil {
		c.idle.Remove(conn.idleElem)
		conn.idleElem = nil
	}
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	c.once.Do(func() { c.tracker.remove(c) })
	return c.Conn.Close()
}

func (c *connections) remove(conn *trackedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeIdle(conn)
	c.count--
	if c.perClient[conn.client]--; c.perClient[conn.client] == 0 {
		delete(c.perClient, conn.client)
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
