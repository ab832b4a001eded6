package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/listener"
	"github.com/benchmark-ai/bai/services/internal/lock"
)

// acquire takes the lock on a directory, which ends with the process.
func acquire(path string) (*lock.Lock, error) {
	l, err := lock.Acquire(path)
	if held := (*lock.HeldError)(nil); errors.As(err, &held) {
		return nil, fmt.Errorf("lock %s: the process %d uses this directory: end it, or choose another directory", path, held.Holder)
	}
	return l, err
}

// Listen listens at the address of host that is stored in path or, if there is none yet, at a free port of host, which it stores there. So
// clients that have the address can connect again after a restart.
func Listen(host, path string) (net.Listener, error) {
	l, err := listen("", host, path)
	if err != nil {
		return nil, err
	}
	return l, saveAddr(path, l.Addr().String())
}

// listen listens at addr or, if it is empty, at the address of host that is stored in path or, if there is none yet, at a free port of
// host.
func listen(addr, host, path string) (net.Listener, error) {
	if addr != "" {
		l, err := listenAt(addr)
		if err != nil {
			return nil, fmt.Errorf("start the broker: %w: end the program that uses the port, or choose another", err)
		}
		return l, nil
	}
	stored, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return listenFree(host)
	}
	if err != nil {
		return nil, fmt.Errorf("read the broker's port: %w", err)
	}
	addresses, err := resolve(host)
	if err != nil {
		return nil, err
	}
	if !isAddrOf(addresses, string(stored)) {
		return listenFree(host)
	}
	addr = strings.TrimSpace(string(stored))
	l, err := listenAt(addr)
	if err != nil {
		return nil, fmt.Errorf("start the broker: %w: end the program that uses the port, or remove %s to have another chosen (pods that still run lose their broker then)", err, path)
	}
	return l, nil
}

// resolve returns the addresses of a host, in the form that listeners have them.
func resolve(host string) ([]string, error) {
	addresses, err := net.DefaultResolver.LookupHost(context.Background(), host)
	if err != nil {
		return nil, fmt.Errorf("find the address of %q: %w: choose a name or an address of this machine", host, err)
	}
	for i, address := range addresses {
		if ip, err := netip.ParseAddr(address); err == nil {
			addresses[i] = ip.Unmap().String()
		}
	}
	return addresses, nil
}

// isAddrOf reports whether a stored text is a port of one of a host's addresses. After a crash of the machine during a write it may be any
// text.
func isAddrOf(addresses []string, addr string) bool {
	stored, port, err := net.SplitHostPort(strings.TrimSpace(addr))
	n, err2 := strconv.ParseUint(port, 10, 16)
	return err == nil && err2 == nil && slices.Contains(addresses, stored) && n > 0
}

func listenAt(addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return listener.Retry(l), nil
}

// listenFree listens at a free port of host that the kernel does not use for outgoing connections, so that it is likely to be free after a
// restart too.
func listenFree(host string) (net.Listener, error) {
	low := ephemeral()
	from := min(20000, max(1024, low-10000))
	for range 100 {
		l, err := listenAt(net.JoinHostPort(host, strconv.Itoa(from+rand.IntN(max(low-from, 1))))) //nolint:gosec // any will do
		if err == nil {
			return l, nil
		}
	}
	l, err := listenAt(net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("choose a port for the broker: %w", err)
	}
	return l, nil
}

// ephemeral returns the first port that the kernel uses for outgoing connections.
func ephemeral() int {
	b, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range") // Linux; elsewhere the usual
	if fields := strings.Fields(string(b)); len(fields) == 2 {
		if low, err := strconv.Atoi(fields[0]); err == nil && low > 2048 {
			return low
		}
	}
	return 32768
}

// saveAddr stores addr, whole or not at all.
func saveAddr(path, addr string) error {
	if err := replace(path, []byte(addr+"\n")); err != nil {
		return fmt.Errorf("keep the broker's port: %w", err)
	}
	return nil
}

// singleListener returns a function that returns l.
func singleListener(l net.Listener) func(network, address string) (net.Listener, error) {
	return func(string, string) (net.Listener, error) { return l, nil }
}
