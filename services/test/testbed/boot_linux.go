package testbed

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/kubecluster"
)

// bootTimeout is how long a test waits for the one cluster with nodes that there
// can be on a machine.
const bootTimeout = 10 * time.Minute

// boot boots a cluster that goes with the test.
func boot(tb testing.TB, nodes int) *Cluster {
	tb.Helper()
	return bootAs(tb, kubecluster.Settings{Name: "t-" + randomText(), Nodes: nodes, Timeout: bootTimeout})
}

func bootAs(tb testing.TB, s kubecluster.Settings) *Cluster {
	tb.Helper()
	info, stop, err := Boot(tb.Context(), s, true)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
	return &Cluster{Info: info, Own: true}
}

// simulated boots a cluster for simulated nodes.
func simulated(tb testing.TB) *Cluster {
	tb.Helper()
	return bootAs(tb, kubecluster.Settings{Name: "t-" + randomText(), Scheduler: true})
}

// Boot builds the programs and boots a cluster, in a process of its own. An owned cluster
// ends with this process, or when stop is called; another one when it is ended by name.
func Boot(ctx context.Context, s kubecluster.Settings, owned bool) (info kubecluster.Info, stop func() error, err error) {
	k, err := kit.Build(ctx, kit.Want{Nodes: s.Nodes > 0, Oldest: s.Nodes == 0 && !s.Scheduler && os.Getenv(EnvOldest) != ""})
	if err != nil {
		return info, nil, err
	}
	s.Bin = cmp.Or(s.Bin, k.Bin)
	if s.Nodes > 0 {
		s.Images = []string{k.Pause, k.Debian}
	}
	text, err := json.Marshal(map[string]any{"Settings": s, "Owned": owned})
	if err != nil {
		return info, nil, err
	}
	return start(k.Keeper, string(text), owned)
}

// start starts a keeper, and waits until its cluster is up.
func start(program, order string, owned bool) (info kubecluster.Info, stop func() error, err error) {
	cmd := exec.Command(program, "keep", order) //nolint:gosec,noctx // ends with its standard input
	output := &lockedBuffer{}
	stderr := output.String
	cmd.SysProcAttr = ownSession()
	var pipe io.WriteCloser
	if owned {
		cmd.Stderr = output
		if pipe, err = cmd.StdinPipe(); err != nil {
			return info, nil, err
		}
	}
	if !owned { // its later output is not read
		log, err := os.CreateTemp("", "bai-bed-*.log")
		if err != nil {
			return info, nil, err
		}
		defer log.Close()           //nolint:errcheck // the keeper has it
		defer os.Remove(log.Name()) //nolint:errcheck // it needs no name
		cmd.Stderr = log
		stderr = func() string {
			b, _ := os.ReadFile(log.Name())
			return string(b)
		}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return info, nil, err
	}
	if err := cmd.Start(); err != nil {
		return info, nil, fmt.Errorf("start the keeper: %w", err)
	}
	stop = sync.OnceValue(func() error {
		if pipe == nil {
			return cmd.Process.Release()
		}
		_ = pipe.Close()
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("the keeper of the cluster: %w\n%s", err, output)
		}
		return nil
	})
	if err := json.NewDecoder(out).Decode(&info); err != nil {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		return info, nil, fmt.Errorf("the cluster is not up: %w\n%s", err, stderr())
	}
	return info, stop, nil
}

// lockedBuffer may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func randomText() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x", b)
}

// ownSession keeps a terminal's Ctrl-C from the keeper, which ends with its
// owner anyway.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
