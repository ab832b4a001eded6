//go:build linux

// Package sockets gives a process sockets of a network namespace that it is not in:
// somebody who is there makes them and passes them on, since a socket belongs to the
// namespace that it was made in. Who takes sockets needs no right for that, and nobody
// else has the way to ask. Package dial is what uses them; it is apart because the
// program that gives sockets is to stay small.
package sockets

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Pair returns the two ends of a way to ask for sockets: one is for Give, the other for
// Ask, in another process.
func Pair() (giver, taker int, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("make a way to ask for sockets: %w", err)
	}
	return ends[0], ends[1], nil
}

// Give makes sockets for who asks, where do carries out what makes them, until the other
// end is closed. It closes its own.
func Give(giver int, do func(func())) {
	defer unix.Close(giver) //nolint:errcheck // only a handle
	ask := make([]byte, 8)
	for {
		n, _, err := unix.Recvfrom(giver, ask, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		var fd int
		do(func() { fd, err = unix.Socket(family(ask[0]), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) })
		if err := answer(giver, fd, err); err != nil {
			return
		}
	}
}

// answer passes a socket on, or says why there is none.
func answer(giver, fd int, made error) error {
	if made != nil {
		return unix.Send(giver, []byte(made.Error()), unix.MSG_NOSIGNAL)
	}
	defer unix.Close(fd) //nolint:errcheck // who asked has it
	return unix.Sendmsg(giver, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
}

// Kinds of sockets that are asked for.
const (
	four = '4'
	six  = '6'
)

func family(kind byte) int {
	if kind == six {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// Ask asks for a socket of TCP, of version 4 or 6, and returns its descriptor. One at a
// time may ask at one end.
func Ask(taker int, v6 bool) (int, error) {
	kind := byte(four)
	if v6 {
		kind = six
	}
	if err := unix.Send(taker, []byte{kind}, unix.MSG_NOSIGNAL); err != nil {
		return -1, fmt.Errorf("ask for a socket: %w", err)
	}
	said, control := make([]byte, 512), make([]byte, unix.CmsgSpace(4))
	size, rights, _, _, err := unix.Recvmsg(taker, said, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("ask for a socket: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:rights])
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(fmt.Errorf("no socket can be had: %s", said[:size]), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("no socket can be had"), err)
	}
	return fds[0], nil
}
