package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// merged is the settings of several files together.
type merged struct {
	files    int
	setBy    map[string]string // the file by the key
	sections map[string]string // names at the top, by their lower case
	tables   map[string]any
}

// load reads one file into the settings, and returns its faults and conflicts with the
// files before it. Entries of a map may lack their keys of files before, until decode.
func (m *merged) load(file string, into any) (faults []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	meta, err := toml.Decode(string(text), into)
	if err != nil {
		return nil, err
	}
	var tables map[string]any
	if err := toml.Unmarshal(text, &tables); err != nil {
		return nil, err
	}
	if names := unknownKeys(meta, into); len(names) > 0 {
		faults = append(faults, "unknown settings: "+strings.Join(names, ", "))
	}
	faults = append(faults, m.conflicts(meta, file)...)
	merge(m.tables, tables)
	m.files++
	return faults, nil
}

// conflicts returns the keys of a file that another has set, and records those of the file.
func (m *merged) conflicts(meta toml.MetaData, file string) (faults []string) {
	for _, k := range meta.Keys() {
		if fault := m.misspelt(k[0]); fault != "" && !slices.Contains(faults, fault) {
			faults = append(faults, fault)
		}
		if meta.Type(k...) == "Hash" {
			continue
		}
		if other, twice := m.setBy[k.String()]; twice && other != file {
			faults = append(faults, fmt.Sprintf("%s: %s sets it too: leave it in one of them", k, filepath.Base(other)))
		}
		m.setBy[k.String()] = file
	}
	return faults
}

// decode reads all tables into the settings at once, for the entries of maps: each file
// replaces an entry whole, even where the file has a part of its keys.
func (m *merged) decode(into any) error {
	if m.files < 2 {
		return nil // nothing to merge with
	}
	text, err := toml.Marshal(m.tables)
	if err != nil {
		return err
	}
	return toml.Unmarshal(text, into)
}

// merge adds the tables of one file to those of others.
func merge(into, from map[string]any) {
	for key, v := range from {
		inner, isTable := v.(map[string]any)
		outer, wasTable := into[key].(map[string]any)
		if isTable && wasTable {
			merge(outer, inner)
			continue
		}
		into[key] = v
	}
}

// misspelt returns the fault of a name at the top that differs from another by case alone,
// or "": both are one section, so that the parts of an entry would replace one another.
func (m *merged) misspelt(name string) string {
	lower := strings.ToLower(name)
	first, ok := m.sections[lower]
	if !ok {
		m.sections[lower], first = name, name
	}
	if first == name {
		return ""
	}
	return fmt.Sprintf("%s: it is %s elsewhere: write both alike", name, first)
}
