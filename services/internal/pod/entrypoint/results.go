//go:build linux

package entrypoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/pod/parse"
)

// takeResults appends the metrics that parsers found to the metrics file, and notes in the command's exit what they did not find. A command
// that ended well without a required result has failed.
func (w *runner) takeResults(results []parse.Result, end *pod.Exit) {
	problem, notices := parse.Judge(results, end.Code)
	end.Notices, end.Tools = notices, parse.Versions(results)
	if lines := parse.AppendLines(nil, results, float64(time.Now().UnixMilli())/1e3); len(lines) > 0 {
		if err := w.appendMetrics(lines); err != nil {
			end.Notices = append(end.Notices, fmt.Sprintf("the results that parsers found are not stored: %v", err))
		}
	}
	if problem == "" {
		return
	}
	end.Code = pod.ExitNoResults
	w.out.warn("bai: " + pod.NoResults + problem + "\n")
	w.writeTerminationMessage(pod.NoResults + problem)
}

// appendMetrics appends lines to the metrics file, as soon as the disk has room. A line that a command has left without an end is ended
// first.
func (w *runner) appendMetrics(lines []byte) (err error) {
	f, err := os.OpenFile(pod.PathIn(w.settings.Dir, pod.Metrics), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666) //nolint:gosec // the collector reads it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	last := make([]byte, 1)
	if size, err := f.Seek(0, io.SeekEnd); err == nil && size > 0 {
		if _, err := f.ReadAt(last, size-1); err == nil && last[0] != '\n' {
			lines = append([]byte("\n"), lines...)
		}
	}
	return w.out.retryWhileFull(func() error {
		n, err := f.Write(lines)
		lines = lines[n:]
		return err
	})
}
