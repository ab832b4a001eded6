package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// AddrError says that a name leads to an address that is not allowed.
type AddrError struct{ Addr netip.Addr }

// Error implements error.
func (e *AddrError) Error() string { return fmt.Sprintf("address %s is not allowed", e.Addr) }

// Dialer returns a dialer that connects only to addresses that p allows, whichever
// address a name resolves to at that time; for others it returns *AddrError.
func (p Policy) Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 30 * time.Second, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connect to %q: %w", address, err)
		}
		if !p.AllowsAddr(ap.Addr()) {
			return &AddrError{Addr: ap.Addr()}
		}
		return nil
	}}
}
