// Package port reserves TCP ports for servers that tests start, stop and start again. A
// free port may be taken by another process at any time; a reserved one is not, until the
// test ends:
//
//   - A reservation is a socket that is bound to the port and does not listen. The
//     kernel gives such a port to nobody who asks for any port, neither to a
//     listener nor to an outgoing connection, and refuses it to another reservation,
//     of whichever process and user.
//   - A server may listen on it all the same, and again after it was killed, as the
//     socket has SO_REUSEADDR: servers set that too, those of Go and of Java by
//     themselves. It is set after the socket was bound, so that reservations, which
//     bind without it, exclude each other.
//   - The socket is closed on exec, and goes with the process that has it: nothing
//     is left of one that was killed.
//   - Ports lie outside of the range that outgoing connections have, so that none
//     that exists already is in the way of a server.
//
// A locked file for each port would keep out only cooperating processes. Not even a
// reservation keeps out a program that is configured to listen on the very same port: it
// lies above 10000, where few programs have a default port.
package port

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
)

// ForTest reserves n ports until the test has ended.
func ForTest(tb testing.TB, n int) []int {
	tb.Helper()
	r, err := Reserve(n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Release(); err != nil {
			tb.Errorf("release ports: %v", err)
		}
	})
	return r.Ports
}

// Addr returns an address of loopback, HOST:PORT, whose port is reserved until the
// test has ended.
func Addr(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf("127.0.0.1:%d", ForTest(tb, 1)[0])
}

// Reservation is that of some ports, on all addresses of this machine.
type Reservation struct {
	Ports []int

	sockets []int
}

// Reserve reserves n ports until Release or the end of the process.
func Reserve(n int) (*Reservation, error) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reserve ports: %w", err)
	}
	return reserve(candidates(string(b)), n)
}

// Release lets others have the ports.
func (r *Reservation) Release() error {
	var errs []error
	for _, s := range r.sockets {
		errs = append(errs, os.NewSyscallError("close", syscall.Close(s)))
	}
	r.Ports, r.sockets = nil, nil
	return errors.Join(errs...)
}

// reserve reserves n of some ports, in an order that others have not.
func reserve(from []int, n int) (*Reservation, error) {
	r := &Reservation{}
	refused := make(map[string]int)
	for _, i := range rand.Perm(len(from)) {
		if len(r.Ports) == n {
			return r, nil
		}
		s, err := bind(from[i])
		if err != nil {
			refused[err.Error()]++
			continue
		}
		r.Ports, r.sockets = append(r.Ports, from[i]), append(r.sockets, s)
	}
	if len(r.Ports) == n {
		return r, nil
	}
	var why []string
	for text, times := range refused {
		why = append(why, fmt.Sprintf("%d of %d ports: %s", times, len(from), text))
	}
	return nil, errors.Join(fmt.Errorf("reserve %d ports: %d were to be had; %s", n, len(r.Ports), strings.Join(why, "; ")), r.Release())
}

// bind returns a socket that is bound to a port of all addresses, and allows listeners
// with SO_REUSEADDR.
func bind(port int) (socket int, err error) {
	syscall.ForkLock.RLock() // no child has the socket
	socket, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	err = os.NewSyscallError("bind", syscall.Bind(socket, &syscall.SockaddrInet4{Port: port}))
	if err == nil {
		err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	}
	if err != nil {
		return 0, errors.Join(err, os.NewSyscallError("close", syscall.Close(socket)))
	}
	return socket, nil
}
