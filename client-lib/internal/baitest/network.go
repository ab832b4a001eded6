package baitest

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Network leads to a platform and breaks connections.
type Network struct {
	addr   string
	target string

	mu       sync.Mutex
	cutsLeft int // connections still to be cut by themselves
	cut      int
	rng      *rand.Rand
	most     int64 // bytes that a connection carries before it is cut
	down     bool
	pipes    map[*pipe]bool
	work     sync.WaitGroup
}

type pipe struct{ client, server net.Conn }

// Break starts a network to target that cuts the first n connections, each after
// at most so many bytes of answers, wherever that falls.
func Break(t *testing.T, target string, n int, most int64) *Network {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Network{
		addr: listener.Addr().String(), target: target, cutsLeft: n, most: most,
		rng: rand.New(rand.NewPCG(1, uint64(n))), pipes: map[*pipe]bool{},
	}
	w.work.Go(func() { w.serve(listener) })
	t.Cleanup(func() {
		_ = listener.Close() // ends serve
		w.Down()
		w.work.Wait()
	})
	return w
}

// Addr is the address that leads to the platform.
func (w *Network) Addr() string { return w.addr }

// Cuts says how many connections were cut by themselves.
func (w *Network) Cuts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

// Down cuts all connections, and from now on each new one at once.
func (w *Network) Down() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for p := range w.pipes {
		p.close()
	}
}

// Up ends the outage that Down began.
func (w *Network) Up() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}

func (w *Network) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", w.target)
		if err != nil {
			_ = client.Close() // as a broken network would
			continue
		}
		w.carry(&pipe{client: client, server: server})
	}
}

func (w *Network) carry(p *pipe) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		p.close()
		return
	}
	budget := int64(-1)
	if w.cutsLeft > 0 {
		w.cutsLeft--
		budget = w.rng.Int64N(w.most)
	}
	w.pipes[p] = true
	w.work.Go(func() {
		_, _ = io.Copy(p.server, p.client) // ends with the connection
		w.end(p, false)
	})
	w.work.Go(func() {
		answers := io.Reader(p.server)
		if budget >= 0 {
			answers = io.LimitReader(p.server, budget)
		}
		n, _ := io.Copy(p.client, answers) // ends with the connection or the budget
		w.end(p, n == budget)
	})
}

func (w *Network) end(p *pipe, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cut {
		w.cut++
	}
	delete(w.pipes, p)
	p.close()
}

// close closes both ends, which is no error the second time.
func (p *pipe) close() { _, _ = p.client.Close(), p.server.Close() }
