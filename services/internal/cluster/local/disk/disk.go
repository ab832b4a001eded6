//go:build linux

// Package disk is the folder of a local cluster: its objects, and the record,
// state and lock of each pod.
package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/cgroup"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/lock"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Folder is the folder of a cluster:
//
//	lock                    held by the cluster
//	bin/bai-pod-<digest>    the pod binary
//	objects/<uid>.json      a ConfigMap, Secret or Service
//	pods/<id>/              a pod and its Job; the ID is the Job's UID and, where
//	                        it is Indexed, the pod's number
//	pods/<id>/job.json      a Record
//	pods/<id>/deleted       a mark, once its deletion was asked for
//	live/<id>.lock          held by the pod's shim as long as it lives
//	live/<id>.json          the pod's state, see package shimapi
//	networks/<attempt>/     what joins the pods of an attempt that has Services
//	trash/                  what is being made or removed
//
// A folder of a pod and a file of an object appear, and disappear, by one rename.
type Folder struct{ Dir string }

// Pods is the path of the folders of all pods.
func (f Folder) Pods() string { return filepath.Join(f.Dir, "pods") }

// Pod is the path of the folder of a pod.
func (f Folder) Pod(id string) string { return filepath.Join(f.Dir, "pods", id) }

// RecordFile is the path of the record of a pod.
func (f Folder) RecordFile(id string) string { return filepath.Join(f.Pod(id), "job.json") }

// MarkFile is the path of the deletion mark of a pod.
func (f Folder) MarkFile(id string) string { return filepath.Join(f.Pod(id), "deleted") }

// StateDir is the path of the states and locks of all pods.
func (f Folder) StateDir() string { return filepath.Join(f.Dir, "live") }

// StateFile is the path of the state of a pod.
func (f Folder) StateFile(id string) string { return filepath.Join(f.Dir, "live", id+".json") }

// LockFile is the path of the lock of a pod.
func (f Folder) LockFile(id string) string { return filepath.Join(f.Dir, "live", id+".lock") }

// Objects is the path of all objects.
func (f Folder) Objects() string { return filepath.Join(f.Dir, "objects") }

// ObjectFile is the path of an object.
func (f Folder) ObjectFile(uid string) string { return filepath.Join(f.Dir, "objects", uid+".json") }

// Networks is the path of the networks of all attempts.
func (f Folder) Networks() string { return filepath.Join(f.Dir, "networks") }

// Trash is the path of a folder that is being created or removed.
func (f Folder) Trash(id string) string { return filepath.Join(f.Dir, "trash", id) }

// Prepare creates the directories, takes the lock, and removes the remains of creations and removals that the previous process did not
// complete.
func (f Folder) Prepare() (*lock.Lock, error) {
	for _, dir := range []string{f.Dir, f.Pods(), f.StateDir(), f.Objects(), f.Networks(), filepath.Join(f.Dir, "bin"), f.Trash("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the directory of the local cluster: %w", err)
		}
	}
	l, err := lock.Acquire(filepath.Join(f.Dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("take the local cluster in %s: %w", f.Dir, err)
	}
	for _, path := range slices.Concat(Matching(shimapi.TempPath(f.ObjectFile("*"))), Matching(f.Trash("*"))) {
		_ = RemoveAll(path)
	}
	return l, nil
}

// Matching returns the existing paths that match pattern in their last part only, because the folder may have any name. They are in the
// order of names; there are none if the folder does not exist.
func Matching(pattern string) []string {
	dir, last := filepath.Split(pattern)
	entries, _ := os.ReadDir(dir) // no folder, no paths
	var paths []string
	for _, e := range entries {
		if ok, _ := filepath.Match(last, e.Name()); ok { // the pattern is right
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// Binary copies the pod binary into the folder, with the one that ships beside it, so that an upgrade does not change them under pods that
// start later, and returns its path.
func (f Folder) Binary(from string) (string, error) {
	b, err := os.ReadFile(from)
	ship, err2 := os.ReadFile(from + pod.ShipSuffix)
	if err := errors.Join(err, err2); err != nil {
		return "", fmt.Errorf("the programs of pods belong beside bai, where make build puts them: %w", err)
	}
	sum := sha256.Sum256(slices.Concat(b, ship))
	path := filepath.Join(f.Dir, "bin", "bai-pod-"+hex.EncodeToString(sum[:8]))
	if err := errors.Join(f.program(path+pod.ShipSuffix, ship), f.program(path, b)); err != nil {
		return "", fmt.Errorf("bring the pod binary: %w", err)
	}
	return path, nil
}

// program writes a program, whole or not at all, unless a file with the same content exists. A machine that crashed may have left a file
// with other content.
func (f Folder) program(path string, b []byte) error {
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, b) { //nolint:gosec // below our own folder
		return nil
	}
	if err := writeProgram(f.Trash("bai-pod"), b); err != nil {
		return err
	}
	return os.Rename(f.Trash("bai-pod"), path)
}

// writeProgram writes a file that will be executed. No process may be forked while the file is open: it would inherit the descriptor, and a
// file that is open for writing cannot be executed.
func writeProgram(path string, b []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, b, 0o700); err != nil { //nolint:gosec // it is executed
		return err
	}
	return os.Chmod(path, 0o755) //nolint:gosec // by other users too
}

// Network returns the folder of the bridge that connects the pods of an attempt.
func (f Folder) Network(at Attempt) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", at.Scope, at.Run, at.Number))
	return filepath.Join(f.Networks(), hex.EncodeToString(sum[:8]))
}

