package event

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Header names an event's run and its cause.
type Header struct {
	ID        string    `json:"id"`        // of this fact: the same each time the same cause is handled
	Run       string    `json:"run"`       // lower-case ULID of the run, for all its life
	Namespace string    `json:"namespace"` // the team that the run belongs to
	Owner     string    `json:"owner"`     // user who submitted the run
	Attempt   int       `json:"attempt"`   // from 1; a retried run is the next attempt
	Time      time.Time `json:"time"`      // when the first cause happened, not when it was handled
	Schema    int       `json:"schema"`    // Major when it was written

	Lineage

	// PublishedAt is when the message was first written to its topic. It is read from the
	// message and not part of the fact: a fact that is published twice has two.
	PublishedAt time.Time `json:"-"`
}

// Lineage says where a run comes from. Its zero value is a run that a user
// submitted alone.
type Lineage struct {
	Set        string     `json:"set,omitempty"`        // the set that the run is part of
	Cell       string     `json:"cell,omitempty"`       // its place in the set's sweep
	Repetition int        `json:"repetition,omitempty"` // from 1, within its cell
	Warmup     bool       `json:"warmup,omitempty"`     // its samples do not count
	Schedule   string     `json:"schedule,omitempty"`   // the schedule that fired
	Firing     *time.Time `json:"firing,omitempty"`     // the time it fired for; not the time in the run's ID
	RerunOf    string     `json:"rerun_of,omitempty"`   // the run that was asked for again
	Confirms   string     `json:"confirms,omitempty"`   // the incident that it was made to confirm: only the gateway makes such runs
	Compares   string     `json:"compares,omitempty"`   // the comparison that a user made it for

	Nodes *NodePreference `json:"nodes,omitempty"` // where it is to run if it can: only the gateway says so; nil for anywhere
}

// NodePreference says on which nodes of the cluster the pods of a run are to be, by their names.
// A run that cannot be there is elsewhere.
type NodePreference struct {
	On    []string `json:"on,omitempty"`
	NotOn []string `json:"not_on,omitempty"`
}

// NewHeader returns the header of something that follows from no event: a
// user's request, or a change in the cluster. The ID must be the same when the
// request or the change is seen again.
func NewHeader(id, run, namespace, owner string, at time.Time) Header {
	return Header{ID: id, Run: run, Namespace: namespace, Owner: owner, Attempt: 1, Time: at, Schema: Major}
}

// Cause returns the header of a fact that follows from h: one of a kind, about a subject.
// The subject must distinguish the facts of a kind ("1/3" and "2/3"); if a kind has one
// fact only, it is empty.
//
// Cause is a pure function: a redelivered cause yields the same ID, and two facts never
// share one, so consumers recognise duplicates.
func (h Header) Cause(kind, subject string) Header {
	h.ID, h.Schema, h.PublishedAt = Derive(h.ID, fmt.Sprint(h.Attempt), kind, subject), Major, time.Time{}
	return h
}

// Derive returns the ID, 32 hex digits, of the fact that parts identify: the same parts
// always give the same ID.
func Derive(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:16])
}

func (h *Header) setPublishedAt(at time.Time) { h.PublishedAt = at }

// Head implements Event.
func (h Header) Head() Header { return h }

// Validate implements Event.
func (h Header) Validate() error {
	var errs []error
	if h.Schema != Major {
		errs = append(errs, fmt.Errorf("schema: %d, want %d", h.Schema, Major))
	}
	if h.Attempt < 1 {
		errs = append(errs, fmt.Errorf("attempt: %d, want 1 or more", h.Attempt))
	}
	if h.Time.IsZero() {
		errs = append(errs, errors.New("time: must not be empty"))
	}
	return errors.Join(append(errs,
		required("id", h.ID), required("run", h.Run), required("namespace", h.Namespace), required("owner", h.Owner))...)
}

func required(field, value string) error {
	if value == "" {
		return fmt.Errorf("%s: must not be empty", field)
	}
	return nil
}
