//go:build linux

package entrypoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
	c := artifactCopies{stored: make(map[string]artifacts.File), noticed: make(map[string]bool)}
	for i, a := range w.settings.Artifacts {
		files, notices := artifacts.Find(a)
		for _, n := range append(notices, w.before[i].Notice(a, files)) {
			c.notice(n)
		}
		for _, f := range files {
			c.notice(w.copyArtifact(f, &c))
		}
	}
	return w.writeJSON(pod.ArtifactsFile, c.list)
}

// artifactCopies are the artifacts that were copied.
type artifactCopies struct {
	list    pod.ArtifactList
	stored  map[string]artifacts.File // by name
	noticed map[string]bool
}

// notice adds a notice that is not empty, once.
func (c *artifactCopies) notice(text string) {
	if text != "" && !c.noticed[text] {
		c.noticed[text] = true
		c.list.Notices = append(c.list.Notices, text)
	}
}

// copyArtifact copies a file that is not among the copies yet, or says why not.
func (w *runner) copyArtifact(f artifacts.File, c *artifactCopies) (notice string) {
	if first, known := c.stored[f.Name]; known {
		if first.IsSame(f) {
			return ""
		}
		return fmt.Sprintf("artifact %q is not kept: %q is stored under the same name", f.FullPath(), first.FullPath())
	}
	if reason := w.out.fullReason(f.Size()); reason != "" {
		return fmt.Sprintf("artifact %q is not kept: %s", f.Name, reason)
	}
	if err := f.CopyTo(filepath.Join(pod.PathIn(w.settings.Dir, pod.ArtifactsDir), f.Name)); err != nil {
		return fmt.Sprintf("artifact %q is not kept: %v", f.Name, err)
	}
	c.stored[f.Name] = f
	c.list.Files = append(c.list.Files, f.Name)
	return ""
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
