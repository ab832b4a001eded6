//go:build linux

package link

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// routesFile is the kernel's table of routes of the network namespace of this process.
const routesFile = "/proc/thread-self/net/route"

// SetMTU sets the MTU of the link by which the pod of this process reaches its network, and
// returns the name of the link and the MTU before. It needs CAP_NET_ADMIN. The error of a
// link that does not take the size is for the user.
func SetMTU(size int) (name string, before int, err error) {
	routes, err := os.ReadFile(routesFile)
	if err != nil {
		return "", 0, err
	}
	all, err := net.Interfaces()
	if err != nil {
		return "", 0, fmt.Errorf("list the links: %w", err)
	}
	names := make([]string, 0, len(all))
	for _, l := range all {
		names = append(names, l.Name)
	}
	if name, err = decideLink(string(routes), names); err != nil {
		return "", 0, err
	}
	before, err = change(name, size)
	return name, before, err
}

// change sets the MTU of a link, and returns the one before.
func change(name string, size int) (before int, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	r, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFMTU, r)
	}
	if err != nil {
		return 0, fmt.Errorf("read the MTU of %s: %w", name, err)
	}
	before = int(r.Uint32())
	r.SetUint32(uint32(size)) //nolint:gosec // a descriptor bounds it
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFMTU, r); err != nil {
		return before, fmt.Errorf("set the MTU of %s to %d (it is %d): %w", name, size, before, err)
	}
	return before, nil
}
