//go:build linux

package shim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// Names of links. The bridge and an end of each pod's cable are in the network
// of the run, the other end is in that of the pod.
const (
	bridgeName = "run"
	portName   = "pod"  // and the pod's number
	ownName    = "eth0" // as in any container
)

// ownNetwork is the path of a thread's own network namespace.
const ownNetwork = "/proc/thread-self/ns/net"

// newNetwork creates the network of a run: a namespace with only a bridge. It exists as long as the returned descriptor is open.
func newNetwork() (int, error) {
	type made struct {
		fd  int
		err error
	}
	done := make(chan made)
	go func() { // on a thread that ends with the goroutine
		runtime.LockOSThread()
		fd, err := makeNetwork()
		done <- made{fd, err}
	}()
	m := <-done
	if m.err != nil {
		return -1, fmt.Errorf("make a network: %w", m.err)
	}
	return m.fd, nil
}

// makeNetwork does the work of newNetwork on the calling thread, which enters the namespace.
func makeNetwork() (int, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return -1, fmt.Errorf("a namespace: %w", err)
	}
	l, err := openLinks()
	if err != nil {
		return -1, err
	}
	defer l.close()
	if err := l.roundTrip(bridgeMessage(bridgeName)); err != nil {
		return -1, fmt.Errorf("a bridge: %w", err)
	}
	return unix.Open(ownNetwork, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// joinNetwork moves the calling thread, and the processes that it starts, into a network namespace with a hostname of the pod's own and a
// cable to the network of its run.
func joinNetwork(n shimapi.Network, run int) error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("make the pod's network: a namespace: %w", err)
	}
	if err := unix.Sethostname([]byte(n.Hostname)); err != nil {
		return fmt.Errorf("name the pod %q: %w", n.Hostname, err)
	}
	own, err := unix.Open(ownNetwork, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make the pod's network: %w", err)
	}
	defer unix.Close(own) //nolint:errcheck // this thread is in it
	if err := attachVeth(n, run, own); err != nil {
		return fmt.Errorf("make the pod's network: a cable to its run's: %w", err)
	}
	if err := setAddresses(n); err != nil {
		return fmt.Errorf("make the pod's network: %w", err)
	}
	return nil
}

// attachVeth creates the pod's cable in the run's network, and returns to the own one.
func attachVeth(n shimapi.Network, run, own int) error {
	if err := unix.Setns(run, unix.CLONE_NEWNET); err != nil {
		return err
	}
	l, err := openLinks()
	if err := errors.Join(err, unix.Setns(own, unix.CLONE_NEWNET)); err != nil {
		return err
	}
	defer l.close()
	bridge, err := l.index(bridgeName)
	if err != nil {
		return err
	}
	return l.roundTrip(vethMessage(portName+strconv.Itoa(n.Number), bridge, ownName, own, n.MTU))
}

// setAddresses sets the addresses of the pod's links.
func setAddresses(n shimapi.Network) error {
	address, mask, err := addressAndMask(n)
	if err != nil {
		return err
	}
	l, err := openLinks()
	if err != nil {
		return err
	}
	defer l.close()
	for _, err := range []error{l.setUp("lo"), l.setAddress(ownName, address, mask), l.setUp(ownName)} {
		if err != nil {
			return err
		}
	}
	return nil
}

// addressAndMask returns the bytes of a pod's address and of the mask of its network.
func addressAndMask(n shimapi.Network) (address, mask []byte, err error) {
	a, err := netip.ParseAddr(n.Address)
	if err != nil || !a.Is4() || n.Prefix < 1 || n.Prefix > 32 {
		return nil, nil, fmt.Errorf("%s/%d is no address: %w", n.Address, n.Prefix, syscall.EINVAL)
	}
	return a.AsSlice(), binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-n.Prefix)), nil
}

// ProbeNetwork returns why pods cannot have networks of their own, nil if they can. It is run in the namespaces of a bridge.
func ProbeNetwork() error {
	run, err := newNetwork()
	if err != nil {
		return err
	}
	defer unix.Close(run) //nolint:errcheck // it goes with it
	done := make(chan error)
	go func() { // on a thread that ends with the goroutine
		runtime.LockOSThread()
		done <- joinNetwork(shimapi.Network{Number: 1, Address: "10.0.0.1", Prefix: 16, Hostname: "probe"}, run)
	}()
	return <-done
}
