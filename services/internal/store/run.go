package store

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Run is what is known of one run: the projection of its events.
type Run struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"`

	event.Lineage

	Labels     map[string]string `json:"labels,omitempty"`
	File       string            `json:"file,omitempty"`
	Descriptor string            `json:"descriptor"`

	Phase    event.Phase     `json:"phase"`
	Outcome  event.Outcome   `json:"outcome,omitempty"`
	Class    event.Class     `json:"class,omitempty"`
	Reason   event.Reason    `json:"reason,omitempty"`
	Message  string          `json:"message,omitempty"`
	Progress *event.Progress `json:"progress,omitempty"`
	Attempt  int             `json:"attempt"`
	ExitCode *int            `json:"exit_code,omitempty"`

	Created time.Time  `json:"created"`           // when it was submitted
	Updated time.Time  `json:"updated"`           // when the last change was said
	Started *time.Time `json:"started,omitempty"` // when the benchmark's process began
	Ended   *time.Time `json:"ended,omitempty"`   // when the run came to its end

	Data       []event.Data      `json:"data,omitempty"`
	Collectors []string          `json:"collectors,omitempty"` // UIDs of pods, of all attempts, whose data are awaited
	Images     map[string]string `json:"images,omitempty"`     // digests of what ran in the last attempt's pods, by UID
	Revision   int64             `json:"revision"`             // number of changes, from 1, without a gap

	Overrides   []event.Override  `json:"overrides,omitempty"`   // part of Descriptor already
	Origination *event.Provenance `json:"origination,omitempty"` // of the descriptor; nil for a file of the user's

	event.Use
}

// OriginalDescriptor is what a document of KindOriginalDescriptor says: the descriptor as the user
// sent it.
type OriginalDescriptor struct {
	Descriptor string `json:"descriptor"`
}

// Change is one thing that happened to a run: an event, as recorded.
type Change struct {
	Run      string          `json:"run"`
	Revision int64           `json:"revision"` // of the run, once this had happened
	Event    string          `json:"event"`    // ID of the event
	Topic    string          `json:"topic"`
	Time     time.Time       `json:"time"` // when it was said
	Attempt  int             `json:"attempt"`
	Phase    event.Phase     `json:"phase"` // of the run, once this had happened
	Outcome  event.Outcome   `json:"outcome,omitempty"`
	Class    event.Class     `json:"class,omitempty"`
	Reason   event.Reason    `json:"reason,omitempty"`
	Message  string          `json:"message,omitempty"`
	Progress *event.Progress `json:"progress,omitempty"`
	Late     bool            `json:"late,omitempty"` // came after the terminal fact and changed nothing
}

// RunFilter says which runs are meant. Its zero value means all.
type RunFilter struct {
	Owner     string
	Namespace string
	Name      string
	Schedule  string // ID of the schedule whose firings they are
	Phases    []event.Phase
	Outcomes  []event.Outcome
	Labels    map[string]string // all of these
	Since     time.Time         // created at this time or later
	Until     time.Time         // created before this time
	Text      string            // with which ID, name or file begins, or which is the task, in any case of letters
	Oldest    bool              // first; else the newest is

	Framework        string // of Run.Use, as is the version
	FrameworkVersion string
	DataID           string // one of Run.Use
}

// Terms are the labels of a run, and what it uses under keys that no label has: a
// run is found by all of them alike. They are for reading only.
func (r Run) Terms() map[string]string {
	return terms(r.Labels, r.Framework, r.FrameworkVersion, r.DataIDs)
}

// Terms are those that a run must have.
func (f RunFilter) Terms() map[string]string {
	var ids []string
	if f.DataID != "" {
		ids = append(ids, f.DataID)
	}
	return terms(f.Labels, f.Framework, f.FrameworkVersion, ids)
}

// terms adds to labels what they do not say. No key of a label holds "=".
func terms(labels map[string]string, framework, version string, ids []string) map[string]string {
	if framework == "" && version == "" && len(ids) == 0 {
		return labels
	}
	all := make(map[string]string, len(labels)+2+len(ids))
	maps.Copy(all, labels)
	if framework != "" {
		all["=framework"] = framework
	}
	if version != "" {
		all["=framework_version"] = version
	}
	for _, id := range ids {
		all["=data_id="+id] = ""
	}
	return all
}

// LabelTask is the label that holds the name of a run's task.
const LabelTask = "task_name"

// SearchTexts are what RunFilter.Text is compared to, in lower case: the texts that
// may begin with it, and the one that may be it.
func (r Run) SearchTexts() (begin []string, task string) {
	return []string{Fold(r.ID), Fold(r.Name), Fold(r.File)}, Fold(r.Labels[LabelTask])
}

// Fold returns text in lower case: all texts that differ in case only are one.
func Fold(text string) string { return strings.ToLower(text) }

// Runs is the part of a store that keeps runs and their changes.
type Runs interface {
	RunReader

	// PutRun stores r and the change c that led to it, both or neither, as far
	// as any reader can see. c.Revision is r.Revision and follows the stored
	// run's without a gap, else ErrConflict. If an event of c's ID was recorded
	// for this run before, nothing is stored and ErrExists returned, whatever
	// the revision.
	PutRun(ctx context.Context, r Run, c Change) error
}

// RunReader reads runs and their changes.
type RunReader interface {
	// Run returns the run, as last written by any process, or ErrNotFound.
	Run(ctx context.Context, id string) (Run, error)
	// Runs returns up to limit runs, newest or oldest first (by Created, then
	// ID), and the token of the next page, empty after the last. Token "" is the
	// first page.
	// Pages neither skip nor repeat a run while others arrive.
	Runs(ctx context.Context, f RunFilter, token string, limit int) (runs []Run, next string, err error)
	// Changes returns up to limit changes of a run with revisions greater than
	// after, in order.
	Changes(ctx context.Context, run string, after int64, limit int) ([]Change, error)
}
