//go:build linux

// Package sockets gives a process sockets of a network namespace that it is not in: a
// process inside makes them and passes them on, since a socket belongs to the namespace
// that it was made in. The receiver needs no privilege, and no other process can send
// requests. Package dial uses the sockets; it is separate so that the serving program
// stays small.
package sockets

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Pair returns the two ends of a way to ask for sockets: one is for Give, the other for
// Ask, in another process.
func Pair() (server, client int, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("make a way to ask for sockets: %w", err)
	}
	return ends[0], ends[1], nil
}

// Serve makes sockets on request, in the namespace in which do calls its argument, until
// the peer closes. It closes its own end.
func Serve(server int, do func(func())) {
	defer unix.Close(server) //nolint:errcheck // only a handle
	request := make([]byte, 8)
	for {
		n, _, err := unix.Recvfrom(server, request, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		var fd int
		do(func() { fd, err = unix.Socket(family(request[0]), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) })
		if err := reply(server, fd, err); err != nil {
			return
		}
	}
}

// reply passes a socket on, or says why there is none.
func reply(server, fd int, err error) error {
	if err != nil {
		return unix.Send(server, []byte(err.Error()), unix.MSG_NOSIGNAL)
	}
	defer unix.Close(fd) //nolint:errcheck // who asked has it
	return unix.Sendmsg(server, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
}

// Kinds of sockets that are asked for.
const (
	kindIPv4 = '4'
	kindIPv6 = '6'
)

func family(kind byte) int {
	if kind == kindIPv6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// Request asks for a socket of TCP, of version 4 or 6, and returns its descriptor. One at a
// time may ask at one end.
func Request(client int, v6 bool) (int, error) {
	kind := byte(kindIPv4)
	if v6 {
		kind = kindIPv6
	}
	if err := unix.Send(client, []byte{kind}, unix.MSG_NOSIGNAL); err != nil {
		return -1, fmt.Errorf("ask for a socket: %w", err)
	}
	payload, control := make([]byte, 512), make([]byte, unix.CmsgSpace(4))
	size, rights, _, _, err := unix.Recvmsg(client, payload, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("ask for a socket: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:rights])
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(fmt.Errorf("no socket can be had: %s", payload[:size]), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("no socket can be had"), err)
	}
	return fds[0], nil
}
