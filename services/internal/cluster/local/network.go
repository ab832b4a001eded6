//go:build linux

package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/lower"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/podstatus"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// Files of what joins the pods of an attempt, the hub: see supervise.Hub.
const (
	bridgeSocket = "hub"
	bridgeLog    = "hub.log"
)

// bridgeTimeout is how long a hub may take to answer, and to end.
const bridgeTimeout = 15 * time.Second

// allocateNumbers gives n pods of an attempt consecutive numbers in its network, and
// returns the first; zero where they have no network of their own, because the
// attempt has no Service.
func (c *Cluster) allocateNumbers(at attempt, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.servicesOf(at)) == 0 {
		return 0
	}
	g := c.attempts[at]
	for _, j := range c.jobs {
		if j.attempt == at {
			g.lastNumber = max(g.lastNumber, j.record.Number)
		}
	}
	first := g.lastNumber + 1
	g.lastNumber += n
	c.attempts[at] = g
	return first
}

// servicesOf returns those of an attempt. The cluster's lock is held.
func (c *Cluster) servicesOf(at attempt) []*corev1.Service {
	var all []*corev1.Service
	for _, o := range c.objects {
		if o.Service != nil && o.attempt() == at {
			all = append(all, o.Service)
		}
	}
	return all
}

// address returns that of the pod.
func (r record) address() string {
	if r.Number > 0 {
		return lower.Address(r.Number)
	}
	return ip
}

// network returns the pod's own, nil where it has the machine's.
func (r record) network() *shimapi.Network {
	if r.Number == 0 {
		return nil
	}
	return lower.Network(r.Job, r.Index, r.PodName, r.Number)
}

// hostLines returns the names in the network of an attempt. The cluster's lock is
// held.
func (c *Cluster) hostLines(at attempt) []string {
	var peers []lower.Peer
	for _, j := range c.jobs {
		if j.attempt != at || j.record.Number == 0 {
			continue
		}
		peers = append(peers, lower.Peer{
			Job: j.record.Job, Labels: podstatus.Labels(j.record.Job, j.record.Index), Number: j.record.Number,
			Hostname: lower.Hostname(j.record.Job, j.record.Index, j.record.PodName),
		})
	}
	return lower.Hosts(peers, c.servicesOf(at))
}

// updateHostsFiles tells the pods of an attempt that began before others were there of
// their names. What they were told stays as it is: lines are only added, each
// by one write, so that nobody reads half of one.
func (c *Cluster) updateHostsFiles(at attempt) {
	c.mu.Lock()
	lines := c.hostLines(at)
	c.mu.Unlock()
	for _, j := range c.jobsOf(at) {
		if j.record.Number == 0 {
			continue
		}
		j.mu.Lock()
		if j.launched && !j.removing && (j.state == nil || j.state.EndedAt.IsZero()) {
			if err := appendMissingLines(lower.HostsFile(c.disk.pod(j.id)), lines); err != nil {
				c.log.Error("cannot tell a pod of others", zap.String("job", j.record.Job.Name), zap.Error(err))
			}
		}
		j.mu.Unlock()
	}
}

// appendMissingLines adds to a file those lines that it lacks.
func appendMissingLines(path string, lines []string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	existing := strings.Split(string(b), "\n")
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(existing, l) })
	if len(lines) == 0 {
		return nil
	}
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // its pod reads it, whatever its user
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// probeNetworkIsolation returns the isolation of pods with networks of their own, or why
// there are none, and what to change.
func probeNetworkIsolation(d disk, binary string) (isolation, string) {
	i, err := strongestIsolation(d, binary, "--probe-network", 0, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_NET_ADMIN)
	if err != nil {
		return isolation{}, fmt.Sprintf("%v; %s", err, networkRemedy(err))
	}
	return i, ""
}

// networkRemedy says what to change so that pods can have networks.
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

