package main

import (
	"fmt"
	"net/netip"
)

// exposed reports whether other machines can reach a listening address.
func exposed(at netip.AddrPort) bool { return !at.Addr().Unmap().IsLoopback() }

// refuseExposed refuses a listener that other machines can reach, unless that is
// allowed.
func refuseExposed(listen string, at netip.AddrPort, allowed bool) error {
	if allowed || !exposed(at) {
		return nil
	}
	return fmt.Errorf("--listen %s: whoever reaches %s could run any command as this user, because the API asks for no password: "+
		"listen on loopback (--listen 127.0.0.1:%d) and let others in through ssh -L, or say --allow-anyone", listen, at, at.Port())
}

// warnExposed returns a warning if other machines can reach the API, or "".
func warnExposed(at netip.AddrPort) string {
	if !exposed(at) {
		return ""
	}
	return fmt.Sprintf("anyone who reaches %s can run any command as this user (--allow-anyone)", at)
}
