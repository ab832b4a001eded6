//go:build linux

// Package dial listens and connects in the network of the process that serves sockets.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/pod/sockets"
)

// socketTimeout is how long a socket may take to be made, and a connection on the same
// machine to be there.
const socketTimeout = 5 * time.Second

// Network is the network of the process that serves the sockets. Any goroutine may use
// it.
type Network struct {
	mu     sync.Mutex
	client *sockets.Client
}

// Open returns the network at the other end of a descriptor that this process was born
// with, by its number.
func Open(number string) (*Network, error) {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 0 {
		return nil, fmt.Errorf("%q is no descriptor", number)
	}
	unix.CloseOnExec(fd)
	client, err := sockets.NewClient(fd, socketTimeout)
	if err != nil {
		return nil, err
	}
	return &Network{client: client}, nil
}

// Listen listens at an address such as 127.0.0.1:4318, whose port may be 0.
func (n *Network) Listen(address string) (net.Listener, error) {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	var l net.Listener
	err = n.withSocket(addr, func(fd int) error {
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		if err == nil {
			err = callWithAddr(unix.Bind, fd, addr)
		}
		if err == nil {
			err = unix.Listen(fd, 128)
		}
		return err
	}, func(f *os.File) (err error) { l, err = net.FileListener(f); return err })
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	return l, nil
}

// DialContext connects to an address of the loopback, by number or as localhost.
func (n *Network) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	hosts := []string{host}
	if host == "localhost" {
		hosts = []string{"127.0.0.1", "::1"}
	}
	var all error
	for _, host := range hosts {
		addr, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := n.dial(addr)
		if err == nil {
			return c, nil
		}
		all = errors.Join(all, err)
	}
	return nil, fmt.Errorf("connect to %s: %w", address, all)
}

func (n *Network) dial(addr netip.AddrPort) (c net.Conn, err error) {
	err = n.withSocket(addr, func(fd int) error {
		wait, none := unix.NsecToTimeval(int64(socketTimeout)), unix.Timeval{}
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait); err != nil {
			return err
		}
		if err := connect(fd, addr); err != nil {
			return err
		}
		return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &none)
	}, func(f *os.File) (err error) { c, err = net.FileConn(f); return err })
	return c, err
}

// withSocket has a socket prepared and used, which has a descriptor of its own then.
func (n *Network) withSocket(addr netip.AddrPort, prepare func(fd int) error, use func(*os.File) error) error {
	fd, err := n.requestSocket(addr.Addr().Is6())
	if err != nil {
		return err
	}
	if err := prepare(fd); err != nil {
		_ = unix.Close(fd)
		return err
	}
	f := os.NewFile(uintptr(fd), addr.String())
	return errors.Join(use(f), f.Close())
}

func (n *Network) requestSocket(v6 bool) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.client.Request(v6)
}

// connect connects a blocking socket, however many signals the thread gets meanwhile.
func connect(fd int, addr netip.AddrPort) error {
	err := callWithAddr(unix.Connect, fd, addr)
	for errors.Is(err, unix.EINTR) { // the kernel goes on with it
		if err = callWithAddr(unix.Connect, fd, addr); errors.Is(err, unix.EISCONN) {
			return nil
		}
	}
	return err
}

// callWithAddr calls bind or connect with an address.
func callWithAddr(call func(int, unix.Sockaddr) error, fd int, a netip.AddrPort) error {
	if a.Addr().Is6() {
		return call(fd, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()})
	}
	return call(fd, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()})
}