// startInNetwork starts the supervisor of a locked job, which has the lock, where it has a
// cable to the others of its attempt.
func (c *Cluster) startInNetwork(j *job, lock *os.File) error {
	bridgeLock := c.bridgeLock(j.attempt)
	bridgeLock <- struct{}{}
	defer func() { <-bridgeLock }()
	log, err := os.OpenFile(filepath.Join(c.disk.pod(j.id), shimapi.Logs, "supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the supervisor's
	i, unavailable := c.networkIsolation()
	if unavailable != "" {
		return errors.New(unavailable)
	}
	r := shimapi.Request{
		Args: []string{c.binary, "supervise", c.disk.pod(j.id)}, Namespaces: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Ambient: i.ambient,
	}
	dir := c.disk.network(j.attempt)
	if err = requestShim(dir, r, log, lock); errors.Is(err, errNoBridge) {
		if err = c.startBridge(i, dir); err == nil {
			err = requestShim(dir, r, log, lock)
		}
	}
	if errors.Is(err, errNoBridge) {
		bridgeOutput, _ := os.ReadFile(filepath.Join(dir, bridgeLog))
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(bridgeOutput)))
	}
	return err
}

// bridgeLock returns what is held while an attempt's hub is spoken to.
func (c *Cluster) bridgeLock(at attempt) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.attempts[at]
	if g.bridgeLock == nil {
		g.bridgeLock = make(chan struct{}, 1)
		c.attempts[at] = g
	}
	return g.bridgeLock
}

// errNoBridge says that no hub answers.
var errNoBridge = errors.New("what joins the pods of the run does not answer")

// requestShim has the hub in dir start a supervisor.
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

// dialBridge speaks to the hub in dir, however long its path is.
func dialBridge(dir string) (*net.UnixConn, error) {
	address, done, err := bridgeAddress(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.DialUnix("unixpacket", nil, address)
}

// bridgeAddress returns the address of the hub in dir, until done is called.
func bridgeAddress(dir string) (address *net.UnixAddr, done func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	at := &net.UnixAddr{Net: "unixpacket", Name: fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), bridgeSocket)}
	return at, func() { _ = d.Close() }, nil
}

// startBridge starts a hub in dir, which can be spoken to at once.
func (c *Cluster) startBridge(i isolation, dir string) error {
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
	defer l.Close() //nolint:errcheck // the hub's
	file, err := l.File()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // the hub's
	p, err := i.startBridge(c.binary, dir, file)
	if err != nil {
		return fmt.Errorf("start what joins the pods of the run: %w", err)
	}
	go p.Wait() //nolint:errcheck // it outlives this process, or ends before it
	return nil
}

// startBridge starts a hub in dir that listens at l.
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
	defer log.Close() //nolint:errcheck // the hub's
	return os.StartProcess(binary, []string{binary, "supervise", "--hub", dir}, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1"},
		Files: []*os.File{null, log, log, l}, Sys: i.sysProcAttr(),
	})
}

// removeOrphanedNetworks removes what is left of attempts that are gone.
func (c *Cluster) removeOrphanedNetworks() {
	inUse := map[string]bool{}
	for _, j := range c.jobs {
		inUse[c.disk.network(j.attempt)] = true
	}
	for _, dir := range matching(filepath.Join(c.disk.networks(), "*")) {
		if !inUse[dir] {
			c.spawn(func() { c.removeNetwork(dir) })
		}
	}
}

// removeNetwork removes what joined the pods of an attempt, of which none is left,
// once it has ended: it does so by itself.
func (c *Cluster) removeNetwork(dir string) {
	pause := 100 * time.Microsecond
	for until := time.Now().Add(bridgeTimeout); time.Now().Before(until); pause = min(2*pause, 50*time.Millisecond) {
		conn, err := dialBridge(dir)
		if err != nil {
			break
		}
		_ = conn.Close()
		if !c.sleep(pause) {
			return
		}
	}
	if err := removeAll(dir); err != nil {
		c.log.Error("cannot remove what joined pods", zap.String("dir", dir), zap.Error(err))
	}
}
