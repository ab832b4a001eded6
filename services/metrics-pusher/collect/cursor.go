package collect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// shipProgress is how far a source is shipped.
type shipProgress struct {
	Base      int64               `json:"base,omitempty"` // offset of the file's beginning, above 0 if the file was truncated
	Resume    int64               `json:"resume"`         // offset to read from: the beginning of the first line that is not complete
	Done      int64               `json:"done"`           // lines up to this sequence number are shipped
	HeadBytes int64               `json:"kept,omitempty"` // bytes of lines
	Cut       extract.LogOverflow `json:"cut,omitzero"`   // of those behind them
	Lines     shipCount           `json:"lines"`
	Samples   shipCount           `json:"samples"`
	Untimed   int64               `json:"untimed,omitempty"` // samples whose time cannot be read
	Damaged   bool                `json:"broken,omitempty"`  // the file is not read further
	Ended     bool                `json:"ended,omitempty"`

	ClosedOut []int64 `json:"closed_out,omitempty"` // extract.Blocks.Closed of standard output, or of the only stream
	ClosedErr []int64 `json:"closed_err,omitempty"` // and of standard error
}

// shipCount is how many lines or samples were shipped.
type shipCount struct {
	Count   int64  `json:"count"`
	Last    int64  `json:"last"`
	Dropped int64  `json:"dropped,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// cursor is the content of the cursor file, from which the next start continues.
type cursor struct {
	Run     string                  `json:"run"`
	Attempt int                     `json:"attempt"`
	Sources map[string]shipProgress `json:"sources"`
}

// saveEvery is how often the cursor is written. Lines and samples that were shipped after the last write are shipped again after a kill.
const saveEvery = 200 * time.Millisecond

// load continues from the cursor of an earlier run of the collector.
func (c *Collector) load() error {
	k, err := c.cursor()
	if err != nil {
		return err
	}
	otherRun := k.Run != "" && (k.Run != c.settings.Header.Run || k.Attempt != c.settings.Header.Attempt)
	if err := c.series.Load(c.state, otherRun); err != nil {
		return err
	}
	if k.Run == "" || otherRun {
		return nil // no cursor, or that of another run or attempt: from the beginning
	}
	for _, s := range c.shippers {
		s.resume(k.Sources[s.key()])
	}
	return nil
}

// cursor reads the cursor of an earlier run of the collector. A cursor that cannot be decoded counts as none.
func (c *Collector) cursor() (k cursor, err error) {
	b, err := c.state.Read(pod.Cursor, maxCursorSize)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, fmt.Errorf("read how far is shipped: %w", err)
	}
	if err := json.Unmarshal(b, &k); err != nil {
		c.log.Warn("how far is shipped cannot be read: beginning anew", zap.String("file", pod.Cursor), zap.Error(err))
		return cursor{}, nil
	}
	return k, nil
}

// saveDue writes the cursor if it has changed and saveEvery has passed.
func (c *Collector) saveDue() {
	dirty := false
	for _, s := range c.shippers {
		dirty = dirty || s.dirty
	}
	if dirty && time.Since(c.savedAt) >= saveEvery {
		c.save()
	}
}

// save writes the cursor, whole or not at all. A full disk is only logged: more is shipped again after a kill then.
func (c *Collector) save() {
	k := cursor{Run: c.settings.Header.Run, Attempt: c.settings.Header.Attempt, Sources: make(map[string]shipProgress, len(c.shippers))}
	for _, s := range c.shippers {
		k.Sources[s.key()] = s.committed
		s.dirty = false
	}
	b, err := json.Marshal(k)
	if err == nil {
		err = c.state.Write(pod.Cursor, b, 0o600)
	}
	c.savedAt = time.Now()
	if err != nil && !c.saveFailed {
		c.log.Warn("how far is shipped cannot be written", zap.Error(err))
	}
	c.saveFailed = err != nil
	for _, s := range c.shippers {
		if err == nil && hasRecords(s.stream.Kind) {
			s.releaseDisk()
		}
	}
}
