// Package pointrun decodes the attributes that the points of a run share, as the table of points of package sqlite has them.
package pointrun

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// maxBytes is how much of their JSON the decoded attributes of runs may have: those of some thousand runs.
const maxBytes = 2 << 20

// Decoder decodes attributes. It remembers the latest: whoever reads one series of a task reads the others, which are of the same runs, and
// to decode them takes most of the time that a page of a series takes. They are found by their whole text, so that no change of them is
// overlooked. Its zero value works. Several goroutines may use it.
type Decoder struct {
	mu    sync.Mutex
	known map[string]store.PointRun // by JSON
	bytes int                       // of that
}

// Decode returns the attributes in a text. Nothing of them is shared with other callers.
func (d *Decoder) Decode(doc []byte) (r store.PointRun, err error) {
	d.mu.Lock()
	r, found := d.known[string(doc)]
	d.mu.Unlock()
	if !found {
		if err := json.Unmarshal(doc, &r); err != nil {
			return r, err
		}
		d.remember(string(doc), r)
	}
	r.Images, r.Nodes = slices.Clone(r.Images), slices.Clone(r.Nodes)
	return r, nil
}

// remember keeps what a text says, in place of all others if there are too many.
func (d *Decoder) remember(doc string, r store.PointRun) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || d.bytes+len(doc) > maxBytes {
		d.known, d.bytes = make(map[string]store.PointRun), 0
	}
	if _, found := d.known[doc]; !found {
		d.known[doc] = r
		d.bytes += len(doc)
	}
}
