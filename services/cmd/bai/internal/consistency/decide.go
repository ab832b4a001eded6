package consistency

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// brokerMark is what the folder of the embedded broker says of the store beside it, and
// of how the platform ended.
type brokerMark struct {
	Broker    string `json:"broker"` // ID of the broker's files
	Store     string `json:"store"`  // ID of the store's file
	Boot      string `json:"boot"`   // ID of the machine's start under which the platform ran
	Heartbeat int64  `json:"pulse"`  // number of the last moment at which store and broker noted each other
	Clean     bool   `json:"clean"`  // the platform was told to end, and all its files are on the disk

	Recovering bool `json:"recovering,omitempty"` // not all events were heard again yet

	Seals map[string][]int64 `json:"seals,omitempty"` // from where on messages must have a seal, for a store that is lost

	Files map[string]FileStamp `json:"files,omitempty"` // of the broker and the store, as they were at a clean end
}

// FileStamp tells whether a file is as it was.
type FileStamp struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// storeMark is what the store says of the broker beside it.
type storeMark struct {
	Broker    string `json:"broker"`
	Heartbeat int64  `json:"pulse"`
	Key       string `json:"key,omitempty"`  // of the runs' tokens, without which no event of a pod is believed
	Seal      string `json:"seal,omitempty"` // the key of the seals, without which no event of a service is
}

// StartState is the state of a data folder at the start.
type StartState struct {
	Mark      *brokerMark // nil where there is none that is whole
	Broker    bool        // the broker has data
	Store     string
	StoreMark *storeMark // nil where the store has none
	Boot      string
	Files     map[string]FileStamp
}

// IntegrityProblems returns why the files of the last life may not be whole or not be of one
// time, a sentence each; none where they are, and after a mere end of the process.
func IntegrityProblems(f StartState) []string {
	if !f.Broker && f.Mark == nil && f.StoreMark == nil {
		return nil // nothing was here before, or only a store of a version without marks
	}
	if f.Mark == nil {
		return []string{"nothing says how the platform last ended"}
	}
	m, problems := *f.Mark, []string(nil)
	if f.Store != m.Store {
		problems = append(problems, "the store is not the one that the broker knows: it was emptied, removed or replaced")
	}
	switch c := f.StoreMark; {
	case f.Store != m.Store:
	case c == nil && m.Heartbeat > 0 || c != nil && c.Broker == m.Broker && c.Heartbeat < m.Heartbeat:
		problems = append(problems, "the store is older than the broker's files")
	case c != nil && (c.Broker != m.Broker || c.Heartbeat > m.Heartbeat+1):
		problems = append(problems, "the broker's files are older than the store, or of another platform")
	}
	if m.Recovering {
		problems = append(problems, "the check of the last start did not come to its end")
	}
	switch {
	case !m.Clean && m.Boot != f.Boot:
		problems = append(problems, "the machine has stopped while the platform ran")
	case m.Clean:
		if changed := changedFiles(m.Files, f.Files); len(changed) > 0 {
			problems = append(problems, fmt.Sprintf("files have changed since the platform ended: %s", joinSome(changed)))
		}
	}
	return problems
}

// changedFiles returns the names of files that are not as they were, sorted.
func changedFiles(before, current map[string]FileStamp) []string {
	names := make(map[string]bool)
	for name, s := range before {
		if now, ok := current[name]; !ok || now.Size != s.Size || !now.Modified.Equal(s.Modified) {
			names[name] = true
		}
	}
	for name := range current {
		if _, ok := before[name]; !ok {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// joinSome returns some of names.
func joinSome(names []string) string {
	const limit = 3
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// damagedKeys reports whether the file with the keys of the seals, a key on each
// line, is not what an operator made of the one that the store knows: who changes
// keys leaves one of those that were there.
func damagedKeys(stored, file string) bool {
	if stored == "" {
		return false
	}
	keys := strings.Fields(file)
	return !slices.ContainsFunc(strings.Fields(stored), func(key string) bool { return slices.Contains(keys, key) })
}
