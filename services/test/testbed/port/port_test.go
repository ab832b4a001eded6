package port_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/internal/tooltest"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// envHolder has the ports that a process of this program reserves 20 of.
const envHolder = "BAI_TEST_PORT_HOLDER"

func TestMain(m *testing.M) {
	if text := os.Getenv(envHolder); text != "" {
		if err := holdSome(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// holdSome prints the ports that it reserves, and holds them until its input ends.
func holdSome(text string) error {
	var from []int
	if err := json.Unmarshal([]byte(text), &from); err != nil {
		return err
	}
	r, err := port.ReserveFrom(from, 20)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(r.Ports); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startHolder starts a process that holds 20 of some ports until the test ends.
func startHolder(t *testing.T, from []int) (cmd *exec.Cmd, held func() []int) {
	t.Helper()
	text, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), envHolder+"="+string(text)), t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // it may have been killed
	})
	return cmd, func() []int {
		line, err := bufio.NewReader(out).ReadBytes('\n')
		var ports []int
		if err == nil {
			err = json.Unmarshal(line, &ports)
		}
		if err != nil {
			t.Fatalf("the process does not say which ports it holds: %v", err)
		}
		return ports
	}
}

// some are 100 ports, some of which other processes may have.
func some(t *testing.T) []int {
	t.Helper()
	r, err := port.Reserve(100)
	if err != nil {
		t.Fatal(err)
	}
	ports := r.Ports
	if err := r.Release(); err != nil {
		t.Fatal(err)
	}
	return ports
}

func TestTwoProcessesAtOnceHaveNoPortInCommon(t *testing.T) {
	t.Parallel()
	from := some(t)
	_, first := startHolder(t, from)
	_, second := startHolder(t, from)
	all := append(first(), second()...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 40 {
		t.Errorf("they hold %d ports, want 20 each", n)
	}
}

func TestAProcessThatIsKilledHoldsNoPorts(t *testing.T) {
	t.Parallel()
	cmd, held := startHolder(t, some(t))
	ports := held()
	if r, err := port.ReserveFrom(ports, 1); err == nil {
		t.Errorf("port %d was had while the process lived", r.Ports)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()                                  // by our own signal
	r, err := port.ReserveFrom(ports, len(ports)/2) // others may be quick
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Release(); err != nil {
		t.Error(err)
	}
}

func TestAPortOfALiveListenerIsNotReserved(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"on loopback": "127.0.0.1:0", "on all addresses": "0.0.0.0:0", "on all addresses of both protocols": ":0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := number(t, listen(t, addr).Addr())
			if _, err := port.ReserveFrom([]int{n}, 1); err == nil || !strings.Contains(err.Error(), "address already in use") {
				t.Errorf("Reserve: %v", err)
			}
		})
	}
}

func TestAServerListensOnAReservedPortAgainAndAgain(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]string{"on loopback": "127.0.0.1", "on all addresses": "0.0.0.0", "on all addresses of both protocols": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := port.ForTest(t, 1)[0]
			for range 3 {
				serveOnce(t, host, n)
			}
		})
	}
}

// serveOnce listens on a port, accepts one connection and closes both. The server's side
// of it remains in the kernel for a while.
func serveOnce(t *testing.T, host string, port int) {
	t.Helper()
	l := listen(t, fmt.Sprintf("%s:%d", host, port))
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Close(), server.Close(), client.Close()); err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock()   // a child of another test has a copy of the listener until it executes its program
	syscall.ForkLock.RUnlock() //nolint:staticcheck // nothing is to be done then
}

func TestAReservedPortIsNoOutgoingConnections(t *testing.T) {
	t.Parallel()
	to := listen(t, "127.0.0.1:0").Addr().String()
	n := port.ForTest(t, 1)[0]
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n}, Timeout: time.Minute}
	if c, err := d.DialContext(t.Context(), "tcp", to); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a connection from port %d: %v, %v", n, c, err)
	}
}

func TestAReservedPortLiesOutsideOfTheRangeOfOutgoingConnections(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		tooltest.Missing(t, "the range of ports is not shown: %v", err)
	}
	var low, high int
	if _, err := fmt.Sscan(string(b), &low, &high); err != nil || low < 11000 {
		t.Skipf("the range is %s: %v", b, err)
	}
	for _, n := range port.ForTest(t, 50) {
		if low <= n && n <= high {
			t.Errorf("port %d lies between %d and %d", n, low, high)
		}
	}
}

func TestAReservationThatFailsHoldsNothing(t *testing.T) {
	t.Parallel()
	n := number(t, listen(t, "127.0.0.1:0").Addr())
	ports := append(some(t), n)
	if _, err := port.ReserveFrom(ports, len(ports)); err == nil {
		t.Fatal("a port that somebody listens on was reserved")
	}
	r, err := port.ReserveFrom(ports, len(ports)/2) // others may be quick
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Release(); err != nil {
		t.Error(err)
	}
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it may be closed
	return l
}

func number(t *testing.T, a net.Addr) int {
	t.Helper()
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		t.Fatalf("%v is no address of TCP", a)
	}
	return tcp.Port
}
