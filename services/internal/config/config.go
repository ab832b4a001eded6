// Package config reads a service's settings.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Validator is a settings type that can say what is wrong with it.
type Validator interface {
	// Validate returns one error that names every setting at fault.
	Validate() error
}

// Load reads the TOML file at path over the defaults already in into, and
// validates the result. A key that into lacks is an error: a misspelt setting
// must not pass in silence. Only a whole table of Sections that into lacks is
// skipped, so that one file can serve all services. All faults of a file that is
// TOML are told at once. Without a path the defaults are validated.
func Load(path string, into Validator) error {
	if path == "" {
		if err := into.Validate(); err != nil {
			return fmt.Errorf("settings: %w", err)
		}
		return nil
	}
	meta, err := toml.DecodeFile(path, into)
	if err != nil {
		return fmt.Errorf("read settings of %s: %w", path, err)
	}
	var errs []error
	if names := unknown(meta); len(names) > 0 {
		errs = append(errs, fmt.Errorf("unknown settings: %s", strings.Join(names, ", ")))
	}
	if err := errors.Join(append(errs, into.Validate())...); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Text returns the file from which Load reads v.
func Text(v any) ([]byte, error) {
	var text bytes.Buffer
	err := toml.NewEncoder(&text).Encode(v)
	return text.Bytes(), err
}

// Sections returns the tables of settings that the services of one platform
// have among them.
func Sections() []string {
	return []string{"log", "health", "kafka", "store", "elasticsearch", "objects", "buckets", "cluster", "kubernetes", "gateway", "fetcher", "executor", "watcher", "metrics-pusher", "telemetry"}
}

// unknown returns the keys that were read into nothing, sorted, but for the
// tables of other services.
func unknown(meta toml.MetaData) []string {
	var skipped, names []string
	for _, k := range meta.Undecoded() {
		switch {
		case len(k) == 1 && slices.Contains(Sections(), k[0]):
			skipped = append(skipped, k[0])
		case !slices.Contains(skipped, k[0]):
			names = append(names, k.String())
		}
	}
	slices.Sort(names)
	return names
}
