package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// mark is what the folder of the embedded broker says of the store beside it, and
// of how the platform ended.
type mark struct {
	Broker string `json:"broker"` // ID of the broker's files
	Store  string `json:"store"`  // ID of the store's file
	Boot   string `json:"boot"`   // ID of the machine's start under which the platform ran
	Pulse  int64  `json:"pulse"`  // number of the last moment at which store and broker noted each other
	Clean  bool   `json:"clean"`  // the platform was told to end, and all its files are on the disk

	Recovering bool `json:"recovering,omitempty"` // not all events were heard again yet

	Seals map[string][]int64 `json:"seals,omitempty"` // from where on messages must have a seal, for a store that is lost

	Files map[string]stamp `json:"files,omitempty"` // of the broker and the store, as they were at a clean end
}

// stamp is by which a file is known to be as it was.
type stamp struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// counter is what the store says of the broker beside it.
type counter struct {
	Broker string `json:"broker"`
	Pulse  int64  `json:"pulse"`
	Key    string `json:"key,omitempty"`  // of the runs' tokens, without which no event of a pod is believed
	Seal   string `json:"seal,omitempty"` // the key of the seals, without which no event of a service is
}

// found is what there is at the start.
type found struct {
	Mark    *mark // nil where there is none that is whole
	Broker  bool  // the broker has data
	Store   string
	Counter *counter // nil where the store has none
	Boot    string
	Files   map[string]stamp
}

// doubts returns why the files of the last life may not be whole or not be of one
// time, a sentence each; none where they are, and after a mere end of the process.
func doubts(f found) []string {
	if !f.Broker && f.Mark == nil && f.Counter == nil {
		return nil // nothing was here before, or only a store of a version without marks
	}
	if f.Mark == nil {
		return []string{"nothing says how the platform last ended"}
	}
	m, why := *f.Mark, []string(nil)
	if f.Store != m.Store {
		why = append(why, "the store is not the one that the broker knows: it was emptied, removed or replaced")
	}
	switch c := f.Counter; {
	case f.Store != m.Store:
	case c == nil && m.Pulse > 0 || c != nil && c.Broker == m.Broker && c.Pulse < m.Pulse:
		why = append(why, "the store is older than the broker's files")
	case c != nil && (c.Broker != m.Broker || c.Pulse > m.Pulse+1):
		why = append(why, "the broker's files are older than the store, or of another platform")
	}
	if m.Recovering {
		why = append(why, "the check of the last start did not come to its end")
	}
	switch {
	case !m.Clean && m.Boot != f.Boot:
		why = append(why, "the machine has stopped while the platform ran")
	case m.Clean:
		if changed := differing(m.Files, f.Files); len(changed) > 0 {
			why = append(why, fmt.Sprintf("files have changed since the platform ended: %s", list(changed)))
		}
	}
	return why
}

// differing returns the names of files that are not as they were, sorted.
func differing(was, is map[string]stamp) []string {
	names := make(map[string]bool)
	for name, s := range was {
		if now, ok := is[name]; !ok || now.Size != s.Size || !now.Modified.Equal(s.Modified) {
			names[name] = true
		}
	}
	for name := range is {
		if _, ok := was[name]; !ok {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// list returns some of names.
func list(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// damagedKeys reports whether the file with the keys of the seals, a key on each
// line, is not what an operator made of the one that the store knows: who changes
// keys leaves one of those that were there.
func damagedKeys(known, file string) bool {
	if known == "" {
		return false
	}
	is := strings.Fields(file)
	return !slices.ContainsFunc(strings.Fields(known), func(key string) bool { return slices.Contains(is, key) })
}
