//go:build linux

// Package sockets gives a process sockets of a network namespace that it is not in: a
// process inside makes them and passes them on, since a socket belongs to the namespace
// that it was made in. The receiver needs no privilege, and no other process can send
// requests. Package dial uses the sockets; it is separate so that the serving program
// stays small.
package sockets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Pair returns the two ends of a way to ask for sockets: one is for Serve, the other for
// a Client, in another process.
func Pair() (server, client int, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("make a way to ask for sockets: %w", err)
	}
	return ends[0], ends[1], nil
}

// A request is the kind of a socket and a sequence number, and a reply that number and either
// a descriptor or the reason why there is none.
const (
	kindIPv4 = '4'
	kindIPv6 = '6'

	sequenceSize = 4
	requestSize  = 1 + sequenceSize
	replySize    = 512 // at most
)

// Serve makes sockets on request, in the namespace in which do calls its argument, until
// the peer closes. It closes its own end.
func Serve(server int, do func(func())) {
	defer unix.Close(server) //nolint:errcheck // only a handle
	request := make([]byte, requestSize)
	for {
		n, _, err := unix.Recvfrom(server, request, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != requestSize {
			return
		}
		var fd int
		do(func() { fd, err = unix.Socket(family(request[0]), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) })
		if err := reply(server, request[1:], fd, err); err != nil {
			return
		}
	}
}

// reply passes a socket on, or says why there is none.
func reply(server int, sequence []byte, fd int, err error) error {
	if err != nil {
		text := append(slices.Clone(sequence), err.Error()...)
		return Uninterrupted(time.Time{}, func() error { return unix.Send(server, text[:min(len(text), replySize)], unix.MSG_NOSIGNAL) })
	}
	defer unix.Close(fd) //nolint:errcheck // who asked has it
	return Uninterrupted(time.Time{}, func() error { return unix.Sendmsg(server, sequence, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL) })
}

func family(kind byte) int {
	if kind == kindIPv6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// Uninterrupted calls do until no signal interrupts it, or until a time that is not zero, and
// returns the error of the last call: a socket with a time limit is not read again by itself
// (signal(7)).
func Uninterrupted(until time.Time, do func() error) error {
	for {
		if err := do(); !errors.Is(err, unix.EINTR) || !until.IsZero() && time.Now().After(until) {
			return err
		}
	}
}

// Client asks for sockets at its end of a pair. One goroutine at a time may use it.
type Client struct {
	fd       int
	timeout  time.Duration
	sequence uint32
}

// NewClient returns a client that waits so long for a socket. Its error is that of a
// descriptor that is not an end of a pair.
func NewClient(fd int, timeout time.Duration) (*Client, error) {
	limit := unix.NsecToTimeval(int64(timeout))
	for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &limit); err != nil {
			return nil, fmt.Errorf("descriptor %d gives no sockets: %w", fd, err)
		}
	}
	return &Client{fd: fd, timeout: timeout}, nil
}

// Request asks for a socket of TCP, of version 4 or 6, and returns its descriptor. A socket
// that comes too late for the request that asked for it is closed by the next one.
func (c *Client) Request(v6 bool) (int, error) {
	c.sequence++
	request := []byte{kindIPv4, 0, 0, 0, 0}
	if v6 {
		request[0] = kindIPv6
	}
	binary.BigEndian.PutUint32(request[1:], c.sequence)
	until := time.Now().Add(c.timeout)
	if err := Uninterrupted(until, func() error { return unix.Send(c.fd, request, unix.MSG_NOSIGNAL) }); err != nil {
		return -1, fmt.Errorf("ask for a socket: %w", err)
	}
	for {
		sequence, fd, err := c.receive(until)
		switch {
		case sequence == c.sequence:
			return fd, err
		case fd >= 0:
			_ = unix.Close(fd)
		case errors.Is(err, errNoReply):
			return -1, err
		}
		if time.Now().After(until) {
			return -1, fmt.Errorf("ask for a socket: %w", unix.ETIMEDOUT)
		}
	}
}

// errNoReply is the error of a Client that has not got a reply.
var errNoReply = errors.New("ask for a socket")

// receive receives one reply: the number of its request, and a descriptor, or -1 and why there is none.
func (c *Client) receive(until time.Time) (sequence uint32, fd int, err error) {
	payload, control := make([]byte, replySize), make([]byte, unix.CmsgSpace(4))
	size, rights := 0, 0
	err = Uninterrupted(until, func() (err error) {
		size, rights, _, _, err = unix.Recvmsg(c.fd, payload, control, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	switch {
	case err != nil:
		return 0, -1, fmt.Errorf("%w: %w", errNoReply, err)
	case size < sequenceSize:
		return 0, -1, fmt.Errorf("%w: the other end has closed", errNoReply)
	}
	sequence, text := binary.BigEndian.Uint32(payload), payload[sequenceSize:size]
	messages, err := unix.ParseSocketControlMessage(control[:rights])
	if err != nil || len(messages) != 1 {
		return sequence, -1, errors.Join(fmt.Errorf("no socket can be had: %s", text), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return sequence, -1, errors.Join(errors.New("no socket can be had"), err)
	}
	return sequence, fds[0], nil
}
