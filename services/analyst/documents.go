package analyst

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// ruleState has the incidents of a rule in a series: the document of KindRuleState. An incident is in it before its own document is
// stored.
type ruleState struct {
	Rule   string          `json:"rule"`
	Series store.SeriesKey `json:"series"`
	// IDs of those that are open, and of those that ended among the points that are looked at
	Incidents []string `json:"incidents,omitempty"`
	Pending   bool     `json:"pending,omitempty"` // the groups of the incidents were not decided since one of them was written
	Writers   []string `json:"writers,omitempty"` // of a pending state, whose analyses wrote it and are not complete: runs, and the clock
	Fault     string   `json:"fault,omitempty"`   // why the last analysis failed
	Notes     []string `json:"notes,omitempty"`   // why the rule cannot be judged
}

// equal reports whether two states are the same.
func (s ruleState) equal(o ruleState) bool {
	return s.Pending == o.Pending && slices.Equal(s.Writers, o.Writers) && s.Fault == o.Fault && slices.Equal(s.Incidents, o.Incidents) &&
		slices.Equal(s.Notes, o.Notes)
}

// clock is the writer of states that no run has caused.
const clock = "clock"

// written returns the state as pending by a writer, beside those by whom it is already.
func (s ruleState) written(by string) ruleState {
	s.Pending, s.Writers = true, union(s.Writers, []string{by})
	return s
}

// completed returns the state once the analyses of some writers are complete. It stays pending as long as those of others are not: they may
// be about to store incidents, and have decided no groups since.
func (s ruleState) completed(by []string) ruleState {
	s.Writers = slices.DeleteFunc(slices.Clone(s.Writers), func(w string) bool { return slices.Contains(by, w) })
	s.Pending = len(s.Writers) > 0
	return s
}

// openIncident says that an incident is open, or ended a short time ago: the document of KindOpenIncident.
type openIncident struct {
	Since time.Time `json:"since"` // when it was listed; again when it went on after its end
}

// ruleSetKey is the key of documents of KindRuleSet.
func ruleSetKey(namespace, task string) string { return namespace + "/" + task }

// statePrefix begins the keys of the states of a rule.
func statePrefix(r incident.Rule) string { return r.Namespace + "/" + r.ID + "/" }

// documentKey is the key of documents about one thing of a namespace: an incident, a group, or an acknowledgement.
func documentKey(namespace, id string) string { return namespace + "/" + id }

// damaged reports whether an error means that a document is not what it should be: it is the same at the next try.
func damaged(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

// lostRace reports whether another writer was faster.
func lostRace(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists)
}

// versioned is an incident with the version of its document.
type versioned struct {
	incident.Incident

	version int64 // 0 if it is not stored
}

// fires reports whether the incident fires.
func (v versioned) fires() bool { return v.State == incident.Firing }

// incidentsOf returns the stored incidents with some IDs, in their order.
func (a *analyst) incidentsOf(ctx context.Context, namespace string, ids []string) ([]versioned, error) {
	var all []versioned
	for _, id := range ids {
		i, version, found, err := store.Find[incident.Incident](ctx, a.store, store.KindIncident, documentKey(namespace, id))
		if err != nil {
			return nil, fmt.Errorf("read incident %s: %w", id, err)
		}
		if found {
			all = append(all, versioned{i, version})
		}
	}
	return all, nil
}

// put stores a document in place of a version, or as a new one if that is 0, and returns its version. It returns store.ErrConflict or
// store.ErrExists if another writer was faster.
func put(ctx context.Context, docs store.Docs, kind store.Kind, key string, version int64, v any) (int64, error) {
	if version == 0 {
		return 1, store.Create(ctx, docs, kind, key, v)
	}
	return store.Replace(ctx, docs, kind, key, version, v)
}
