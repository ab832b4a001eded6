package gateway_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// watchedRun is the run that clients watch, and changes is the number of its changes.
const (
	watchedRun = "01k8h4fzqh3v7x9y2m5n8p0r4t"
	changes    = 3000
)

// TestAClientThatIsCutAHundredTimesSeesEveryChangeOnce has a client watch a run while
// it changes, over connections that break after any number of bytes.
func TestAClientThatIsCutAHundredTimesSeesEveryChangeOnce(t *testing.T) {
	st := open(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	parts := gateway.New(gateway.Settings{}, gateway.Deps{Bus: eventtest.NewBus(t), Store: st, Listener: l, Entropy: rand.Reader, Log: zap.NewNop()})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	all.Go(func() {
		if err := run.All(ctx, parts); err != nil {
			t.Errorf("stopped with %v, want nil", err)
		}
	})
	defer all.Wait()
	defer stop()
	putChange(ctx, t, st, 1)
	all.Go(func() {
		for revision := int64(2); revision <= changes && ctx.Err() == nil; revision++ {
			putChange(ctx, t, st, revision)
		}
	})
	p := newProxy(t, l.Addr().String())
	last := int64(0)
	for end := time.Now().Add(8 * time.Minute); last < changes; {
		if time.Now().After(end) {
			t.Fatalf("seen %d of %d changes, with %d cuts", last, changes, p.cuts.Load())
		}
		last = watchOnce(t, p.addr, last)
	}
	if n := p.cuts.Load(); n < 100 {
		t.Errorf("%d cuts, want 100 or more", n)
	}
	t.Logf("%d changes over %d connections, %d of them cut", last, p.conns.Load(), p.cuts.Load())
}

// putChange records a change of the run. The last change is its end.
func putChange(ctx context.Context, t *testing.T, st store.Runs, revision int64) {
	t.Helper()
	r, c := storetest.NewRun(watchedRun, time.Now())
	r.Revision, c.Revision, c.Event = revision, revision, fmt.Sprint("e", revision)
	r.Phase, c.Phase = event.PhaseRunning, event.PhaseRunning
	c.Message = fmt.Sprint("this is change number ", revision)
	if revision == changes {
		r.Phase, c.Phase = event.PhaseFinished, event.PhaseFinished
	}
	if err := st.PutRun(ctx, r, c); err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

// watchOnce watches the run over one connection, after a revision, until the connection
// breaks, and returns the last revision that it has seen. Each revision must follow the
// one before.
func watchOnce(t *testing.T, addr string, last int64) int64 {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it may be cut
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	stream, err := baiv1.NewRunServiceClient(conn).WatchRun(ctx, &baiv1.WatchRunRequest{Run: watchedRun, AfterRevision: last})
	for err == nil {
		var resp *baiv1.WatchRunResponse
		if resp, err = stream.Recv(); err != nil {
			break
		}
		c := resp.GetChange()
		if c.GetRevision() != last+1 || c.GetMessage() != fmt.Sprint("this is change number ", last+1) {
			t.Fatalf("after %d came %v", last, c)
		}
		last = c.GetRevision()
	}
	if errors.Is(err, io.EOF) && last != changes {
		t.Fatalf("the stream ended after %d", last)
	}
	return last
}

// proxy forwards connections, and cuts each after some bytes.
type proxy struct {
	addr        string
	conns, cuts atomic.Int64
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.conns.Add(1)
			all.Go(func() { p.forward(conn, to) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	return p
}

// forward forwards one connection until one side closes it, or enough bytes have
// passed.
func (p *proxy) forward(client net.Conn, to string) {
	defer client.Close() //nolint:errcheck // that is what it is for
	server, err := (&net.Dialer{}).Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // that is what it is for
	up := make(chan struct{})
	go func() {
		defer close(up)
		_, _ = io.Copy(server, client) // until the connection is cut
		_ = server.Close()
	}()
	enough := mathrand.Int64N(3000) //nolint:gosec // any will do
	n, _ := io.CopyN(client, server, enough)
	if n == enough {
		p.cuts.Add(1)
	}
	_ = client.Close()
	<-up
}
