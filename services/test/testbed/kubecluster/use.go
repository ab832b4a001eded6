//go:build linux

package kubecluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Import brings images, tars of an OCI layout or of docker save, to every node.
func (i Info) Import(ctx context.Context, tars ...string) error {
	for _, tar := range tars {
		for _, node := range i.Nodes {
			f, err := os.Open(tar) //nolint:gosec // the caller's
			if err != nil {
				return err
			}
			out, err := i.inside(ctx, node, f, "ctr", "-n", "k8s.io", "images", "import", "-")
			err = errors.Join(err, f.Close())
			if err != nil {
				return fmt.Errorf("import %s on %s: %w: %s", tar, node, err, out)
			}
		}
	}
	return nil
}

// Inside runs a program inside a machine: cp, node1, node2 and so on.
func (i Info) Inside(ctx context.Context, machine string, args ...string) ([]byte, error) {
	return i.inside(ctx, machine, nil, args...)
}

func (i Info) inside(ctx context.Context, machine string, in *os.File, args ...string) ([]byte, error) {
	pid, err := i.pid(machine)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", port(pid), "--net", "--mount", "--pid", "--uts", "--"}, args...)...) //nolint:gosec // a test's
	if in != nil {
		cmd.Stdin = in
	}
	return cmd.CombinedOutput()
}

// PowerOff ends a machine as a power cut does. It remains off until PowerOn.
func (i Info) PowerOff(machine string) error {
	pid, err := i.pid(machine)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// PowerOn starts a machine that is off, with the content of its disk. It is up when its
// node is Ready again.
func (i Info) PowerOn(ctx context.Context, machine string) error {
	if err := os.WriteFile(filepath.Join(i.Dir, machine, onFile), nil, 0o600); err != nil {
		return err
	}
	if err := syscall.Kill(i.Keeper, switchOn); err != nil {
		return fmt.Errorf("ask for the machine %s: %w", machine, err)
	}
	return await(ctx, 20*time.Millisecond, "switch the machine "+machine+" on", func() error {
		_, err := i.pid(machine)
		return err
	})
}

func (i Info) pid(machine string) (int, error) {
	var pid int
	b, err := os.ReadFile(filepath.Join(i.Dir, machine, "pid"))
	if err == nil {
		_, err = fmt.Sscan(string(b), &pid)
	}
	if err != nil {
		return 0, fmt.Errorf("look for the machine %s: %w", machine, err)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !bytes.Contains(line, []byte(filepath.Join(i.Dir, machine))) {
		return 0, fmt.Errorf("the machine %s is off", machine)
	}
	return pid, nil
}

// Down ends a cluster's keeper, and waits for its end.
func (i Info) Down(ctx context.Context) error {
	if err := syscall.Kill(i.Keeper, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the cluster %s: %w", i.Name, err)
	}
	return await(ctx, 20*time.Millisecond, "end the cluster "+i.Name, func() error {
		if isKept(i.Name) {
			return errNotYet
		}
		return nil
	})
}

// nodesReady says which nodes are not ready yet.
func (a *api) nodesReady(ctx context.Context, want int) error {
	if want == 0 {
		return nil
	}
	body, err := a.get(ctx, "/api/v1/nodes")
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	ready, words := 0, ""
	for _, n := range list.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				ready++
			} else if c.Type == "Ready" {
				words += n.Metadata.Name + ": " + c.Message + "; "
			}
		}
	}
	if ready < want {
		return fmt.Errorf("%d of %d nodes are ready: %s", ready, want, words)
	}
	return nil
}

// lastOutput are the last that the parts of a cluster have written.
func (k *keeper) lastOutput() string {
	var b strings.Builder
	logs, _ := filepath.Glob(filepath.Join(k.dir, "*", "log", "*.log")) // none, then
	for _, path := range logs {
		text, err := os.ReadFile(path) //nolint:gosec // ours
		if err != nil || len(text) == 0 {
			continue
		}
		name, _ := filepath.Rel(k.dir, path)
		fmt.Fprintf(&b, "\n== %s\n%s", name, text[max(0, len(text)-1500):])
	}
	return b.String()
}
