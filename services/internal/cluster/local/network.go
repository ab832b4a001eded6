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

	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/status"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/translate"
)

// Files of what joins the pods of an attempt, the hub: see supervise.Hub.
const (
	hubSocket = "hub"
	hubLog    = "hub.log"
)

// hubPatience is how long a hub may take to answer, and to end.
const hubPatience = 15 * time.Second

// numbers gives n pods of an attempt consecutive numbers in its network, and
// returns the first; zero where they have no network of their own, because the
// attempt has no Service.
func (c *Cluster) numbers(at attempt, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.services(at)) == 0 {
		return 0
	}
	g := c.attempts[at]
	for _, j := range c.jobs {
		if j.attempt == at {
			g.last = max(g.last, j.rec.Number)
		}
	}
	first := g.last + 1
	g.last += n
	c.attempts[at] = g
	return first
}

// services returns those of an attempt. The cluster's lock is held.
func (c *Cluster) services(at attempt) []*corev1.Service {
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
		return translate.Address(r.Number)
	}
	return ip
}

// network returns the pod's own, nil where it has the machine's.
func (r record) network() *spec.Network {
	if r.Number == 0 {
		return nil
	}
	return translate.Network(r.Job, r.Index, r.PodName, r.Number)
}

// hosts returns the names in the network of an attempt. The cluster's lock is
// held.
func (c *Cluster) hosts(at attempt) []string {
	var peers []translate.Peer
	for _, j := range c.jobs {
		if j.attempt != at || j.rec.Number == 0 {
			continue
		}
		peers = append(peers, translate.Peer{
			Job: j.rec.Job, Labels: status.Labels(j.rec.Job, j.rec.Index), Number: j.rec.Number,
			Hostname: translate.Hostname(j.rec.Job, j.rec.Index, j.rec.PodName),
		})
	}
	return translate.Hosts(peers, c.services(at))
}

// introduce tells the pods of an attempt that began before others were there of
// their names. What they were told stays as it is: lines are only added, each
// by one write, so that nobody reads half of one.
func (c *Cluster) introduce(at attempt) {
	c.mu.Lock()
	lines := c.hosts(at)
	c.mu.Unlock()
	for _, j := range c.of(at) {
		if j.rec.Number == 0 {
			continue
		}
		j.mu.Lock()
		if j.launched && !j.leaving && (j.state == nil || j.state.Over.IsZero()) {
			if err := addLines(translate.HostsFile(c.disk.pod(j.id)), lines); err != nil {
				c.log.Error("cannot tell a pod of others", zap.String("job", j.rec.Job.Name), zap.Error(err))
			}
		}
		j.mu.Unlock()
	}
}

// addLines adds to a file those lines that it lacks.
func addLines(path string, lines []string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	has := strings.Split(string(b), "\n")
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(has, l) })
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

// probeNetworks returns the isolation of pods with networks of their own, or why
// there are none, and what to change.
func probeNetworks(d disk, binary string) (isolation, string) {
	i, err := strongest(d, binary, "--probe-network", 0, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_NET_ADMIN)
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
	return strings.Replace(remedy(), "CAP_SYS_ADMIN", "CAP_SYS_ADMIN and CAP_NET_ADMIN", 1)
}

// join starts the supervisor of a locked job, which has the lock, where it has a
// cable to the others of its attempt.
func (c *Cluster) join(j *job, lock *os.File) error {
	turn := c.turn(j.attempt)
	turn <- struct{}{}
	defer func() { <-turn }()
	log, err := os.OpenFile(filepath.Join(c.disk.pod(j.id), spec.Logs, "supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the supervisor's
	i, why := c.joined()
	if why != "" {
		return errors.New(why)
	}
	r := spec.Request{
		Args: []string{c.binary, "supervise", c.disk.pod(j.id)}, Namespaces: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Ambient: i.ambient,
	}
	dir := c.disk.network(j.attempt)
	if err = ask(dir, r, log, lock); errors.Is(err, errNoHub) {
		if err = c.startHub(i, dir); err == nil {
			err = ask(dir, r, log, lock)
		}
	}
	if errors.Is(err, errNoHub) {
		said, _ := os.ReadFile(filepath.Join(dir, hubLog))
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said)))
	}
	return err
}

