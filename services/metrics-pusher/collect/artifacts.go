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
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// keep sends the files that the wrapper has laid ready to the gateway, and tells
// the user what of them is not kept. That fails nothing: what is measured
// matters more. It takes no longer than the time that remains for it, so that
// the ends of the sources can be said after it.
func (c *Collector) keep(ctx context.Context) {
	if len(c.settings.Artifacts) == 0 {
		return
	}
	keep, cancel := context.WithTimeout(ctx, artifactsTime(c.settings.Drain))
	defer cancel()
	notices := c.sendAll(keep)
	for i, n := range notices {
		if i == maxNotices {
			n = fmt.Sprintf("%d more files are not kept", len(notices)-maxNotices)
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

// sendAll sends what there is, and returns what the user has to know.
func (c *Collector) sendAll(ctx context.Context) []string {
	if c.settings.Gateway == "" {
		return []string{"artifacts are not kept: this platform's pods are told no gateway to send them to"}
	}
	kept, err := c.kept()
	if err != nil {
		c.log.Warn("no artifacts", zap.Error(err))
		return []string{"artifacts are not kept: the benchmark's container was ended before they could be copied, or runs the image's own entrypoint"}
	}
	root, err := os.OpenRoot(pod.In(c.settings.Dir, pod.KeptDir))
	if err != nil && len(kept.Files) > 0 {
		return append(kept.Notices, fmt.Sprintf("artifacts are not kept: %v", err))
	}
	if err == nil {
		defer root.Close() //nolint:errcheck // only a handle
	}
	notices := kept.Notices
	for i, name := range kept.Files {
		err := c.send(ctx, root, name)
		if err == nil {
			continue
		}
		c.log.Warn("artifact", zap.String("name", name), zap.Error(err))
		notices = append(notices, fmt.Sprintf("artifact %q is not kept: %v", name, err))
		if errors.Is(err, errNone) || ctx.Err() != nil {
			if rest := len(kept.Files) - i - 1; rest > 0 {
				notices = append(notices, fmt.Sprintf("nor are %d more files", rest))
			}
			break
		}
	}
	return notices
}

// kept reads what the wrapper has laid ready.
func (c *Collector) kept() (pod.KeptFiles, error) {
	var k pod.KeptFiles
	b, err := os.ReadFile(pod.In(c.settings.Dir, pod.Kept))
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	return k, err
}

// errNone says that what one file met, all others will.
var errNone = errors.New("the gateway takes none of them")

// send sends one file, as often as the gateway, or the way to it, is not there.
// The file is one of the volume, which the benchmark can write to: it may be no
// more than what it says to be, and links lead nowhere else.
func (c *Collector) send(ctx context.Context, root *os.Root, name string) error {
	if !filepath.IsLocal(name) {
		return errors.New("it has a name that no file can have")
	}
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return fmt.Errorf("it cannot be read: %w", reason(err))
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.New("it is not a file")
	}
	for tries := 0; ; tries++ {
		again, err := c.put(ctx, name, io.NewSectionReader(f, 0, info.Size()), info.Size())
		if !again || err == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("there is no time left; the last answer was: %w", err)
		case <-time.After(pause(tries)):
		}
	}
}

func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// put sends one file once, and says whether it is worth another try.
func (c *Collector) put(ctx context.Context, name string, body io.Reader, size int64) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.address(name), io.NopCloser(body))
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
	defer resp.Body.Close()                                         //nolint:errcheck // read as far as it matters
	words, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))   // what cannot be read says nothing
	return judge(resp.StatusCode, strings.TrimSpace(string(words))) // the gateway's own words are for the user
}

// address is where a file goes.
func (c *Collector) address(name string) string {
	s := c.settings
	parts := []string{"v1", "runs", s.Header.Run, "artifacts", strconv.Itoa(s.Header.Attempt), fmt.Sprintf("%s-%d", s.Role, s.Index)}
	parts = append(parts, strings.Split(name, "/")...)
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.TrimSuffix(s.Gateway, "/") + "/" + strings.Join(parts, "/")
}
