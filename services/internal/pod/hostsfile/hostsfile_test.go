package hostsfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod/hostsfile"
)

// settings are those of a pod whose own hosts file knows localhost.
func settings(t *testing.T) hostsfile.Settings {
	t.Helper()
	dir := t.TempDir()
	s := hostsfile.Settings{
		Peers: filepath.Join(dir, "peers"), Base: filepath.Join(dir, "base"), File: filepath.Join(dir, "hosts"),
		Domains: []string{"pods.ns.svc", "pods"}, Every: time.Millisecond,
	}
	write(t, s.Base, "127.0.0.1 localhost\n")
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheHostsFileIsWrittenOnceTheAddressesHaveCome(t *testing.T) {
	t.Parallel()
	s := settings(t)
	write(t, s.Peers, "") // as the downward API has it without the annotation
	done := make(chan error, 1)
	go func() {
		pods, err := hostsfile.Write(t.Context(), s)
		if err == nil && pods != 2 {
			err = errors.New("it has another number of pods")
		}
		done <- err
	}()
	if _, err := os.Stat(s.File); err == nil {
		t.Error("the file is there before the addresses")
	}
	next := s.Peers + ".next"
	write(t, next, "a-0 10.1.0.1\nb-0 fd00::2\n")
	if err := os.Rename(next, s.Peers); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.File)
	want := "127.0.0.1 localhost\n\n# The pods of the run.\n10.1.0.1 a-0.pods.ns.svc a-0.pods a-0\nfd00::2 b-0.pods.ns.svc b-0.pods b-0\n"
	if diff := cmp.Diff(want, string(text)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if info, err := os.Stat(s.File); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("not all users may read it: %v, %v", info.Mode(), err)
	}
}

func TestASignalEndsTheWaitForAddresses(t *testing.T) {
	t.Parallel()
	s := settings(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hostsfile.Write(ctx, s); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "have not come") {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(s.File); err == nil {
		t.Error("there is a hosts file")
	}
}

func TestAddressesThatCannotBeReadAreAnErrorWithTheirLine(t *testing.T) {
	t.Parallel()
	s := settings(t)
	write(t, s.Peers, "a-0 10.1.0.1\nb-0\n")
	if _, err := hostsfile.Write(t.Context(), s); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v, want the line at fault", err)
	}
}
