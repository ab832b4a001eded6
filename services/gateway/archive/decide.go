package archive

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// storedRun is the part of a run that this platform has stored already.
type storedRun struct {
	run         *store.Run
	submitted   bool // submitted here, perhaps without a projection yet; its records were not removed
	events      []store.Change
	streams     []store.Stream
	files       []artifact.File
	environment *store.RunEnvironment
	summaries   *store.Summaries
	mark        *importMark
}

// importPlan is what an import has to do.
type importPlan struct {
	already bool     // everything is stored
	want    []string // names of the files to request, beside the documents
	after   int64    // last revision of the stored history
}

// decide returns the plan of an import. The error is *RunExistsError if another run has
// its ID:
//
//   - An import never changes a run of this platform. If the import is of that same
//     run, the plan has nothing to do; otherwise, or if the run has not finished, the
//     import is refused.
//   - A run that was imported before, completely or in part, may be imported again: the
//     plan adds the missing parts, and its place in the history. If a stored part is
//     missing from the import or differs, the import is refused.
func decide(b importedRun, k storedRun, digest string, history bool) (importPlan, error) {
	if k.run == nil && !k.submitted && k.mark == nil {
		return b.planAll(), nil
	}
	if k.mark == nil && (k.run == nil || k.run.Phase != event.PhaseFinished) {
		return importPlan{}, &RunExistsError{Run: b.run.ID, Message: "it is a run of this platform, and goes on"}
	}
	if reason := b.difference(k); reason != "" {
		return importPlan{}, &RunExistsError{Run: b.run.ID, Message: "it is another than the one that is imported: " + reason}
	}
	missing := b.planMissing(k)
	if k.mark == nil {
		if len(missing.want) > 0 || missing.after < b.run.Revision {
			return importPlan{}, &RunExistsError{
				Run: b.run.ID,
				Message: "it is a run of this platform, and has less than what is imported: " +
					strings.Join(append(missing.want, fileEvents)[:1], ""),
			}
		}
		return importPlan{already: true}, nil
	}
	same := k.mark.Digest == digest || sameJSON(b.environment, k.environment) && sameJSON(b.summaries, k.summaries)
	missing.already = k.mark.Done && same && (k.mark.History || !history) && len(missing.want) == 0 && missing.after >= b.run.Revision
	return missing, nil
}

// planAll returns the plan for a run that is not stored at all.
func (b importedRun) planAll() importPlan { return b.planMissing(storedRun{}) }

// planMissing returns the plan that adds the missing parts of a run.
func (b importedRun) planMissing(k storedRun) importPlan {
	var p importPlan
	if k.run != nil {
		p.after = k.run.Revision
	}
	stored := make(map[string]store.Stream)
	for _, s := range k.streams {
		stored[s.Origin.StreamID()+s.Topic] = s
	}
	for _, topic := range []struct{ topic, file string }{{event.TopicMetrics, fileSamples}, {event.TopicLogs, fileLines}} {
		if slices.ContainsFunc(b.sources, func(s sourceRow) bool {
			have := stored[s.origin(b.run.ID).StreamID()+s.Topic]
			return s.Topic == topic.topic && (have.Stored < s.Stored || have.End == nil && s.End != nil)
		}) {
			p.want = append(p.want, topic.file)
		}
	}
	for _, f := range b.files {
		if !slices.ContainsFunc(k.files, func(o artifact.File) bool { return o.Name == f.Name }) {
			p.want = append(p.want, artifacts+f.Name)
		}
	}
	return p
}

// difference returns a part in which the stored run differs from the imported one, or
// "".
func (b importedRun) difference(k storedRun) string {
	if k.run != nil {
		was, is := redactRun(*k.run), b.run
		switch {
		case !was.Created.Equal(is.Created) || was.Owner != is.Owner || was.Namespace != is.Namespace || was.Name != is.Name:
			return fmt.Sprintf("it was submitted by %q at %s", was.Owner, was.Created.Format(time.RFC3339))
		case was.Descriptor != is.Descriptor:
			return "its descriptor is another"
		case was.Revision == is.Revision && !sameJSON(&was, &is) && k.mark == nil:
			return "what is known of it is not the same"
		}
	}
	if n := b.divergesAt(k.events); n > 0 {
		return fmt.Sprintf("its history is another from revision %d on", n)
	}
	if reason := b.notImported(k); reason != "" {
		return reason
	}
	if k.mark != nil {
		return ""
	}
	if b.environment != nil && !sameJSON(b.environment, k.environment) || b.summaries != nil && !sameJSON(b.summaries, k.summaries) {
		return "its environment or its summaries are others"
	}
	return ""
}

// divergesAt returns the first revision at which the two histories differ, or 0.
func (b importedRun) divergesAt(events []store.Change) int64 {
	for i := range min(len(events), len(b.events)) {
		was := events[i]
		was.Message = redact(was.Message)
		if !sameJSON(&was, &b.events[i]) {
			return events[i].Revision
		}
	}
	return 0
}

// notImported returns a stored part of the run that the import lacks, or "".
func (b importedRun) notImported(k storedRun) string {
	given := make(map[string]sourceRow)
	for _, s := range b.sources {
		given[s.origin(b.run.ID).StreamID()+s.Topic] = s
	}
	for _, s := range sourcesOf(b.run.ID, k.streams) {
		o, ok := given[s.origin(b.run.ID).StreamID()+s.Topic]
		if !ok || o.Stored < s.Stored || s.End != nil && !sameJSON(s.End, o.End) {
			return fmt.Sprintf("source %s of pod %q has brought %d to %s, not %d", s.Kind, s.Pod, s.Stored, s.Topic, o.Stored)
		}
	}
	for _, f := range k.files {
		if !slices.ContainsFunc(b.files, func(o artifact.File) bool {
			return o.Name == f.Name && o.SHA256 == f.SHA256 && o.Time.Equal(f.Time)
		}) {
			return fmt.Sprintf("artifact %q is another", f.Name)
		}
	}
	return ""
}

// sameJSON reports whether two values have the same JSON form.
func sameJSON[T any](a, b *T) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
