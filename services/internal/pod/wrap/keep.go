//go:build linux

package wrap

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/left"
)

// keep copies the files of all artifacts to the pod's volume, where the
// collector finds them, and says which there are. What cannot be kept is said to
// the user; it fails nothing.
func (w *wrapper) keep() error {
	if len(w.settings.Keep) == 0 {
		return nil
	}
	syscall.Umask(0o022) // the collector may be somebody else
	var k pod.KeptFiles
	for _, a := range w.settings.Keep {
		files, notices := left.Find(a)
		k.Notices = append(k.Notices, notices...)
		for _, f := range files {
			if slices.Contains(k.Files, f.Name) {
				continue
			}
			if why := w.out.full(f.Size()); why != "" {
				k.Notices = append(k.Notices, fmt.Sprintf("artifact %q is not kept: %s", f.Name, why))
				continue
			}
			if err := f.CopyTo(filepath.Join(pod.In(w.settings.Dir, pod.KeptDir), f.Name)); err != nil {
				k.Notices = append(k.Notices, fmt.Sprintf("artifact %q is not kept: %v", f.Name, err))
				continue
			}
			k.Files = append(k.Files, f.Name)
		}
	}
	return w.writeJSON(pod.Kept, k)
}

// writeJSON writes a file of the volume, by rename, as soon as there is room.
func (w *wrapper) writeJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	path := pod.In(w.settings.Dir, name)
	err = w.out.whenThereIsRoom(func() error {
		return os.WriteFile(path+".tmp", b, 0o644) //nolint:gosec // others read it
	})
	if err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
