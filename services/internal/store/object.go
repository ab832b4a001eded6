package store

import (
	"context"
	"errors"
	"time"
)

// Object is the document of KindObject about content in the object store, by its digest. Content is never changed under its key.
type Object struct {
	Key      string    `json:"key"` // in the object store
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`        // of the content, hex
	MD5      string    `json:"md5,omitempty"` // of the content, hex, if it was requested
	Created  time.Time `json:"created,omitzero"`
	LastUsed time.Time `json:"used,omitzero"`  // when a run last used it, to the minute or so
	Uploaded bool      `json:"sent,omitempty"` // uploaded with a run, as its code: it cannot be fetched again
}

// Space is the room in an object store, beyond its reserve.
type Space struct {
	Free  int64 // bytes; -1 if unknown
	Total int64 // bytes that would be free if the store were empty; -1 if unknown
}

// Pin is a document of KindPin: a run needs an object.
type Pin struct {
	Run string    `json:"run"`
	At  time.Time `json:"at"` // when the run was submitted
}

// ScheduleRetention has the fields of a document of KindSchedule that decide how long the data of its firings are retained. Its pin names
// the schedule in place of a run.
type ScheduleRetention struct {
	Script  string    `json:"script,omitempty"` // digest of the code of each firing, hex; empty for none
	Deleted time.Time `json:"deleted,omitzero"` // when the schedule was deleted; zero if it was not
}

// SetRetention has the fields of a document of KindSet that decide how long the data of its runs are retained. Its pin names the set in
// place of a run.
type SetRetention struct {
	Script string    `json:"script,omitempty"` // digest of the code of each run, hex; empty for none
	Ended  time.Time `json:"ended,omitzero"`   // when all of its runs had ended; zero if they have not
}

// PinKey is the key of the pin of an object to a run. PinKey(sha256, "") is the prefix of all pins of one object.
func PinKey(sha256, run string) string { return sha256 + "!" + run }

// useGranularity is how old the memory of a use may be for an object to be used again.
const useGranularity = time.Minute

// Stale reports whether the use of the object must be stored again before a run gets it.
func (o Object) Stale(now time.Time) bool { return now.Sub(o.LastUsed) > useGranularity }

// Claim stores that an object is used now, so that it is not evicted before the caller has stored its own reference. It reports whether the
// object exists under the key in given.
func Claim(ctx context.Context, docs Docs, given Object, now time.Time) (exists bool, err error) {
	for {
		o, version, err := Get[Object](ctx, docs, KindObject, given.SHA256)
		if errors.Is(err, ErrNotFound) || err == nil && o.Key != given.Key {
			return false, nil
		}
		if err != nil || !o.Stale(now) {
			return err == nil, err
		}
		o.LastUsed = now.UTC()
		_, err = Replace(ctx, docs, KindObject, o.SHA256, version, o)
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
			return err == nil, err
		}
	}
}
