//go:build linux

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/control"
)

// Files of a bridge, the process that connects the pods of an attempt: see package shim.
const (
	bridgeSocket = "hub"
	bridgeLog    = "hub.log"
)

// bridgeTimeout is how long a bridge may take to answer, and to end.
const bridgeTimeout = 15 * time.Second

// probeNetworkIsolation returns the isolation of pods with networks of their own, or why there are none, and the remedy.
func probeNetworkIsolation(f disk.Folder, binary string) (isolation, string) {
	i, err := strongestIsolation(f, binary, "--probe-network", 0, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_NET_ADMIN)
	if err != nil {
		return isolation{}, fmt.Sprintf("%v; %s", err, networkRemedy(err))
	}
	return i, ""
}

// networkRemedy returns the setting to change so that pods can have networks.
func networkRemedy(err error) string {
	b, _ := os.ReadFile("/proc/sys/user/max_net_namespaces")
	switch {
	case strings.TrimSpace(string(b)) == "0":
		return "set sysctl user.max_net_namespaces above 0"
	case strings.Contains(err.Error(), syscall.EOPNOTSUPP.Error()):
		return "load the kernel modules bridge and veth (modprobe -a bridge veth)"
	}
	return strings.Replace(namespaceRemedy(), "CAP_SYS_ADMIN", "CAP_SYS_ADMIN and CAP_NET_ADMIN", 1)
}

// startInNetwork starts the shim of a pod as a child of its attempt's bridge, with the pod's lock. The bridge is in the folder network.
func (r *Runner) startInNetwork(id, network string, lock *os.File) error {
	defer r.bridges.Hold(network)()
	log, err := os.OpenFile(filepath.Join(r.folder.Pod(id), shimapi.Logs, "supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the shim's
	i, unavailable := r.networkIsolation()
	if unavailable != "" {
		return errors.New(unavailable)
	}
	request := shimapi.Request{
		Args: []string{r.Binary, "supervise", r.folder.Pod(id)}, Namespaces: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Ambient: i.ambient,
	}
	if err = requestShim(network, request, log, lock); errors.Is(err, errNoBridge) {
		if err = startBridge(i, r.Binary, network); err == nil {
			err = requestShim(network, request, log, lock)
		}
	}
	if errors.Is(err, errNoBridge) {
		bridgeOutput, _ := os.ReadFile(filepath.Join(network, bridgeLog))
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(bridgeOutput)))
	}
	return err
}

// errNoBridge means that no bridge answers.
var errNoBridge = errors.New("what joins the pods of the run does not answer")

// requestShim has the bridge in dir start a shim.
func requestShim(dir string, r shimapi.Request, log, lock *os.File) error {
	conn, err := dialBridge(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoBridge, err)
	}
	defer conn.Close() //nolint:errcheck // the answer is there
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(bridgeTimeout))
	if _, _, err := conn.WriteMsgUnix(b, unix.UnixRights(int(log.Fd()), int(lock.Fd())), nil); err != nil {
		return fmt.Errorf("%w: %w", errNoBridge, err)
	}
	answer := make([]byte, 64<<10)
	n, err := conn.Read(answer)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoBridge, err)
	}
	var a shimapi.Response
	if err := json.Unmarshal(answer[:n], &a); err != nil {
		return err
	}
	if a.Problem != "" {
		return errors.New(a.Problem)
	}
	return nil
}

// dialBridge connects to the bridge in dir, however long its path is.
func dialBridge(dir string) (*net.UnixConn, error) {
	address, done, err := bridgeAddress(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.DialUnix("unixpacket", nil, address)
}

// bridgeAddress returns the address of the bridge in dir, until done is called.
func bridgeAddress(dir string) (address *net.UnixAddr, done func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	at := &net.UnixAddr{Net: "unixpacket", Name: fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), bridgeSocket)}
	return at, func() { _ = d.Close() }, nil
}

// startBridge starts a bridge in dir, which can be spoken to at once.
func startBridge(i isolation, binary, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, bridgeSocket)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	address, done, err := bridgeAddress(dir)
	if err != nil {
		return err
	}
	defer done()
	l, err := net.ListenUnix("unixpacket", address)
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close() //nolint:errcheck // the bridge's
	file, err := l.File()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // the bridge's
	p, err := i.startBridge(binary, dir, file)
	if err != nil {
		return fmt.Errorf("start what joins the pods of the run: %w", err)
	}
	go p.Wait() //nolint:errcheck // it outlives this process, or ends before it
	return nil
}

// startBridge starts a bridge in dir that listens at l.
func (i isolation) startBridge(binary, dir string, l *os.File) (*os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close() //nolint:errcheck // only read
	log, err := os.OpenFile(filepath.Join(dir, bridgeLog), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the bridge's
	return os.StartProcess(binary, []string{binary, "supervise", "--hub", dir}, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1"},
		Files: []*os.File{null, log, log, l}, Sys: i.sysProcAttr(),
	})
}

// RemoveNetwork removes the bridge of an attempt without pods, once the bridge has ended by itself. A bridge that does not end in its time
// is killed: a signal may have stopped it.
func (r *Runner) RemoveNetwork(ctx context.Context, dir string) {
	pause := shortWaits()
	for until := time.Now().Add(bridgeTimeout); time.Now().Before(until); {
		conn, err := dialBridge(dir)
		if err != nil {
			break
		}
		_ = conn.Close()
		if !control.Sleep(ctx, pause.Next()) {
			return
		}
	}
	if err := killBridges(dir); err != nil {
		r.log.Error("cannot kill what joined pods", zap.String("dir", dir), zap.Error(err))
	}
	if err := disk.RemoveAll(dir); err != nil {
		r.log.Error("cannot remove what joined pods", zap.String("dir", dir), zap.Error(err))
	}
}

// killBridges kills the bridges in dir, which are recognized by their arguments: one that was stopped may have been replaced by another.
func killBridges(dir string) error {
	args := []byte("\x00supervise\x00--hub\x00" + dir + "\x00")
	var failed error
	for _, p := range shimapi.Processes() {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline"))
		if err != nil || p.Zombie || !bytes.HasSuffix(b, args) {
			continue
		}
		if err := signalProcess(p.PID, p.StartTicks, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			failed = err
		}
	}
	return failed
}
