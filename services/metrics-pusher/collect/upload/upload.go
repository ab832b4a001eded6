// Package upload sends the artifacts of a benchmark to the gateway.
package upload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/artifacts"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/volume"
)

// maxAnswer is how many bytes of the gateway's refusal are read: JSON that is cut cannot be decoded.
const maxAnswer = 64 << 10

// maxListSize is how many bytes the names of 10,000 files have at most.
const maxListSize = 64 << 20

// Uploader sends the artifacts of one benchmark.
type Uploader struct {
	Settings   pod.Collect
	VolumesDir string         // below which Settings.Volumes lie
	Volume     *volume.Volume // of the pod
	Log        *zap.Logger
}

// Upload sends the artifacts of the benchmark to the gateway until ctx is done, and returns a notice for the user for each file that is not
// stored, maxNotices at most.
func (u Uploader) Upload(ctx context.Context) (notices []string) {
	if notices = u.uploadAll(ctx); len(notices) > maxNotices {
		return append(notices[:maxNotices], moreNotKept(len(notices)-maxNotices))
	}
	return notices
}

// uploadAll sends the files, and returns a notice for each file that is not stored.
func (u Uploader) uploadAll(ctx context.Context) []string {
	if u.Settings.Gateway == "" {
		return []string{"artifacts are not kept: this platform's pods are told no gateway to send them to"}
	}
	files, notices := u.artifactFiles()
	for i, f := range files {
		err := u.upload(ctx, f)
		if err == nil {
			continue
		}
		u.Log.Warn("artifact", zap.String("name", f.Name), zap.Error(err))
		notices = append(notices, fmt.Sprintf("artifact %q is not kept: %v", f.Name, err))
		if errors.Is(err, errUploadsRefused) || ctx.Err() != nil {
			if rest := len(files) - i - 1; rest > 0 {
				notices = append(notices, moreNotKept(rest))
			}
			break
		}
	}
	return notices
}

// artifactFiles returns the files to send, and notices about the other files. It sends the files that the entrypoint has copied or, if the
// entrypoint was killed before that, those on volumes that outlive the container.
func (u Uploader) artifactFiles() (files []artifacts.File, notices []string) {
	var k pod.ArtifactList
	b, err := u.Volume.Read(pod.ArtifactsFile, maxListSize)
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	if err != nil {
		u.Log.Warn("nobody has laid artifacts ready", zap.Error(err))
		return u.artifactsOnVolumes()
	}
	for _, name := range k.Files {
		files = append(files, artifacts.File{Path: name, Name: name})
	}
	return files, k.Notices
}

// artifactsOnVolumes returns the artifacts on volumes that the collector has, too.
func (u Uploader) artifactsOnVolumes() (files []artifacts.File, notices []string) {
	for _, a := range u.Settings.Artifacts {
		on := volumeOf(a.Path, u.Settings.Volumes)
		if on == "" {
			notices = append(notices, lostArtifact(a.Path))
			continue
		}
		some, volumeNotices := artifacts.FindInVolume(a, on, filepath.Join(u.VolumesDir, on))
		notices = append(notices, volumeNotices...)
		for _, f := range some {
			if !slices.ContainsFunc(files, func(other artifacts.File) bool { return other.Name == f.Name }) {
				files = append(files, f)
			}
		}
	}
	return files, notices
}

// errUploadsRefused is an answer of the gateway that applies to all other files too.
var errUploadsRefused = errors.New("the gateway takes none of them")

// upload sends one file, with retries while the gateway is away. The file lies on a volume to which the benchmark can write: it must be a
// regular file, and no link out of the volume is followed.
func (u Uploader) upload(ctx context.Context, of artifacts.File) error {
	if !filepath.IsLocal(of.Name) {
		return errors.New("it has a name that no file can have")
	}
	f, err := u.openArtifact(of)
	if err != nil {
		return fmt.Errorf("it cannot be read: %w", volume.Cause(err))
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return volume.ErrNoFile
	}
	wait := control.Backoff{First: 100 * time.Millisecond, Max: 6400 * time.Millisecond}
	for {
		retry, err := u.uploadOnce(ctx, of.Name, io.NewSectionReader(f, 0, info.Size()), info.Size())
		if !retry || err == nil {
			return err
		}
		if !control.Sleep(ctx, wait.Next()) {
			return fmt.Errorf("there is no time left; the last answer was: %w", err)
		}
	}
}

// openArtifact opens a file that the entrypoint has copied, or one on a volume of the
// benchmark.
func (u Uploader) openArtifact(of artifacts.File) (*os.File, error) {
	if of.Root == "" {
		return u.Volume.Open(path.Join(pod.ArtifactsDir, of.Path), os.O_RDONLY)
	}
	root, err := os.OpenRoot(of.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only a handle
	return root.OpenFile(of.Path, os.O_RDONLY|volume.Nonblock, 0)
}

// uploadOnce sends one file once, and reports whether another try may succeed.
func (u Uploader) uploadOnce(ctx context.Context, name string, body io.Reader, size int64) (retry bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.artifactURL(name), io.NopCloser(body))
	if err != nil {
		return false, err
	}
	req.ContentLength = size
	if size == 0 {
		req.Body = http.NoBody
	}
	req.Header.Set("Authorization", "Bearer "+u.Settings.Token)
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return true, err
	}
	defer resp.Body.Close()                                                 //nolint:errcheck // read as far as it matters
	words, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))            // an answer that cannot be read counts as empty
	return checkResponse(resp.StatusCode, strings.TrimSpace(string(words))) // the gateway's message is for the user
}

// artifactURL returns the URL of a file at the gateway.
func (u Uploader) artifactURL(name string) string {
	s := u.Settings
	parts := []string{"v1", "runs", s.Header.Run, "artifacts", strconv.Itoa(s.Header.Attempt), fmt.Sprintf("%s-%d", s.Role, s.Index)}
	parts = append(parts, strings.Split(name, "/")...)
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.TrimSuffix(s.Gateway, "/") + "/" + strings.Join(parts, "/")
}
