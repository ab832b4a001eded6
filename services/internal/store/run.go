package store

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Run is the projection of the events of one run.
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
	Updated time.Time  `json:"updated"`           // time of the last change
	Started *time.Time `json:"started,omitempty"` // when the benchmark's process began
	Ended   *time.Time `json:"ended,omitempty"`   // when the run ended

	Data       []event.Data      `json:"data,omitempty"`
	Collectors []string          `json:"collectors,omitempty"` // UIDs of pods, of all attempts, whose data are expected
	Images     map[string]string `json:"images,omitempty"`     // digests of the images in the last attempt's pods, by UID
	Revision   int64             `json:"revision"`             // number of changes, from 1, without a gap

	// Machines are the machines that each attempt used, by its number. An attempt that is missing used unknown ones.
	Machines map[int][]event.MachineUse `json:"machines,omitempty"`

	Overrides   []event.Override  `json:"overrides,omitempty"`   // part of Descriptor already
	Origination *event.Provenance `json:"origination,omitempty"` // of the descriptor; nil for a file of the user's

	event.Use
}

// OriginalDescriptor is a document of KindOriginalDescriptor: the descriptor as the user sent it.
type OriginalDescriptor struct {
	Descriptor string `json:"descriptor"`
}

// Change is one change of a run: an event, as recorded.
type Change struct {
	Run      string          `json:"run"`
	Revision int64           `json:"revision"` // of the run, once this had happened
	Event    string          `json:"event"`    // ID of the event
	Topic    string          `json:"topic"`
	Time     time.Time       `json:"time"` // of the event
	Attempt  int             `json:"attempt"`
	Phase    event.Phase     `json:"phase"` // of the run, once this had happened
	Outcome  event.Outcome   `json:"outcome,omitempty"`
	Class    event.Class     `json:"class,omitempty"`
	Reason   event.Reason    `json:"reason,omitempty"`
	Message  string          `json:"message,omitempty"`
	Progress *event.Progress `json:"progress,omitempty"`
	Late     bool            `json:"late,omitempty"` // it came after the end of the run and changed nothing
}

// RunFilter selects runs. Its zero value selects all.
type RunFilter struct {
	Owner     string
	Namespace string
	Name      string
	Schedule  string // ID of the schedule that fired them
	Set       string // ID of the set that they belong to
	Cell      string // name of a cell of Set; has no effect without Set
	Phases    []event.Phase
	Outcomes  []event.Outcome
	Labels    map[string]string // all of these
	Since     time.Time         // created at this time or later
	Until     time.Time         // created before this time
	Text      string            // beginning of the ID, name or file, or the task itself, in any case of letters
	Oldest    bool              // first; else the newest is

	Framework        string // of Run.Use, as is the version
	FrameworkVersion string
	DataID           string // one of Run.Use
}

// Terms returns the labels of a run, and its framework, data sets, set and cell under keys that no label has: all of them are searched
// alike. The caller must not change them.
func (r Run) Terms() map[string]string {
	return addTerms(r.Labels, r.DataIDs, term{termSet, r.Set}, term{termCell, cellTerm(r.Set, r.Cell)},
		term{termFramework, r.Framework}, term{termFrameworkVersion, r.FrameworkVersion})
}

// Terms returns the terms that a run must have.
func (f RunFilter) Terms() map[string]string {
	var ids []string
	if f.DataID != "" {
		ids = append(ids, f.DataID)
	}
	within := term{termSet, f.Set}
	if cell := cellTerm(f.Set, f.Cell); cell != "" {
		within = term{termCell, cell}
	}
	return addTerms(f.Labels, ids, within, term{termFramework, f.Framework}, term{termFrameworkVersion, f.FrameworkVersion})
}

// A term is searched like a label.
type term struct{ key, value string }

// Keys of terms. No key of a label contains "=".
const (
	termFramework        = "=framework"
	termFrameworkVersion = "=framework_version"
	termDataID           = "=data_id="
	termSet              = "=set"
	termCell             = "=cell"
)

// cellTerm returns the value of the term of a cell, or "" without one. Cells of two sets may have one name.
func cellTerm(set, cell string) string {
	if set == "" || cell == "" {
		return ""
	}
	return set + "/" + cell
}

// addTerms adds the IDs of data sets, and the terms that have a value, to labels.
func addTerms(labels map[string]string, ids []string, others ...term) map[string]string {
	others = slices.DeleteFunc(others, func(t term) bool { return t.value == "" })
	if len(ids)+len(others) == 0 {
		return labels
	}
	all := make(map[string]string, len(labels)+len(ids)+len(others))
	maps.Copy(all, labels)
	for _, t := range others {
		all[t.key] = t.value
	}
	for _, id := range ids {
		all[termDataID+id] = ""
	}
	return all
}

// LabelTask is the label with the name of a run's task.
const LabelTask = "task_name"

// SearchTexts returns the texts that RunFilter.Text is compared with, in lower case: those that may begin with it, and the task, which must
// be equal.
func (r Run) SearchTexts() (begin []string, task string) {
	return []string{Fold(r.ID), Fold(r.Name), Fold(r.File)}, Fold(r.Labels[LabelTask])
}

// Fold returns text in lower case: all texts that differ in case only are one.
func Fold(text string) string { return strings.ToLower(text) }

// Runs is the part of a store that has runs and their changes.
type Runs interface {
	RunReader

	// PutRun stores r and the change c that led to it, both or neither for any reader. c.Revision is r.Revision and follows the stored
	// run's without a gap, else PutRun returns ErrConflict. If an event with c's ID was recorded for this run before, PutRun stores nothing
	// and returns ErrExists, whatever the revision.
	PutRun(ctx context.Context, r Run, c Change) error
}

// RunReader reads runs and their changes.
type RunReader interface {
	// Run returns the run, as last written by any process, or ErrNotFound.
	Run(ctx context.Context, id string) (Run, error)
	// Runs returns up to limit runs, newest or oldest first (by Created, then ID), and the token of the next page, empty after the last.
	// Token "" is the first page. Pages neither skip nor repeat a run while new runs are added.
	Runs(ctx context.Context, f RunFilter, token string, limit int) (runs []Run, next string, err error)
	// Changes returns up to limit changes of a run with revisions greater than
	// after, in order.
	Changes(ctx context.Context, run string, after int64, limit int) ([]Change, error)
}
