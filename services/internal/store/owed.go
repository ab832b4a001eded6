package store

import "time"

// Owed is a document of KindOwed: the destinations that still lack the rows of a summarised run.
type Owed struct {
	Run          string            `json:"run"`
	Since        time.Time         `json:"since"` // when the run was summarised
	Destinations []OwedDestination `json:"destinations"`
}

// OwedDestination is a destination that lacks the rows of a run.
type OwedDestination struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"` // of the last try, for people: it has no address and no password; empty before the first
}
