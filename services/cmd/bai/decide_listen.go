package main

import (
	"fmt"
	"net/netip"
)

// exposed reports whether others than this machine reach an address that is listened
// on.
func exposed(at netip.AddrPort) bool { return !at.Addr().Unmap().IsLoopback() }

// refuseExposed refuses a listener that others than this machine reach, where nobody
// has said that this is meant.
func refuseExposed(listen string, at netip.AddrPort, allowed bool) error {
	if allowed || !exposed(at) {
		return nil
	}
	return fmt.Errorf("--listen %s: whoever reaches %s could run any command as this user, because the API asks for no password: "+
		"listen on loopback (--listen 127.0.0.1:%d) and let others in through ssh -L, or say --allow-anyone", listen, at, at.Port())
}

// warnExposed says at each start that the API lets anyone in; empty where it does not.
func warnExposed(at netip.AddrPort) string {
	if !exposed(at) {
		return ""
	}
	return fmt.Sprintf("anyone who reaches %s can run any command as this user (--allow-anyone)", at)
}
