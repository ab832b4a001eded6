// Package alarm shows the incidents and notices of the analyst, takes what users say of
// incidents, keeps mutes, and asks for tests of receivers.
//
// Incidents and notices are documents of the analyst, and are only read here.
// Acknowledgements and mutes are documents of this package: the analyst reads them, and
// changes its incidents. Until it has, an incident is shown as its acknowledgement will
// make it (incident.go). A test is a notice that waits, as the analyst makes them: a process
// that has the receivers sends it. Rules are in decide.go.
package alarm

import (
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Store has documents.
type Store interface {
	store.Docs
	store.Lister
}

// Deps are the dependencies of Alarms.
type Deps struct {
	Store Store
	// names of receivers, with the teams that may use each, by which descriptors are checked, too; none means all
	Receivers map[string][]string
	Now       func() time.Time
}

// Alarms answers requests. Several goroutines may use it.
type Alarms struct{ deps Deps }

// New returns Alarms.
func New(d Deps) *Alarms { return &Alarms{deps: d} }

// Page selects a part of a list, the newest first.
type Page struct {
	Token string // as the last page gave it; empty for the first one
	Size  int
}

// now is the time without a clock reading of this process.
func (a *Alarms) now() time.Time { return a.deps.Now().UTC().Round(0) }

// key is the key of a document of a team. Names of teams have no "/".
func key(namespace, id string) string { return namespace + "/" + id }
