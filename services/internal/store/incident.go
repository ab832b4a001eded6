package store

import (
	"context"
	"time"
)

// IncidentRecord is what people search of an incident.
type IncidentRecord struct {
	ID        string
	Version   int64 // of its document
	Namespace string
	Task      string
	Metric    string
	Unit      string
	Labels    map[string]string // of the series
	Cell      string
	When      string // condition of its rule
	State     string
	Over      bool
	Silent    bool
	Cause     string
	Kind      string
	Direction string
	Group     string
	Message   string
	Notify    []string // names of receivers in its rule
	Before    Float
	After     Float
	Magnitude *Float // nil for none

	GoodRun, GoodVersion string // the last good run
	BadRun, BadVersion   string // the first bad run
	AckedBy              string

	Opened  time.Time
	Since   time.Time // when it came into its state
	Updated time.Time
}

// IncidentIndex has incidents for searching, beside their documents. A store need not have one.
type IncidentIndex interface {
	// PutIncident stores a record in place of the one of an earlier version. To store an earlier version changes nothing. It returns
	// ErrRefused for a record that it never takes.
	PutIncident(ctx context.Context, r IncidentRecord) error
	// DeleteIncident removes the record of an incident. One that does not exist is no error.
	DeleteIncident(ctx context.Context, namespace, id string) error
}