// AddPods writes the pods of a new Job, the first pod last: while that does not exist, the Job is being created or removed.
func (f Folder) AddPods(records []Record) error {
	for i, r := range slices.Backward(records) {
		if err := f.addPod(r.ID(), r); err != nil {
			for _, made := range records[i+1:] {
				err = errors.Join(err, f.RemovePod(made.ID()))
			}
			return err
		}
	}
	return nil
}

// addPod writes a new pod, whole or not at all.
func (f Folder) addPod(id string, r Record) error {
	dir := f.Trash(id)
	err := errors.Join(
		os.Mkdir(dir, 0o700), os.Mkdir(filepath.Join(dir, shimapi.Volumes), 0o755), os.Mkdir(filepath.Join(dir, shimapi.Logs), 0o755)) //nolint:gosec // containers may have other users
	if err == nil {
		err = shimapi.Write(filepath.Join(dir, "job.json"), r)
	}
	if err == nil {
		err = os.Rename(dir, f.Pod(id))
	}
	if err != nil {
		_ = RemoveAll(dir)
	}
	return err
}

// RemovePod removes a Job, its pod's files and its state. A cgroup that stays is an error, and everything else is removed.
func (f Folder) RemovePod(id string) error {
	if err := unmountBelow(f.Pod(id)); err != nil {
		return err
	}
	errGroups := f.removeGroups(id)
	if err := os.Rename(f.Pod(id), f.Trash(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(errGroups, err)
	}
	for _, path := range []string{f.StateFile(id), shimapi.TempPath(f.StateFile(id)), f.LockFile(id)} {
		_ = os.Remove(path)
	}
	return errors.Join(errGroups, RemoveAll(f.Trash(id)))
}

// removeGroups removes the cgroups of a pod that has ended.
func (f Folder) removeGroups(id string) error {
	var p shimapi.Pod
	if err := shimapi.Read(filepath.Join(f.Pod(id), shimapi.PodFile), &p); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the pod never began
		}
		return err
	}
	var failed error
	for _, o := range p.Containers {
		failed = errors.Join(failed, cgroup.Remove(o.Groups))
	}
	return failed
}

// ReadState returns the pod's state and its text, nil if there is none.
func (f Folder) ReadState(id string) (*shimapi.State, []byte, error) {
	b, err := os.ReadFile(f.StateFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var s shimapi.State
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", f.StateFile(id), err)
	}
	return &s, b, nil
}

// Lock takes the lock that a pod's shim inherits.
func (f Folder) Lock(id string) (*os.File, error) {
	file, err := os.OpenFile(f.LockFile(id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Unknown reports whether an error of reading a file leaves open what the file has: it exists, or may exist, and cannot be read now, as
// while the process has no descriptor left. A file with the wrong content is known.
func Unknown(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno != syscall.ENOENT && errno != syscall.ENOTDIR
}

// IsLocked reports whether a shim of the pod runs. With an error it is not known. It opens the lock for reading:
// closing a file that was open for writing is the event
// that a shim has ended.
func (f Folder) IsLocked(id string) (bool, error) {
	file, err := os.Open(f.LockFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // only read
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// unmountBelow unmounts the mounts of a benchmark without namespaces below dir, so that their content is not removed with dir.
func unmountBelow(dir string) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	lines := strings.Split(string(b), "\n")
	for _, line := range slices.Backward(lines) { // the last mount first
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasPrefix(cgroup.UnescapeMount(fields[4]), dir+"/") {
			continue
		}
		if err := unix.Unmount(cgroup.UnescapeMount(fields[4]), unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount what a benchmark mounted at %s: %w", fields[4], err)
		}
	}
	return nil
}
