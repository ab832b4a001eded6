// Package hostsfile writes the hosts file of a pod once the platform has given the pod the
// addresses of all pods of its run.
package hostsfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Settings say which files are read and written.
type Settings struct {
	Peers   string        // gets the addresses (see pod.FormatPeers); it is missing or empty before
	Base    string        // hosts file whose lines come first
	File    string        // hosts file to write
	Domains []string      // of the names, the one of the full names first
	Every   time.Duration // between two looks at Peers
}

// Write waits for the addresses, without a limit of its own, and writes the hosts file, which
// is there as a whole or not at all. It returns the number of pods in the file.
func Write(ctx context.Context, s Settings) (pods int, err error) {
	text, err := s.await(ctx)
	if err != nil {
		return 0, err
	}
	peers, err := pod.ParsePeers(text)
	if err != nil {
		return 0, fmt.Errorf("read the addresses of the run's pods: %w", err)
	}
	base, err := os.ReadFile(s.Base)
	if err != nil {
		return 0, fmt.Errorf("read the hosts file of the pod: %w", err)
	}
	text = string(base) + "\n# The pods of the run.\n" + pod.HostsLines(peers, s.Domains)
	if err := writeFile(s.File, text); err != nil {
		return 0, fmt.Errorf("write the hosts file of the pod: %w", err)
	}
	return len(peers), nil
}

// await returns the content of the file with the addresses once it has some.
func (s Settings) await(ctx context.Context) (string, error) {
	t := time.NewTicker(s.Every)
	defer t.Stop()
	for {
		text, err := os.ReadFile(s.Peers)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read the addresses of the run's pods: %w", err)
		}
		if len(text) > 0 {
			return string(text), nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return "", fmt.Errorf("the addresses of the run's pods have not come: %w", ctx.Err())
		}
	}
}

// writeFile writes a file that all users may read, by rename.
func writeFile(path, text string) error {
	const readable = 0o644
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), readable); err != nil {
		return err
	}
	if err := os.Chmod(next, readable); err != nil { // whatever the umask is
		return err
	}
	return os.Rename(next, path)
}
