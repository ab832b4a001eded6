//go:build linux

package entrypoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/artifacts"
)

// copyArtifacts copies the files of all artifacts to the pod's volume, where the
// collector finds them, and lists them. Skipped files become notices for the user and no
// errors.
func (w *runner) copyArtifacts() error {
	if len(w.settings.Artifacts) == 0 {
		return nil
	}
	syscall.Umask(0o022) // the collector may be another user
	var list pod.ArtifactList
	for i, a := range w.settings.Artifacts {
		files, notices := artifacts.Find(a)
		list.Notices = append(list.Notices, notices...)
		if text := w.before[i].Notice(a, files); text != "" {
			list.Notices = append(list.Notices, text)
		}
		for _, f := range files {
			if slices.Contains(list.Files, f.Name) {
				continue
			}
			if reason := w.out.fullReason(f.Size()); reason != "" {
				list.Notices = append(list.Notices, fmt.Sprintf("artifact %q is not kept: %s", f.Name, reason))
				continue
			}
			if err := f.CopyTo(filepath.Join(pod.PathIn(w.settings.Dir, pod.ArtifactsDir), f.Name)); err != nil {
				list.Notices = append(list.Notices, fmt.Sprintf("artifact %q is not kept: %v", f.Name, err))
				continue
			}
			list.Files = append(list.Files, f.Name)
		}
	}
	return w.writeJSON(pod.ArtifactsFile, list)
}

// writeJSON writes a file of the volume, by rename, as soon as the disk has room.
func (w *runner) writeJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	path := pod.PathIn(w.settings.Dir, name)
	err = w.out.retryWhileFull(func() error {
		return os.WriteFile(path+".tmp", b, 0o644) //nolint:gosec // others read it
	})
	if err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
