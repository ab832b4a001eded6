package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/artifacts"
)

// sendArtifacts sends the files that the benchmark left to the gateway, and tells the user
// what of them is not kept. That fails nothing: what is measured
// matters more. It takes no longer than the time that remains for it, so that
// the ends of the sources can be said after it.
func (c *Collector) sendArtifacts(ctx context.Context) {
	if len(c.settings.Artifacts) == 0 {
		return
	}
	sendCtx, cancel := context.WithTimeout(ctx, artifactsTime(c.settings.Drain))
	defer cancel()
	notices := c.uploadAll(sendCtx)
	for i, n := range notices {
		if i == maxNotices {
			n = moreNotKept(len(notices) - maxNotices)
		}
		h := c.settings.Header.Cause("status/artifacts", fmt.Sprintf("%s %d %s", c.settings.Role, c.settings.Index, n))
		err := c.bus.Publish(ctx, event.Status{Header: h, Phase: event.PhaseRunning, Message: n})
		if err != nil {
			c.log.Warn("the user is not told of artifacts", zap.Error(err))
		}
		if err != nil || i == maxNotices {
			return
		}
	}
}

// uploadAll sends what there is, and returns what the user has to know.
func (c *Collector) uploadAll(ctx context.Context) []string {
	if c.settings.Gateway == "" {
		return []string{"artifacts are not kept: this platform's pods are told no gateway to send them to"}
	}
	files, notices := c.artifactFiles()
	for i, f := range files {
		err := c.upload(ctx, f)
		if err == nil {
			continue
		}
		c.log.Warn("artifact", zap.String("name", f.Name), zap.Error(err))
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

// artifactFiles returns what is to be sent, and what the user has to know of the rest: what
// the wrapper has laid ready or, where that was ended first, what lies on volumes
// that outlive it.
func (c *Collector) artifactFiles() (files []artifacts.File, notices []string) {
	var k pod.ArtifactList
	b, err := c.volume.read(pod.ArtifactsFile, maxKeptFilesSize)
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	if err != nil {
		c.log.Warn("nobody has laid artifacts ready", zap.Error(err))
		return c.artifactsOnVolumes()
	}
	for _, name := range k.Files {
		files = append(files, artifacts.File{Path: name, Name: name})
	}
	return files, k.Notices
}

// artifactsOnVolumes returns what of the artifacts lies on volumes that are seen here, too.
func (c *Collector) artifactsOnVolumes() (files []artifacts.File, notices []string) {
	for _, a := range c.settings.Artifacts {
		volume := volumeOf(a.Path, c.settings.Volumes)
		if volume == "" {
			notices = append(notices, lostArtifact(a.Path))
			continue
		}
		some, volumeNotices := artifacts.FindInVolume(a, volume, filepath.Join(c.settings.VolumesDir, volume))
		notices = append(notices, volumeNotices...)
		for _, f := range some {
			if !slices.ContainsFunc(files, func(other artifacts.File) bool { return other.Name == f.Name }) {
				files = append(files, f)
			}
		}
	}
	return files, notices
}

// errUploadsRefused says that what one file met, all others will.
var errUploadsRefused = errors.New("the gateway takes none of them")

// upload sends one file, as often as the gateway, or the way to it, is not there.
// The file is one of a volume, which the benchmark can write to: it may be no
// more than what it says to be, and links lead nowhere else.
func (c *Collector) upload(ctx context.Context, of artifacts.File) error {
	if !filepath.IsLocal(of.Name) {
		return errors.New("it has a name that no file can have")
	}
	f, err := c.openArtifact(of)
	if err != nil {
		return fmt.Errorf("it cannot be read: %w", unwrapPathError(err))
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errNoFile
	}
	for tries := 0; ; tries++ {
		retry, err := c.uploadOnce(ctx, of.Name, io.NewSectionReader(f, 0, info.Size()), info.Size())
		if !retry || err == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("there is no time left; the last answer was: %w", err)
		case <-time.After(backoff(tries)):
		}
	}
}

// openArtifact opens a file that the wrapper has laid ready, or one of a volume of the
// benchmark's.
func (c *Collector) openArtifact(of artifacts.File) (*os.File, error) {
	if of.Root == "" {
		return c.volume.open(path.Join(pod.ArtifactsDir, of.Path), os.O_RDONLY)
	}
	root, err := os.OpenRoot(of.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only a handle
	return root.OpenFile(of.Path, os.O_RDONLY|nonblock, 0)
}

func unwrapPathError(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// uploadOnce sends one file once, and says whether it is worth another try.
func (c *Collector) uploadOnce(ctx context.Context, name string, body io.Reader, size int64) (retry bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.artifactURL(name), io.NopCloser(body))
	if err != nil {
		return false, err
	}
	req.ContentLength = size
	if size == 0 {
		req.Body = http.NoBody
	}
	req.Header.Set("Authorization", "Bearer "+c.settings.Token)
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return true, err
	}
	defer resp.Body.Close()                                                 //nolint:errcheck // read as far as it matters
	words, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))            // what cannot be read says nothing
	return checkResponse(resp.StatusCode, strings.TrimSpace(string(words))) // the gateway's own words are for the user
}

// artifactURL is where a file goes.
func (c *Collector) artifactURL(name string) string {
	s := c.settings
	parts := []string{"v1", "runs", s.Header.Run, "artifacts", strconv.Itoa(s.Header.Attempt), fmt.Sprintf("%s-%d", s.Role, s.Index)}
	parts = append(parts, strings.Split(name, "/")...)
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.TrimSuffix(s.Gateway, "/") + "/" + strings.Join(parts, "/")
}
