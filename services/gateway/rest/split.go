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

// preface is how a connection begins that speaks HTTP/2, as gRPC does, and how no
// other does.
const preface = "PRI"

// Split returns two listeners that share the connections of l: those that speak
// HTTP/2 from their first byte, and all others. The part gives the connections
// out, and closes l when it ends. Each listener is closed by who uses it; a
// connection for one that is closed is closed, too, and so is one that does not
// begin to speak in time. Where there are more connections that have not begun to
// speak, or more of one client's or of all clients', than the settings allow, the
// oldest silent one makes room, or the new one is closed.
func Split(s Settings, l net.Listener) (http2, others net.Listener, part service.Part) {
	split := &splitter{from: l, patience: s.patience(), http2: newQueue(l), others: newQueue(l), open: newConnections(s)}
	return split.http2, split.others, split.run
}

type splitter struct {
	from          net.Listener
	patience      time.Duration
	http2, others *queue
	open          *connections
}

func (s *splitter) run(ctx context.Context) error {
	var deciding sync.WaitGroup
	defer deciding.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = s.from.Close() })
	defer func() { stop(); _ = s.from.Close() }() // it may be closed already
	for pause := time.Duration(0); ; {
		conn, err := s.from.Accept()
		if err != nil && ctx.Err() != nil {
			return nil // it was told to stop
		}
		var temporary interface{ Temporary() bool }
		if errors.As(err, &temporary) && temporary.Temporary() { // too many open files, say
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause)
			continue
		}
		if err != nil {
			return fmt.Errorf("accept on %s: %w", s.from.Addr(), err)
		}
		pause = 0
		taken, ok := s.open.add(conn)
		if !ok {
			_ = conn.Close() // its client has more than enough
			continue
		}
		deciding.Go(func() { s.decide(ctx, taken) })
	}
}

// decide gives a connection to who it is for.
func (s *splitter) decide(ctx context.Context, conn *counted) {
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	begin, err := peek(conn, s.patience)
	if err != nil || ctx.Err() != nil {
		_ = conn.Close() // it said nothing
		return
	}
	s.open.spoke(conn)
	q := s.others
	if string(begin) == preface {
		q = s.http2
	}
	q.put(&peeked{Conn: conn, begin: begin})
}

// peek reads as much of a connection as tells what it speaks.
func peek(conn net.Conn, patience time.Duration) ([]byte, error) {
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	begin := make([]byte, 1, len(preface))
	if _, err := io.ReadFull(conn, begin); err != nil {
		return nil, err
	}
	if begin[0] == preface[0] {
		begin = begin[:len(preface)]
		if _, err := io.ReadFull(conn, begin[1:]); err != nil {
			return nil, err
		}
	}
	return begin, conn.SetReadDeadline(time.Time{})
}

// peeked is a connection of which the beginning was read.
type peeked struct {
	net.Conn

	begin []byte
}

// Read implements net.Conn.
func (p *peeked) Read(b []byte) (int, error) {
	if len(p.begin) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.begin)
	p.begin = p.begin[n:]
	return n, nil
}

// queue is a listener of connections that others accept.
type queue struct {
	of     interface{ Addr() net.Addr }
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newQueue(of interface{ Addr() net.Addr }) *queue {
	closed := make(chan struct{})
	return &queue{of: of, conns: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

func (q *queue) put(conn net.Conn) {
	select {
	case q.conns <- conn:
	case <-q.closed:
		_ = conn.Close() // nobody is there to be told
	}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
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
func (q *queue) Close() error {
	q.close()
	return nil
}

// Addr implements net.Listener.
func (q *queue) Addr() net.Addr { return q.of.Addr() }

// Inside is a listener that this process alone can connect to.
type Inside struct{ queue }

// NewInside returns a listener.
func NewInside() *Inside { return &Inside{*newQueue(insideAddr{})} }

// Dial connects to who accepts.
func (i *Inside) Dial(ctx context.Context) (net.Conn, error) {
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

type insideAddr struct{}

// Addr is its own.
func (insideAddr) Addr() net.Addr { return insideAddr{} }

// Network implements net.Addr.
func (insideAddr) Network() string { return "inside" }

// String implements net.Addr.
func (insideAddr) String() string { return "inside" }
