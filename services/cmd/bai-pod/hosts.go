//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/hostsfile"
)

// hostsInterval is the time between two looks for the addresses of the other pods.
const hostsInterval = 50 * time.Millisecond

// writeHosts writes the hosts file of the pod, with names in the given domains.
func writeHosts(domains []string, signals <-chan os.Signal, out io.Writer) error {
	if len(domains) == 0 {
		return fmt.Errorf("%w: hosts wants the domains of the names", errUsage)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				cancel(fmt.Errorf("signal %s", s)) //nolint:err113 // for people
			}
		}
	}()
	pods, err := hostsfile.Write(ctx, hostsfile.Settings{
		Peers: path.Join(pod.PeersDir, pod.PeersFile), Base: "/etc/hosts", File: path.Join(pod.HostsDir, pod.HostsFile),
		Domains: domains, Every: hostsInterval,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "the hosts file has the %d pods of the run\n", pods)
	return err
}
