package consistency

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// brokerMark is the record in the embedded broker's folder about the store, and about
// the platform's last end.
type brokerMark struct {
	Broker    string `json:"broker"` // ID of the broker's files
	Store     string `json:"store"`  // ID of the store's file
	Boot      string `json:"boot"`   // boot ID of the machine while the platform ran
	Heartbeat int64  `json:"pulse"`  // number of the last heartbeat
	Clean     bool   `json:"clean"`  // the platform ended cleanly, and all its files are on disk

	Recovering bool `json:"recovering,omitempty"` // not all events have been replayed yet

	Seals map[string][]int64 `json:"seals,omitempty"` // offsets from which on messages need a signature, in case the store is lost

	Files map[string]FileStamp `json:"files,omitempty"` // files of the broker and the store at a clean end
}

// FileStamp tells whether a file has changed.
type FileStamp struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// storeMark is the record in the store about the broker.
type storeMark struct {
	Broker    string `json:"broker"`
	Heartbeat int64  `json:"pulse"`
	Key       string `json:"key,omitempty"`  // key of run tokens; without it no event of a pod is valid
	Seal      string `json:"seal,omitempty"` // signing key; without it no event of a service is valid
}

// StartState is the state of a data folder at the start.
type StartState struct {
	Mark      *brokerMark // nil if there is no complete one
	Broker    bool        // the broker has data
	Store     string
	StoreMark *storeMark // nil if the store has none
	Boot      string
	Files     map[string]FileStamp
}

// IntegrityProblems returns the reasons why the files may be damaged or may not match
// each other, one sentence each. There are none if the files are fine, and none after a
// crash of only the process.
func IntegrityProblems(f StartState) []string {
	if !f.Broker && f.Mark == nil && f.StoreMark == nil {
		return nil // a new folder, or only a store of a version without marks
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

// changedFiles returns the sorted names of changed, new and missing files.
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

// joinSome joins the first names, with the number of the others.
func joinSome(names []string) string {
	const limit = 3
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// damagedKeys reports whether the file with the signing keys, one per line, has none of
// the stored keys. An operator who changes the keys keeps one of the earlier keys in
// the file.
func damagedKeys(stored, file string) bool {
	if stored == "" {
		return false
	}
	keys := strings.Fields(file)
	return !slices.ContainsFunc(strings.Fields(stored), func(key string) bool { return slices.Contains(keys, key) })
}
