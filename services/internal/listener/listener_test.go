package listener_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/listener"
)

// flakyListener is a listener that fails with errors before it accepts.
type flakyListener struct {
	net.Listener

	errs chan error
}

// Accept implements net.Listener.
func (f *flakyListener) Accept() (net.Conn, error) {
	select {
	case err := <-f.errs:
		return nil, err
	default:
		return f.Listener.Accept()
	}
}

func TestAnErrorThatPassesDoesNotEndAListener(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"too many open files": &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)},
		"no memory":           &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.ENOMEM)},
		"any other":           errors.New("broken"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantAccepted(t, err)
		})
	}
}

// wantAccepted checks that a listener which fails some times accepts then.
func wantAccepted(t *testing.T, fails error) {
	t.Helper()
	f := &flakyListener{Listener: listen(t), errs: make(chan error, 3)}
	for range cap(f.errs) {
		f.errs <- fails
	}
	l := listener.Retry(f)
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatalf("Accept: %v", err)
	}
	if got, want := conn.RemoteAddr().String(), client.LocalAddr().String(); got != want {
		t.Errorf("accepted %s, want %s", got, want)
	}
	if err := errors.Join(conn.Close(), client.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

func TestAListenerThatIsClosedEndsAlsoWhileItFails(t *testing.T) {
	t.Parallel()
	f := &flakyListener{Listener: listen(t), errs: make(chan error)}
	l := listener.Retry(f)
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case f.errs <- syscall.EMFILE:
			case <-stop:
				return
			}
		}
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v, want net.ErrClosed", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close once more: %v", err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it may be closed already
	return l
}
