package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// refuseOpen refuses users without a password, users without a superuser, and a broker without users that other machines can reach.
func refuseOpen(addr, host string, users []User) error {
	if len(users) > 0 {
		if slices.ContainsFunc(users, func(u User) bool { return u.Name == "" || u.Password == "" }) {
			return errors.New("broker: every user needs a name and a password")
		}
		if !slices.ContainsFunc(users, func(u User) bool { return u.Superuser }) {
			return errors.New("broker: one of the users must be the platform's own")
		}
		return nil
	}
	for _, place := range []string{addr, host} {
		if place != "" && !loopback(place) {
			return fmt.Errorf("broker: it would ask nobody, and others than this machine reach %s: give it users", place)
		}
	}
	return nil
}

// loopback reports whether an address, with a port or without, is one of loopback.
func loopback(place string) bool {
	if at, err := netip.ParseAddrPort(place); err == nil {
		return at.Addr().Unmap().IsLoopback()
	}
	if at, err := netip.ParseAddr(strings.Trim(place, "[]")); err == nil {
		return at.Unmap().IsLoopback()
	}
	name, _, _ := strings.Cut(place, ":")
	return name == "localhost"
}
