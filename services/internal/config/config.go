// Package config reads a service's settings.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Validator is a settings type that reports its faults.
type Validator interface {
	// Validate returns one error that names every setting at fault.
	Validate() error
}

// Load reads the TOML file at path, or all files *.toml of the folder there, over the
// defaults already in into, and validates the result. The files of a folder are read as
// one: a table may have some of its keys in one file and some in another. A key that two
// files of a folder set is an error, as they have no order. So is a key that into lacks: a
// misspelt setting must not be ignored. Only a whole table of Sections that into lacks is
// skipped, so that one file can serve all services. The error lists all faults of files
// that are TOML. Without a path, Load validates the defaults.
func Load(path string, into Validator) error {
	if path == "" {
		if err := into.Validate(); err != nil {
			return fmt.Errorf("settings: %w", err)
		}
		return nil
	}
	files, err := filesAt(path)
	if err != nil {
		return fmt.Errorf("read settings of %s: %w", path, err)
	}
	var errs []error
	all := merged{setBy: make(map[string]string), sections: make(map[string]string), tables: make(map[string]any)}
	for _, file := range files {
		faults, err := all.load(file, into)
		if err != nil {
			return fmt.Errorf("read settings of %s: %w", file, err)
		}
		for _, fault := range faults {
			if file != path {
				fault = filepath.Base(file) + ": " + fault
			}
			errs = append(errs, errors.New(fault))
		}
	}
	if err := all.decode(into); err != nil {
		return fmt.Errorf("read settings of %s: %w", path, err)
	}
	if err := errors.Join(append(errs, into.Validate())...); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// filesAt returns path where it is a file, else the settings in the folder.
func filesAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".toml" {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the folder has no file *.toml")
	}
	return files, nil
}

// Text returns the file from which Load reads v.
func Text(v any) ([]byte, error) {
	var text bytes.Buffer
	err := toml.NewEncoder(&text).Encode(v)
	return text.Bytes(), err
}

// Sections returns the settings at the top that the services of one platform have
// among them.
func Sections() []string {
	return []string{
		"log", "health", "listen", "kafka", "store", "elasticsearch", "objects", "buckets", "cluster", "kubernetes", "engines", "registry",
		"telemetry", "jobs",
		"gateway", "fetcher", "executor", "watcher", "follow", "metrics-pusher", "summaries", "prices", "sinks",
		"destinations", "analyst", "receivers",
	}
}

// unknownKeys returns the keys that were read into nothing, sorted, but for the
// sections that into lacks as a whole.
func unknownKeys(meta toml.MetaData, into any) []string {
	var names []string
	for _, k := range meta.Undecoded() {
		if !slices.Contains(Sections(), k[0]) || hasSection(reflect.TypeOf(into), k[0]) {
			names = append(names, k.String())
		}
	}
	slices.Sort(names)
	return names
}

// hasSection reports whether a type of settings has a setting at its top.
func hasSection(t reflect.Type, name string) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && f.IsExported() && strings.EqualFold(cmp.Or(f.Tag.Get("toml"), f.Name), name) {
			return true
		}
	}
	return false
}
