package rest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/gateway/rest"
)

// openIdle opens connections that send nothing.
func (w *fixture) openIdle(n int) []net.Conn {
	w.t.Helper()
	all := make([]net.Conn, n)
	for i := range all {
		conn, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", w.addr)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = conn.Close() })
		all[i] = conn
	}
	return all
}

// isClosed reports whether the server has closed a connection.
func isClosed(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	var late net.Error
	return err != nil && (!errors.As(err, &late) || !late.Timeout())
}

func TestWhoSaysNothingMakesRoomForWhoAsks(t *testing.T) {
	w := newFixture(t, gateway.Settings{REST: rest.Settings{MaxConnections: 16, Stall: 10 * time.Minute}})
	all := w.openIdle(40)
	for range 5 {
		if code, _, body := w.request(http.MethodGet, "/v1/version", nil); code != http.StatusOK {
			t.Fatalf("an honest request: %d %s", code, body)
		}
	}
	eventually(t, "the oldest silent connections to be closed", func() bool { return isClosed(all[0]) && isClosed(all[30]) })
}

func TestOneClientDoesNotHaveAllConnections(t *testing.T) {
	w := newFixture(t, gateway.Settings{REST: rest.Settings{MaxConnections: 8, MaxConnectionsPerClient: 3, Stall: 10 * time.Minute}})
	answered := func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") // the connection may be closed
		answer := make([]byte, 12)
		n, _ := io.ReadFull(conn, answer)
		return string(answer[:n]) == "HTTP/1.1 200"
	}
	var kept []net.Conn
	for range 3 {
		conn := w.openIdle(1)[0]
		if !answered(conn) {
			t.Fatal("a connection is not answered")
		}
		kept = append(kept, conn)
	}
	if answered(w.openIdle(1)[0]) {
		t.Fatal("a fourth connection of a client is answered")
	}
	_ = kept[0].Close()
	eventually(t, "a new one to be taken", func() bool { return answered(w.openIdle(1)[0]) })
}

// upload sends the first half of a file, and the rest when rest is called; answered
// receives the status code of the response.
func (w *fixture) upload(id string) (rest func(), answered chan int) {
	w.t.Helper()
	body, writer := io.Pipe()
	w.t.Cleanup(func() { _ = writer.CloseWithError(io.ErrUnexpectedEOF) })
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPut, "http://"+w.addr+"/v1/runs/"+id+"/artifacts/1/benchmark-0/a", body)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token(id))
	req.ContentLength = 4
	answered = make(chan int, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			answered <- 0
			return
		}
		_ = resp.Body.Close() // only its status matters
		answered <- resp.StatusCode
	}()
	_, _ = io.WriteString(writer, "ab") // fails if the request was refused before
	return func() { _, _ = io.WriteString(writer, "cd") }, answered
}

func TestTooManyFilesAtATimeAreRefusedUntilLater(t *testing.T) {
	w := newFixture(t, gateway.Settings{REST: rest.Settings{MaxTransfers: 1}})
	id := w.submit()
	rest, answered := w.upload(id)
	eventually(t, "another to be refused", func() bool {
		select {
		case <-answered: // the other upload came first, and this one was refused
			rest, answered = w.upload(id)
		default:
		}
		code, header, _ := w.request(http.MethodGet, "/v1/runs/"+id+"/artifacts/1/benchmark-0/a", nil)
		return code == http.StatusServiceUnavailable && header.Get("Retry-After") == "5"
	})
	rest()
	if code := <-answered; code != http.StatusCreated {
		t.Fatalf("the file is answered with %d", code)
	}
	eventually(t, "the file to be read", func() bool {
		code, _, _ := w.request(http.MethodGet, "/v1/runs/"+id+"/artifacts/1/benchmark-0/a", nil)
		return code == http.StatusOK
	})
}

func TestTooManyStreamsAreRefusedUntilLater(t *testing.T) {
	w := newFixture(t, gateway.Settings{API: api.Settings{MaxStreams: 4}})
	id := w.submit()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 { // one client may use half of all
		stream, err := w.client.WatchRun(ctx, &baiv1.WatchRunRequest{Run: id})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stream, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: id})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a third stream of a client: %v, want RESOURCE_EXHAUSTED", err)
	}
	code, header, body := w.request(http.MethodGet, "/v1/runs/"+id+":watch", nil)
	if code != http.StatusTooManyRequests || header.Get("Retry-After") != "5" {
		t.Errorf("the same by HTTP: %d, Retry-After %q: %s", code, header.Get("Retry-After"), body)
	}
	cancel()
	eventually(t, "room for another", func() bool {
		stream, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: id})
		if err == nil {
			_, err = stream.Recv()
		}
		return err == nil
	})
}