// turn returns what is held while an attempt's hub is spoken to.
func (c *Cluster) turn(at attempt) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.attempts[at]
	if g.hub == nil {
		g.hub = make(chan struct{}, 1)
		c.attempts[at] = g
	}
	return g.hub
}

// errNoHub says that no hub answers.
var errNoHub = errors.New("what joins the pods of the run does not answer")

// ask has the hub in dir start a supervisor.
func ask(dir string, r spec.Request, log, lock *os.File) error {
	conn, err := dial(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoHub, err)
	}
	defer conn.Close() //nolint:errcheck // the answer is there
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(hubPatience))
	if _, _, err := conn.WriteMsgUnix(b, unix.UnixRights(int(log.Fd()), int(lock.Fd())), nil); err != nil {
		return fmt.Errorf("%w: %w", errNoHub, err)
	}
	answer := make([]byte, 64<<10)
	n, err := conn.Read(answer)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoHub, err)
	}
	var a spec.Answer
	if err := json.Unmarshal(answer[:n], &a); err != nil {
		return err
	}
	if a.Problem != "" {
		return errors.New(a.Problem)
	}
	return nil
}

// dial speaks to the hub in dir, however long its path is.
func dial(dir string) (*net.UnixConn, error) {
	address, done, err := socketIn(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.DialUnix("unixpacket", nil, address)
}

// socketIn returns the address of the hub in dir, until done is called.
func socketIn(dir string) (address *net.UnixAddr, done func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	at := &net.UnixAddr{Net: "unixpacket", Name: fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), hubSocket)}
	return at, func() { _ = d.Close() }, nil
}

// startHub starts a hub in dir, which can be spoken to at once.
func (c *Cluster) startHub(i isolation, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, hubSocket)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	address, done, err := socketIn(dir)
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
	p, err := i.hub(c.binary, dir, file)
	if err != nil {
		return fmt.Errorf("start what joins the pods of the run: %w", err)
	}
	go p.Wait() //nolint:errcheck // it outlives this process, or ends before it
	return nil
}

// hub starts a hub in dir that listens at l.
func (i isolation) hub(binary, dir string, l *os.File) (*os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close() //nolint:errcheck // only read
	log, err := os.OpenFile(filepath.Join(dir, hubLog), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the hub's
	return os.StartProcess(binary, []string{binary, "supervise", "--hub", dir}, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1"},
		Files: []*os.File{null, log, log, l}, Sys: i.attr(),
	})
}

// tidyNetworks removes what is left of attempts that are gone.
func (c *Cluster) tidyNetworks() {
	known := map[string]bool{}
	for _, j := range c.jobs {
		known[c.disk.network(j.attempt)] = true
	}
	for _, dir := range matching(filepath.Join(c.disk.networks(), "*")) {
		if !known[dir] {
			c.spawn(func() { c.removeNetwork(dir) })
		}
	}
}

// removeNetwork removes what joined the pods of an attempt, of which none is left,
// once it has ended: it does so by itself.
func (c *Cluster) removeNetwork(dir string) {
	pause := 100 * time.Microsecond
	for until := time.Now().Add(hubPatience); time.Now().Before(until); pause = min(2*pause, 50*time.Millisecond) {
		conn, err := dial(dir)
		if err != nil {
			break
		}
		_ = conn.Close()
		if !c.pause(pause) {
			return
		}
	}
	if err := removeAll(dir); err != nil {
		c.log.Error("cannot remove what joined pods", zap.String("dir", dir), zap.Error(err))
	}
}
