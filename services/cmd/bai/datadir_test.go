//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// TestWhatDoesNotBelongIntoTheDataFolderIsToldWithARemedy puts a file in place of a
// folder, and a folder in place of a file.
func TestWhatDoesNotBelongIntoTheDataFolderIsToldWithARemedy(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"broker", "broker/data", "objects", "pods", "pods/live", "token.key", "broker.password", "broker/port", "lock", "store.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			path := filepath.Join(dir, name)
			misplace(t, path)
			err := openAndClose(t, dir)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "--data") && !strings.Contains(err.Error(), "give the path of a file") {
				t.Errorf("it says %v, want the path and a remedy", err)
			}
		})
	}
}

// misplace creates a folder in place of a file, or a file in place of a folder.
func misplace(t *testing.T, path string) {
	t.Helper()
	name, err := filepath.Base(path), os.MkdirAll(filepath.Dir(path), 0o700)
	if strings.Contains(name, ".") || name == "lock" || name == "port" {
		err = errors.Join(err, os.MkdirAll(filepath.Join(path, "in"), 0o700))
	} else {
		err = errors.Join(err, os.WriteFile(path, []byte("x"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestADataFolderThatOthersCanWriteToIsNotTaken(t *testing.T) {
	t.Parallel()
	for mode, words := range map[os.FileMode]string{0o777: "chmod 0700", 0o707: "chmod 0700", 0o700: ""} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, mode); err != nil { //nolint:gosec // the test needs this mode
				t.Fatal(err)
			}
			if err := openAndClose(t, dir); err == nil != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
				t.Errorf("with mode %s: %v", mode, err)
			}
		})
	}
}

// openAndClose opens a platform and closes it again.
func openAndClose(t *testing.T, dir string) error {
	t.Helper()
	var log bytes.Buffer
	program := filepath.Join(t.TempDir(), "bai-pod")
	for _, path := range []string{program, program + pod.ShipSuffix} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	o := options{data: dir, listen: "127.0.0.1:0", podBinary: program, out: &log, log: &log, noNamespaces: true}
	s, err := o.load()
	if err != nil {
		t.Fatal(err)
	}
	p := &platform{options: o, settings: s, podBinary: program, stopper: newStopper(o)}
	err = p.open(t.Context())
	if cerr := p.close(); cerr != nil && err == nil {
		t.Errorf("close: %v", cerr)
	}
	return err
}
