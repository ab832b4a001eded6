//go:build linux

package local

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
	"github.com/benchmark-ai/bai/services/internal/lock"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// disk is the directory of a cluster:
//
//	lock                    held by the cluster
//	bin/bai-pod-<digest>    the pod binary
//	objects/<uid>.json      a ConfigMap, Secret or Service
//	pods/<id>/              a pod and its Job; the ID is the Job's UID and, where
//	                        it is Indexed, the pod's number
//	pods/<id>/job.json      a record
//	pods/<id>/deleted       a mark, once its deletion was asked for
//	live/<id>.lock          held by the pod's supervisor as long as it lives
//	live/<id>.json          the pod's state, see package spec
//	networks/<attempt>/     what joins the pods of an attempt that has Services
//	trash/                  what is being made or removed
//
// What appears in pods or objects, or goes from there, does so by one rename.
type disk struct{ dir string }

// record is what is kept of a pod of a Job.
type record struct {
	Job     *batchv1.Job `json:"job"`
	Index   int          `json:"index,omitempty"`  // of the pod, where the Job is Indexed
	Number  int          `json:"number,omitempty"` // of the pod in the network of its run; zero where it has the machine's
	PodName string       `json:"pod_name"`
	PodUID  string       `json:"pod_uid"`
	Created time.Time    `json:"created"`          // to the nanosecond
	GPUs    []int        `json:"gpus,omitempty"`   // that it was given
	Expired time.Time    `json:"expired,omitzero"` // when its deadline passed before it could begin
	Halted  time.Time    `json:"halted,omitzero"`  // when another pod of its Job failed before it could begin
	Stopped time.Time    `json:"stopped,omitzero"` // when the platform was stopped while it ran, and ended it
}

func (r record) id() string {
	if validate.IsIndexed(r.Job) {
		return string(r.Job.UID) + "-" + strconv.Itoa(r.Index)
	}
	return string(r.Job.UID)
}

// deletionMark says that a Job is to go.
type deletionMark struct {
	At      time.Time `json:"at"`
	Attempt bool      `json:"attempt"` // and with the last Job of its attempt all other objects of it
}

// object is a ConfigMap, Secret or Service.
type object struct {
	ConfigMap *corev1.ConfigMap `json:"config_map,omitempty"`
	Secret    *corev1.Secret    `json:"secret,omitempty"`
	Service   *corev1.Service   `json:"service,omitempty"`
}

func (d disk) pods() string              { return filepath.Join(d.dir, "pods") }
func (d disk) pod(id string) string      { return filepath.Join(d.dir, "pods", id) }
func (d disk) record(id string) string   { return filepath.Join(d.pod(id), "job.json") }
func (d disk) mark(id string) string     { return filepath.Join(d.pod(id), "deleted") }
func (d disk) stateDir() string          { return filepath.Join(d.dir, "live") }
func (d disk) state(id string) string    { return filepath.Join(d.dir, "live", id+".json") }
func (d disk) lockFile(id string) string { return filepath.Join(d.dir, "live", id+".lock") }
func (d disk) objects() string           { return filepath.Join(d.dir, "objects") }
func (d disk) object(uid string) string  { return filepath.Join(d.dir, "objects", uid+".json") }
func (d disk) networks() string          { return filepath.Join(d.dir, "networks") }
func (d disk) trash(id string) string    { return filepath.Join(d.dir, "trash", id) }

// prepare makes the directories, takes the lock, and throws away what is left
// of what was made or removed when the process before ended.
func (d disk) prepare() (*lock.Lock, error) {
	for _, dir := range []string{d.dir, d.pods(), d.stateDir(), d.objects(), d.networks(), filepath.Join(d.dir, "bin"), d.trash("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the directory of the local cluster: %w", err)
		}
	}
	l, err := lock.Acquire(filepath.Join(d.dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("take the local cluster in %s: %w", d.dir, err)
	}
	for _, path := range slices.Concat(matching(shimapi.TempPath(d.object("*"))), matching(d.trash("*"))) {
		_ = removeAll(path)
	}
	return l, nil
}

