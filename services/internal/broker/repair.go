package broker

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Names in the folder of the broker's data.
const (
	metaFile   = "meta.json"
	topicsFile = "topics.json"
	partitions = "partitions"
	snapshot   = "snapshot.json"
)

// repairer repairs the files of a broker that does not run, so that it can start. After a kill of the process there is nothing to repair.
// After a crash of the machine the end of each file, or all of it, may be missing or zeros.
type repairer struct {
	dir     string
	deep    bool                                 // reads every segment
	configs func(topic string) map[string]string // of a topic with only its folders left

	repairs []string // repairs and losses
}

// repair repairs the data below dir. It can be repeated.
func (m *repairer) repair() error {
	folders, err := m.folders()
	if err != nil {
		return err
	}
	if err := errors.Join(m.json(m.dir), m.journals()); err != nil {
		return err
	}
	if len(folders) > 0 {
		if err := errors.Join(m.meta(), m.topics(folders)); err != nil {
			return err
		}
	}
	for _, f := range folders {
		dir := filepath.Join(m.dir, partitions, f)
		if err := m.json(dir); err != nil {
			return err
		}
		if m.deep {
			if err := m.segments(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *repairer) report(format string, args ...any) {
	m.repairs = append(m.repairs, fmt.Sprintf(format, args...))
}

// folders returns the names of the partitions' folders.
func (m *repairer) folders() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(m.dir, partitions))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look at the broker's data: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// json removes the files of a folder that should be valid JSON and are not: the broker works without them, or they are created again.
func (m *repairer) json(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the broker's data: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if filepath.Ext(path) != ".json" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("look at the broker's data: %w", err)
		}
		if json.Valid(text) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("mend the broker's data: %w", err)
		}
		m.report("%s was not whole and is made anew", m.rel(path))
	}
	return nil
}

func (m *repairer) rel(path string) string { return strings.TrimPrefix(path, m.dir+"/") }

// journals cuts the journals behind their last whole entry: the broker never reads entries behind a partial one.
func (m *repairer) journals() error {
	for _, name := range []string{"groups.log", "pids.log"} {
		path := filepath.Join(m.dir, name)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at the broker's data: %w", err)
		}
		if n := wholeEntries(text); n < len(text) {
			if err := os.Truncate(path, int64(n)); err != nil {
				return fmt.Errorf("mend the broker's data: %w", err)
			}
			m.report("%s: the last %d of %d bytes were not whole and are gone", name, len(text)-n, len(text))
		}
	}
	return nil
}

// meta creates the file without which the broker treats its folder as empty.
func (m *repairer) meta() error {
	path := filepath.Join(m.dir, metaFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m.report("%s was missing", metaFile)
	return replace(path, fmt.Appendf(nil, `{"version":1,"cluster_id":%q}`, rand.Text()))
}

// topics adds each topic with records to the file of topics.
func (m *repairer) topics(folders []string) error {
	path := filepath.Join(m.dir, topicsFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the broker's data: %w", err)
	}
	var f topicFile
	_ = json.Unmarshal(text, &f) // the folders supply missing entries
	f, changed := withFolders(f, folders, func(name string) topicEntry {
		t := topicEntry{Name: name, ID: make([]byte, 16), Replicas: 1, Configs: m.configs(name)}
		_, _ = rand.Read(t.ID) // it never fails
		return t
	})
	if !changed {
		return nil
	}
	if text, err = json.Marshal(f); err != nil {
		return err
	}
	m.report("%s did not name every topic", topicsFile)
	return replace(path, text)
}

// segments cuts a partition's segments to their whole batches.
func (m *repairer) segments(dir string) error {
	bases, err := segmentsIn(dir)
	if err != nil {
		return err
	}
	next, before := int64(-1), len(m.repairs)
	for _, base := range bases {
		if next, err = m.segment(dir, base, next); err != nil {
			return err
		}
	}
	if len(m.repairs) == before {
		return nil
	}
	if err := os.Remove(filepath.Join(dir, snapshot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mend the broker's data: %w", err)
	}
	return nil
}

// segment repairs the segment that begins at offset base, and returns the offset behind it. Next is the offset behind the segment before,
// -1 if there is none.
func (m *repairer) segment(dir string, base, next int64) (int64, error) {
	path, number := filepath.Join(dir, strconv.FormatInt(base, 10)+".dat"), strconv.FormatInt(base, 10)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("look at the broker's data: %w", err)
	}
	all := slices.DeleteFunc(batches(text), func(b batch) bool { return b.first < next })
	from := base
	if next >= 0 {
		from = next
	}
	for _, gap := range gaps(all, from) {
		m.report("%s: the records %s are lost", m.rel(dir), gap)
	}
	index := filepath.Join(dir, number+".idx")
	if len(all) == 0 {
		m.report("%s: segment %d holds nothing", m.rel(dir), base)
		return max(next, base), remove(path, index)
	}
	end := all[len(all)-1].next
	if repaired := joinBatches(text, all); len(repaired) < len(text) {
		m.report("%s: segment %d: %d of %d bytes were not whole and are gone; it ends at record %d", m.rel(dir), base,
			len(text)-len(repaired), len(text), end-1)
		if err := replace(path, repaired); err != nil {
			return 0, err
		}
	}
	return end, m.index(index, all)
}

// index writes the index again if it does not match its segment.
func (m *repairer) index(path string, all []batch) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the broker's data: %w", err)
	}
	if indexMatches(text, all) {
		return nil
	}
	m.report("%s did not fit its segment and is made anew", m.rel(path))
	return replace(path, index(all))
}

// segmentsIn returns the offsets at which the segments of a partition begin, in
// order.
func segmentsIn(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look at the broker's data: %w", err)
	}
	var bases []int64
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".dat"); ok {
			if base, err := strconv.ParseInt(name, 10, 64); err == nil {
				bases = append(bases, base)
			}
		}
	}
	slices.Sort(bases)
	return bases, nil
}

// remove removes files that may be missing.
func remove(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("mend the broker's data: %w", err)
		}
	}
	return nil
}

// replace writes a file, whole or not at all, even if the machine crashes.
func replace(path string, text []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // the broker's own
	if err != nil {
		return fmt.Errorf("write the broker's data: %w", err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the broker's data: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write the broker's data: %w", err)
	}
	return nil
}
