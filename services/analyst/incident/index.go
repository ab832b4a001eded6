package incident

import (
	"fmt"
	"math"
	"time"
)

// IndexComplete is the key of the document of the index of incidents that says that all of them are
// in it: those that are older than the index were added.
const IndexComplete = "/complete"

// An IndexEntry says that an incident exists. It never changes.
type IndexEntry struct {
	ID     string
	Opened time.Time
	Task   string
	Metric string
}

// IndexEntryOf returns the entry of an incident.
func IndexEntryOf(i Incident) IndexEntry {
	return IndexEntry{ID: i.ID, Opened: i.Opened, Task: i.Series.Task, Metric: i.Series.Metric}
}

// IndexKey returns the key of the entry of an incident that was opened at a time. The keys of a
// namespace begin with its name and "/", and are in order of time, the newest first; those of one
// time are in order of their IDs.
func IndexKey(namespace string, opened time.Time, id string) string {
	return fmt.Sprintf("%s/%019d/%s", namespace, math.MaxInt64-max(opened.UnixNano(), 0), id)
}
