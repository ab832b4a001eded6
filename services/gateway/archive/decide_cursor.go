package archive

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// exportCursor is a position in an export.
type exportCursor struct {
	Revision int64  `json:"r"` // revision of the run
	File     string `json:"f"`
	Offset   string `json:"a,omitempty"` // position in the file
	Data     string `json:"d,omitempty"` // version of the run's data; empty if they may grow
}

func (p exportCursor) String() string {
	b, err := json.Marshal(p)
	if err != nil {
		return "" // strings and numbers always have a JSON form
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor decodes a cursor. The error is store.ErrCursor for text that is no
// cursor.
func parseCursor(text string) (p exportCursor, err error) {
	if text == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &p) != nil {
		return exportCursor{}, store.ErrCursor
	}
	return p, nil
}

// parseOffset decodes an offset in a file of size bytes. The error is store.ErrCursor
// for any other text.
func parseOffset(at string, size int64) (int64, error) {
	if at == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil || n < 0 || n > size {
		return 0, store.ErrCursor
	}
	return n, nil
}

// digestOf returns a digest of the names, sizes and digests of files.
func digestOf(files []File) string {
	parts := []string{"files"}
	for _, f := range files {
		parts = append(parts, f.Name, strconv.FormatInt(f.Size, 10), f.SHA256)
	}
	return event.Derive(parts...)
}
