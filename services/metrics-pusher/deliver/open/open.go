// Package open opens the destinations that settings name.
package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/post"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/mlflow"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/objects"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/sql"
)

// The kinds of destinations.
const (
	kindObjects = "objects"
	kindSQL     = "sql"
	kindMLflow  = "mlflow"
)

// DestinationSettings are those of a place for results beside the store, which descriptors name. The gateway needs the names and namespaces
// alone.
type DestinationSettings struct {
	// objects: an object for each run; sql: rows of a table; mlflow: a run of MLflow for each run
	Kind       string   `toml:"kind"`
	Namespaces []string `toml:"namespaces"` // whose descriptors may name it; empty means all
	// of kind objects: file:///an/absolute/folder, or s3://bucket/prefix of a bucket in [buckets]; of kind mlflow: http:// or https://
	// address of the tracking server, without a password
	URL    string `toml:"url"`
	Format string `toml:"format"` // of kind objects: csv or jsonl; empty means csv
	Driver string `toml:"driver"` // of kind sql: postgres or sqlite
	// of kind sql: file with the database's address and password, postgres://user:password@host/database or an absolute path for sqlite;
	// read for each delivery
	DSNFile string `toml:"dsn_file"`
	// of kind sql: made if it is not there, never altered; may have a schema before a dot in postgres
	Table        string `toml:"table"`
	Experiment   string `toml:"experiment"`    // of kind mlflow: name of the experiment; made if it is not there
	Username     string `toml:"username"`      // of kind mlflow: for basic authentication
	PasswordFile string `toml:"password_file"` // of kind mlflow: file with that user's password; read for each request
	TokenFile    string `toml:"token_file"`    // of kind mlflow: file with a bearer token, instead of a user; read for each request
	// of kind mlflow: PEM file of the authorities that the server's certificate is checked with; empty means the system's
	CAFile string `toml:"ca_file"`
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
	return errors.Join(append(errs, s.clashes()...)...)
}

func (d DestinationSettings) validate(at string) error {
	switch d.Kind {
	case kindSQL:
		return errors.Join(d.unused(at, "url", "format", "experiment", "username", "password_file", "token_file", "ca_file"),
			d.sql().Validate(at))
	case kindMLflow:
		return errors.Join(d.unused(at, "format", "driver", "dsn_file", "table"), d.mlflow().Validate(at))
	case kindObjects:
		errs := []error{d.unused(at, "driver", "dsn_file", "table", "experiment", "username", "password_file", "token_file", "ca_file")}
		if err := blob.CheckLocation(d.URL); err != nil {
			errs = append(errs, fmt.Errorf("%s.url: %w", at, err))
		}
		if d.Format != "" && d.Format != objects.CSV && d.Format != objects.JSONL {
			errs = append(errs, fmt.Errorf("%s.format: %q, want csv or jsonl", at, d.Format))
		}
		return errors.Join(errs...)
	}
	return fmt.Errorf("%s.kind: %q, want objects, sql or mlflow", at, d.Kind)
}

// unused returns an error for each of the keys that is set, which the kind does not have.
func (d DestinationSettings) unused(at string, keys ...string) error {
	values := map[string]string{
		"url": d.URL, "format": d.Format, "driver": d.Driver, "dsn_file": d.DSNFile, "table": d.Table, "experiment": d.Experiment,
		"username": d.Username, "password_file": d.PasswordFile, "token_file": d.TokenFile, "ca_file": d.CAFile,
	}
	var errs []error
	for _, key := range keys {
		if values[key] != "" {
			errs = append(errs, fmt.Errorf("%s.%s: kind %s has no %s", at, key, d.Kind, key))
		}
	}
	return errors.Join(errs...)
}

func (d DestinationSettings) sql() sql.Settings {
	return sql.Settings{Driver: d.Driver, DSNFile: d.DSNFile, Table: d.Table}
}

func (d DestinationSettings) mlflow() mlflow.Settings {
	return mlflow.Settings{Experiment: d.Experiment, Settings: post.Settings{
		URL: d.URL, Username: d.Username, PasswordFile: d.PasswordFile, TokenFile: d.TokenFile, CAFile: d.CAFile,
	}}
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
func Destinations(
	ctx context.Context, s Settings, buckets blob.BucketOpener, log *zap.Logger,
) (map[string]deliver.Destination, func() error, error) {
	all := make(map[string]deliver.Destination, len(s))
	var opened []io.Closer
	end := func() error {
		var errs []error
		for _, c := range opened {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	for name, d := range s {
		to, closer, err := d.open(ctx, name, buckets, log)
		if err != nil {
			return all, end, fmt.Errorf("open destination %s: %w", name, err)
		}
		if all[name] = to; closer != nil {
			opened = append(opened, closer)
		}
	}
	return all, end, nil
}

// open opens a destination. The closer is nil if there is nothing to close.
func (d DestinationSettings) open( //nolint:ireturn // of one of the kinds
	ctx context.Context, name string, buckets blob.BucketOpener, log *zap.Logger,
) (deliver.Destination, io.Closer, error) {
	switch d.Kind {
	case kindSQL:
		return sql.New(name, d.sql()), nil, nil
	case kindMLflow:
		to, err := mlflow.New(name, d.mlflow())
		if err != nil {
			return nil, nil, err
		}
		return to, to, nil
	}
	p, err := blob.OpenLocation(ctx, d.URL, buckets, log)
	if err != nil {
		return nil, nil, err
	}
	return objects.New(p, cmp.Or(d.Format, objects.CSV)), p, nil
}
