package rest

import (
	"cmp"
	"container/list"
	"net"
	"sync"
)

// connections tracks the open connections and enforces limits on them.
type connections struct {
	maxTotal, maxPerClient, maxIdle int // maximum number of all connections, of those of one client, and of idle ones

	mu        sync.Mutex
	count     int
	perClient map[string]int // number of connections by client
	idle      list.List      // *trackedConn that have sent nothing yet, oldest first
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
	idleElem *list.Element // nil once the client has sent something
	once     sync.Once
}

// add counts a connection, and reports false if there are too many. First it makes
// room: if too many connections are idle or open, it closes the oldest idle one; if the
// client has too many, it closes the client's own oldest idle one. So a client never
// makes room with the connections of another client.
func (c *connections) add(conn net.Conn) (*trackedConn, bool) {
	added := &trackedConn{Conn: conn, tracker: c, client: clientOf(conn.RemoteAddr())}
	if oldest := c.evictable(added.client); oldest != nil {
		_ = oldest.Close() // the goroutine that reads this connection sees the close
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

// evictable returns the idle connection to close for a new connection of a client. It
// returns nil if there is room, or no idle connection.
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

// markActive records that a client has sent something over a connection.
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

// clientOf returns the host of an address.
func clientOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}
