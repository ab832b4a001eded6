package store

import "time"

// Object is content in the object store: what a document of KindObject says
// about one digest. Content is never changed under its key.
type Object struct {
	Key     string    `json:"key"` // in the object store
	Size    int64     `json:"size"`
	SHA256  string    `json:"sha256"`        // of the content, hex
	MD5     string    `json:"md5,omitempty"` // of the content, hex, where it was asked for
	Created time.Time `json:"created,omitzero"`
	Used    time.Time `json:"used,omitzero"` // when a run was last given it, to the minute or so
}
