package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/service"
)

// http2Preface is the start of every HTTP/2 connection, as gRPC uses it. No other
// connection starts with it.
const http2Preface = "PRI"

// Split returns two listeners that share the connections of l: one for HTTP/2 from the
// first byte, and one for all others. The runnable distributes the connections, and
// closes l when it ends. The users of the listeners close them. Connections for a
// closed listener are closed, and so are connections on which the client sends nothing
// in time. If there are more idle connections, connections of one client, or
// connections in total than the settings allow, the oldest idle one is closed to make
// room, or the new one is closed.
func Split(s Settings, l net.Listener) (http2, others net.Listener, part service.Runnable) {
	split := &splitter{
		listener: l, headerTimeout: s.headerTimeout(), http2: newConnQueue(l), others: newConnQueue(l),
		connections: newConnections(s),
	}
	return split.http2, split.others, split.run
}

type splitter struct {
	listener      net.Listener
	headerTimeout time.Duration
	http2, others *connQueue
	connections   *connections
}

func (s *splitter) run(ctx context.Context) error {
	var deciding sync.WaitGroup
	defer deciding.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	defer func() { stop(); _ = s.listener.Close() }() // the listener may be closed already
	for pause := time.Duration(0); ; {
		conn, err := s.listener.Accept()
		if err != nil && ctx.Err() != nil {
			return nil // the context is done
		}
		var temporary interface{ Temporary() bool }
		if errors.As(err, &temporary) && temporary.Temporary() { // for example too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause)
			continue
		}
		if err != nil {
			return fmt.Errorf("accept on %s: %w", s.listener.Addr(), err)
		}
		pause = 0
		tracked, ok := s.connections.add(conn)
		if !ok {
			_ = conn.Close() // the connection exceeds a limit
			continue
		}
		deciding.Go(func() { s.dispatch(ctx, tracked) })
	}
}

// dispatch passes a connection to the listener of its protocol.
func (s *splitter) dispatch(ctx context.Context, conn *trackedConn) {
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	begin, err := peek(conn, s.headerTimeout)
	if err != nil || ctx.Err() != nil {
		_ = conn.Close() // the client sent nothing in time
		return
	}
	s.connections.markActive(conn)
	q := s.others
	if string(begin) == http2Preface {
		q = s.http2
	}
	q.put(&peekedConn{Conn: conn, begin: begin})
}

// peek reads enough bytes of a connection to tell its protocol.
func peek(conn net.Conn, timeout time.Duration) ([]byte, error) {
	if err := conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	begin := make([]byte, 1, len(http2Preface))
	if _, err := io.ReadFull(conn, begin); err != nil {
		return nil, err
	}
	if begin[0] == http2Preface[0] {
		begin = begin[:len(http2Preface)]
		if _, err := io.ReadFull(conn, begin[1:]); err != nil {
			return nil, err
		}
	}
	return begin, conn.SetReadDeadline(time.Time{})
}

// peekedConn is a connection whose first bytes have been read already.
type peekedConn struct {
	net.Conn

	begin []byte
}

// Read implements net.Conn.
func (p *peekedConn) Read(b []byte) (int, error) {
	if len(p.begin) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.begin)
	p.begin = p.begin[n:]
	return n, nil
}

// connQueue is a listener for connections that splitter or Dial provide.
type connQueue struct {
	listener interface{ Addr() net.Addr }
	conns    chan net.Conn
	closed   chan struct{}
	close    func()
}

func newConnQueue(listener interface{ Addr() net.Addr }) *connQueue {
	closed := make(chan struct{})
	return &connQueue{listener: listener, conns: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

func (q *connQueue) put(conn net.Conn) {
	select {
	case q.conns <- conn:
	case <-q.closed:
		_ = conn.Close() // the listener is closed
	}
}

// Accept implements net.Listener.
func (q *connQueue) Accept() (net.Conn, error) {
	select {
	case <-q.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *connQueue) Close() error {
	q.close()
	return nil
}

// Addr implements net.Listener.
func (q *connQueue) Addr() net.Addr { return q.listener.Addr() }

// InProcessListener is a listener that only this process can connect to.
type InProcessListener struct{ connQueue }

// NewInProcessListener returns an InProcessListener.
func NewInProcessListener() *InProcessListener {
	return &InProcessListener{*newConnQueue(inProcessAddr{})}
}

// Dial connects to the listener, and returns when the connection is accepted.
func (i *InProcessListener) Dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case i.conns <- theirs:
		return ours, nil
	case <-i.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type inProcessAddr struct{}

// Addr returns the address itself, since both ends of a pipe have the same address.
func (inProcessAddr) Addr() net.Addr { return inProcessAddr{} }

// Network implements net.Addr.
func (inProcessAddr) Network() string { return "inside" }

// String implements net.Addr.
func (inProcessAddr) String() string { return "inside" }
