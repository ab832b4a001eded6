// Package open opens the destinations that settings name.
package open

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/objects"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/sql"
)

// The kinds of destinations.
const (
	kindObjects = "objects"
	kindSQL     = "sql"
)

// DestinationSettings are those of a place for results beside the store, which descriptors name. The gateway needs the names and namespaces alone.
type DestinationSettings struct {
	Kind       string   `toml:"kind"`       // objects: an object for each run; sql: rows of a table
	Namespaces []string `toml:"namespaces"` // whose descriptors may name it; empty means all
	URL        string   `toml:"url"`        // of kind objects: file:///an/absolute/folder, or s3://bucket/prefix of a bucket in [buckets]
	Format     string   `toml:"format"`     // of kind objects: csv or jsonl; empty means csv
	Driver     string   `toml:"driver"`     // of kind sql: postgres or sqlite
	DSNFile    string   `toml:"dsn_file"`   // of kind sql: file with the database's address and password, postgres://user:password@host/database or an absolute path for sqlite; read for each delivery
	Table      string   `toml:"table"`      // of kind sql: made if it is not there, never altered; may have a schema before a dot in postgres
}

// Settings are the destinations by the names that descriptors use.
type Settings map[string]DestinationSettings

// Validate names every setting at fault.
func (s Settings) Validate() error {
	var errs []error
	valid := regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !valid.MatchString(name) {
			errs = append(errs, fmt.Errorf("destinations.%s: no descriptor can have this name: write letters, digits, - and _", name))
		}
		errs = append(errs, s[name].validate("destinations."+name))
	}
	return errors.Join(errs...)
}

func (d DestinationSettings) validate(at string) error {
	switch d.Kind {
	case kindSQL:
		if d.URL != "" || d.Format != "" {
			return fmt.Errorf("%s: kind sql has no url and no format", at)
		}
		return d.sql().Validate(at)
	case kindObjects:
		var errs []error
		if err := blob.CheckLocation(d.URL); err != nil {
			errs = append(errs, fmt.Errorf("%s.url: %w", at, err))
		}
		if d.Format != "" && d.Format != objects.CSV && d.Format != objects.JSONL {
			errs = append(errs, fmt.Errorf("%s.format: %q, want csv or jsonl", at, d.Format))
		}
		if d.Driver != "" || d.DSNFile != "" || d.Table != "" {
			errs = append(errs, fmt.Errorf("%s: kind objects has no driver, dsn_file and table", at))
		}
		return errors.Join(errs...)
	}
	return fmt.Errorf("%s.kind: %q, want objects or sql", at, d.Kind)
}

func (d DestinationSettings) sql() sql.Settings {
	return sql.Settings{Driver: d.Driver, DSNFile: d.DSNFile, Table: d.Table}
}

// Namespaces returns the namespaces that may use each destination, by its name: none means all. It is never nil.
func (s Settings) Namespaces() map[string][]string {
	all := make(map[string][]string, len(s))
	for name, d := range s {
		all[name] = d.Namespaces
	}
	return all
}

// Destinations opens all destinations, without connecting to any, and returns a function that closes them.
func Destinations(ctx context.Context, s Settings, buckets blob.BucketOpener, log *zap.Logger) (map[string]deliver.Destination, func() error, error) {
	all := make(map[string]deliver.Destination, len(s))
	var locations []*blob.Location
	end := func() error {
		var errs []error
		for _, p := range locations {
			errs = append(errs, p.Close())
		}
		return errors.Join(errs...)
	}
	for name, d := range s {
		if d.Kind == kindSQL {
			all[name] = sql.New(name, d.sql())
			continue
		}
		p, err := blob.OpenLocation(ctx, d.URL, buckets, log)
		if err != nil {
			return all, end, fmt.Errorf("open destination %s: %w", name, err)
		}
		locations = append(locations, p)
		format := objects.CSV
		if d.Format != "" {
			format = d.Format
		}
		all[name] = objects.New(p, format)
	}
	return all, end, nil
}
