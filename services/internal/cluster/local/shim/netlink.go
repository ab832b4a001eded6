//go:build linux

package shim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// attribute returns an attribute of a netlink message: its length, its kind and its value, padded to a multiple of four bytes.
func attribute(kind uint16, parts ...[]byte) []byte {
	held := slices.Concat(parts...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofRtAttr+len(held))) //nolint:gosec // attributes are short
	b = binary.NativeEndian.AppendUint16(b, kind)
	return slices.Concat(b, held, make([]byte, -len(held)&3))
}

func text(s string) []byte { return append([]byte(s), 0) }

func number(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) } //nolint:gosec // an index or a descriptor

// linkInfo returns the header of a link message: up or not.
func linkInfo(up bool) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	if up {
		binary.NativeEndian.PutUint32(b[8:], unix.IFF_UP)
		binary.NativeEndian.PutUint32(b[12:], unix.IFF_UP)
	}
	return b
}

// bridgeMessage returns the message that creates a bridge, which is up.
func bridgeMessage(name string) []byte {
	return linkRequest(linkInfo(true), attribute(unix.IFLA_IFNAME, text(name)),
		attribute(unix.IFLA_LINKINFO, attribute(unix.IFLA_INFO_KIND, text("bridge"))))
}

// vethPeer is the attribute for the other end of a cable.
const vethPeer = 1

// vethMessage returns the message that creates a cable: one end, which is up, is attached to the bridge with an index, the other is in a
// network namespace. Both have the MTU, or the kernel's default if it is 0; the bridge has the least of its cables.
func vethMessage(name string, bridge int, peerName string, namespace, mtu int) []byte {
	var size []byte
	if mtu > 0 {
		size = attribute(unix.IFLA_MTU, number(mtu))
	}
	peer := attribute(vethPeer, linkInfo(false), attribute(unix.IFLA_IFNAME, text(peerName)),
		attribute(unix.IFLA_NET_NS_FD, number(namespace)), size)
	return linkRequest(linkInfo(true), attribute(unix.IFLA_IFNAME, text(name)), attribute(unix.IFLA_MASTER, number(bridge)), size,
		attribute(unix.IFLA_LINKINFO, attribute(unix.IFLA_INFO_KIND, text("veth")), attribute(unix.IFLA_INFO_DATA, peer)))
}

// linkRequest is a message that has a link made, and its making acknowledged.
func linkRequest(parts ...[]byte) []byte {
	b := make([]byte, unix.SizeofNlMsghdr)
	payload := slices.Concat(parts...)
	binary.NativeEndian.PutUint32(b, uint32(len(b)+len(payload))) //nolint:gosec // messages are short
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_NEWLINK)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	return slices.Concat(b, payload)
}

// links are the sockets to configure the links of one network namespace. They stay in it wherever their thread goes.
type links struct{ route, inet int }

// openLinks opens those of the calling thread's namespace.
func openLinks() (links, error) {
	route, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return links{}, fmt.Errorf("open netlink: %w", err)
	}
	inet, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = unix.Close(route)
		return links{}, fmt.Errorf("open a socket: %w", err)
	}
	return links{route, inet}, nil
}

func (l links) close() {
	_ = unix.Close(l.route)
	_ = unix.Close(l.inet)
}

// roundTrip sends a request and returns the kernel's answer.
func (l links) roundTrip(message []byte) error {
	if err := unix.Sendto(l.route, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	b := make([]byte, 8192)
	n, _, err := unix.Recvfrom(l.route, b, 0)
	switch {
	case err != nil:
		return err
	case n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR:
		return syscall.EPROTO
	}
	if code := int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])); code != 0 { //nolint:gosec // the kernel's way to say so
		return syscall.Errno(-code) //nolint:gosec // the same
	}
	return nil
}

// ioctl does one request for a link by its name, and returns its result.
func (l links) ioctl(name string, what uint, with func(*unix.Ifreq) error) (*unix.Ifreq, error) {
	r, err := unix.NewIfreq(name)
	if err == nil && with != nil {
		err = with(r)
	}
	if err == nil {
		err = unix.IoctlIfreq(l.inet, what, r)
	}
	return r, err
}

// index returns the index of a link.
func (l links) index(name string) (int, error) {
	r, err := l.ioctl(name, unix.SIOCGIFINDEX, nil)
	if err != nil {
		return 0, err
	}
	return int(r.Uint32()), nil
}

// setUp brings a link up.
func (l links) setUp(name string) error {
	r, err := l.ioctl(name, unix.SIOCGIFFLAGS, nil)
	if err != nil {
		return err
	}
	flags := r.Uint16()
	_, err = l.ioctl(name, unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(flags | unix.IFF_UP); return nil })
	return err
}

// setAddress sets the address of a link, and the mask of its network.
func (l links) setAddress(name string, address, mask []byte) error {
	if _, err := l.ioctl(name, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(address) }); err != nil {
		return err
	}
	_, err := l.ioctl(name, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) })
	return err
}
