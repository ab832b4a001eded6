package store

import (
	"context"
	"errors"
	"time"
)

// Object is content in the object store: what a document of KindObject says
// about one digest. Content is never changed under its key.
type Object struct {
	Key      string    `json:"key"` // in the object store
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`        // of the content, hex
	MD5      string    `json:"md5,omitempty"` // of the content, hex, where it was asked for
	Created  time.Time `json:"created,omitzero"`
	LastUsed time.Time `json:"used,omitzero"`  // when a run was last given it, to the minute or so
	Uploaded bool      `json:"sent,omitempty"` // along with a run, as its code: nobody can fetch it again
}

// Space is what an object store has room for, beyond what it keeps in reserve.
type Space struct {
	Free  int64 // bytes; -1 where nobody knows
	Total int64 // bytes that would be free if it held nothing; -1 where nobody knows
}

// Pin is what a document of KindPin says: that a run needs an object.
type Pin struct {
	Run string    `json:"run"`
	At  time.Time `json:"at"` // when the run was asked for
}

// ScheduleRetention is what a document of KindSchedule says to those who keep what the
// firings of a schedule will need. Its pin names the schedule in place of a run.
type ScheduleRetention struct {
	Script  string    `json:"script,omitempty"` // digest of the code that each firing takes along, hex; empty for none
	Deleted time.Time `json:"deleted,omitzero"` // when the schedule was deleted; zero for one that lives
}

// PinKey is the key of the pin of an object to a run. Those of one object are
// what begins with PinKey(sha256, "").
func PinKey(sha256, run string) string { return sha256 + "!" + run }

// useGranularity is how old the memory of a use may be for an object to be used again.
const useGranularity = time.Minute

// Stale reports whether it must be remembered anew that the object is used,
// before it is given to a run.
func (o Object) Stale(now time.Time) bool { return now.Sub(o.LastUsed) > useGranularity }

// Claim remembers that an object is used now, so that it is not evicted before
// whoever claims it has remembered what for. It reports whether the object is
// there, under the key that it was given with.
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