// matching returns the paths that differ from pattern in their last part only,
// and match it there: the folder may have every name. It is in the order of the
// names, and empty where there is no such folder.
func matching(pattern string) []string {
	dir, last := filepath.Split(pattern)
	entries, _ := os.ReadDir(dir) // none, then
	var paths []string
	for _, e := range entries {
		if ok, _ := filepath.Match(last, e.Name()); ok { // the pattern is right
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// binary copies the pod binary here, with the one that ships beside it, so that
// an upgrade does not change them under pods that are to start, and returns its
// place.
func (d disk) binary(from string) (string, error) {
	b, err := os.ReadFile(from)
	ship, err2 := os.ReadFile(from + pod.ShipSuffix)
	if err := errors.Join(err, err2); err != nil {
		return "", fmt.Errorf("bring the pod binary: %w", err)
	}
	sum := sha256.Sum256(slices.Concat(b, ship))
	path := filepath.Join(d.dir, "bin", "bai-pod-"+hex.EncodeToString(sum[:8]))
	if err := errors.Join(d.program(path+pod.ShipSuffix, ship), d.program(path, b)); err != nil {
		return "", fmt.Errorf("bring the pod binary: %w", err)
	}
	return path, nil
}

// program writes a program, whole or not at all, unless it is there: what a machine
// that stopped has left of one is not.
func (d disk) program(path string, b []byte) error {
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, b) { //nolint:gosec // below our own folder
		return nil
	}
	if err := writeProgram(d.trash("bai-pod"), b); err != nil {
		return err
	}
	return os.Rename(d.trash("bai-pod"), path)
}

// writeProgram writes a file that is executed soon. While it is open nothing
// may be started: what is would have it open too, for a moment, and a file that
// somebody writes cannot be executed.
func writeProgram(path string, b []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, b, 0o700); err != nil { //nolint:gosec // it is executed
		return err
	}
	return os.Chmod(path, 0o755) //nolint:gosec // by other users too
}

// network returns where what joins the pods of an attempt keeps its things.
func (d disk) network(at attempt) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", at.scope, at.run, at.number))
	return filepath.Join(d.networks(), hex.EncodeToString(sum[:8]))
}

// addPods writes the pods of a new Job, the first last: while it is not there,
// the Job is being made or removed.
func (d disk) addPods(records []record) error {
	for i, r := range slices.Backward(records) {
		if err := d.addPod(r.id(), r); err != nil {
			for _, made := range records[i+1:] {
				err = errors.Join(err, d.removePod(made.id()))
			}
			return err
		}
	}
	return nil
}

// addPod writes a new pod: all of it or nothing.
func (d disk) addPod(id string, r record) error {
	dir := d.trash(id)
	err := errors.Join(
		os.Mkdir(dir, 0o700), os.Mkdir(filepath.Join(dir, shimapi.Volumes), 0o755), os.Mkdir(filepath.Join(dir, shimapi.Logs), 0o755)) //nolint:gosec // containers may have other users
	if err == nil {
		err = shimapi.Write(filepath.Join(dir, "job.json"), r)
	}
	if err == nil {
		err = os.Rename(dir, d.pod(id))
	}
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return err
}

// removePod removes a Job, its pod's files and its state.
func (d disk) removePod(id string) error {
	if err := unmountBelow(d.pod(id)); err != nil {
		return err
	}
	d.removeGroups(id)
	if err := os.Rename(d.pod(id), d.trash(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, path := range []string{d.state(id), shimapi.TempPath(d.state(id)), d.lockFile(id)} {
		_ = os.Remove(path)
	}
	return removeAll(d.trash(id))
}

// readState returns the pod's state and its text, nil where there is none.
func (d disk) readState(id string) (*shimapi.State, []byte, error) {
	b, err := os.ReadFile(d.state(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var s shimapi.State
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", d.state(id), err)
	}
	return &s, b, nil
}

// lock takes the lock that a pod's supervisor is born with.
func (d disk) lock(id string) (*os.File, error) {
	f, err := os.OpenFile(d.lockFile(id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// isLocked reports whether a supervisor of the pod lives. It opens the lock for
// reading: closing one that was open for writing says that a supervisor ended.
func (d disk) isLocked(id string) bool {
	f, err := os.Open(d.lockFile(id))
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// unmountBelow unmounts what a benchmark without namespaces mounted below dir,
// so that what lies there is not removed with it.
func unmountBelow(dir string) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	lines := strings.Split(string(b), "\n")
	for _, line := range slices.Backward(lines) { // what was mounted last first
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasPrefix(unescaped(fields[4]), dir+"/") {
			continue
		}
		if err := unix.Unmount(unescaped(fields[4]), unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount what a benchmark mounted at %s: %w", fields[4], err)
		}
	}
	return nil
}

// unescaped returns a path as it is, from the way the kernel writes it.
func unescaped(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// removeAll removes a tree, also one whose directories were made unreadable.
func removeAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // a directory that goes
		}
		return nil
	})
	return os.RemoveAll(path)
}

// newUID returns a random UUID.
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newSuffix returns what a Job's pod has behind the Job's name.
func newSuffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b[:])
}
