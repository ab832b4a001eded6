//go:build linux

package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/pod/proc"
	"github.com/benchmark-ai/bai/services/internal/pod/sockets"
)

// bridgeTimeout is how long a bridge waits for its first pod.
const bridgeTimeout = 10 * time.Second

// RunBridge connects the pods of one run: it creates their network, and starts their shims, which end with it. It listens at
// shimapi.BridgeFD, and ends with the last shim.
//
// All shims are children of this one process, so that each can have a virtual cable to the others even if this takes a user namespace,
// which they share.
func RunBridge() error {
	syscall.CloseOnExec(shimapi.BridgeFD)
	if err := unix.SetNonblock(shimapi.BridgeFD, false); err != nil {
		return fmt.Errorf("hub: listen: %w", err)
	}
	run, err := newNetwork()
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	h := &bridge{network: run, table: proc.NewTable(), conns: make(chan int)}
	go h.accept()
	h.loop()
	return nil
}

type bridge struct {
	network int
	table   *proc.Table
	conns   chan int
	pods    int
}

// accept passes connections on as long as the bridge runs.
func (h *bridge) accept() {
	for {
		c, _, err := unix.Accept4(shimapi.BridgeFD, unix.SOCK_CLOEXEC)
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no descriptor is free
			continue
		}
		h.conns <- c
	}
}

func (h *bridge) loop() {
	idle := time.NewTimer(bridgeTimeout)
	defer idle.Stop()
	for {
		select {
		case c := <-h.conns:
			h.serve(c)
		case <-h.table.Ends():
			if h.pods--; h.pods == 0 {
				return
			}
		case <-idle.C:
			if h.pods == 0 {
				return
			}
		}
	}
}

// serve serves one connection: it starts one shim.
func (h *bridge) serve(c int) {
	defer unix.Close(c) //nolint:errcheck // who asks has the answer, or does without
	r, files, err := receiveRequest(c)
	defer func() {
		for _, f := range files {
			_ = unix.Close(f)
		}
	}()
	var a shimapi.Response
	if err == nil {
		a.PID, err = h.start(r, files)
	}
	if err != nil {
		a.Problem = err.Error()
	}
	if a.PID != 0 {
		h.pods++
	}
	if b, err := json.Marshal(a); err == nil {
		_ = unix.Send(c, b, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	}
}

// receiveRequest reads a request and the descriptors sent with it.
func receiveRequest(c int) (shimapi.Request, []int, error) {
	var r shimapi.Request
	b, control := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(2*4))
	timeout := unix.NsecToTimeval(int64(bridgeTimeout))
	if err := unix.SetsockoptTimeval(c, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return r, nil, err
	}
	var n, m int
	err := sockets.Uninterrupted(time.Now().Add(bridgeTimeout), func() (err error) {
		n, m, _, _, err = unix.Recvmsg(c, b, control, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	if err != nil {
		return r, nil, err
	}
	files, err := receivedFiles(control[:m])
	if err != nil {
		return r, files, err
	}
	if err := json.Unmarshal(b[:n], &r); err != nil {
		return r, files, err
	}
	if len(r.Args) == 0 {
		return r, files, errors.New("a request says what to start")
	}
	return r, files, nil
}

// receivedFiles returns the log and the lock that come with a request.
func receivedFiles(control []byte) ([]int, error) {
	wrong := errors.New("a request comes with a log and a lock")
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(wrong, err)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 2 {
		return files, errors.Join(wrong, err)
	}
	return files, nil
}

func (h *bridge) start(r shimapi.Request, files []int) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close() //nolint:errcheck // only read
	log, lock := uintptr(files[0]), uintptr(files[1])
	return h.table.Start(proc.Command{
		Path: r.Args[0], Args: r.Args, Env: os.Environ(), Dir: "/", Session: true,
		Files:      []uintptr{null.Fd(), log, log, lock, uintptr(h.network)},
		Namespaces: r.Namespaces, Ambient: r.Ambient,
	})
}
