package input

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// An Entry is a name that was given, or a file of a folder that was.
type Entry struct {
	Name  string
	Found bool           // found in a folder, so it may be no descriptor
	Fault []*baiv1.Fault // why a folder brought nothing
}

// Expand puts in the place of each folder its *.toml files, and those of the
// folders in it, sorted; hidden ones and links to folders are left out. A file
// is named once.
func Expand(names []string) []Entry {
	var all []Entry
	seen := map[string]bool{}
	for _, name := range names {
		for _, e := range expand(name) {
			if key := filepath.Clean(e.Name); Remote(e.Name) || e.Name == "-" || !seen[key] {
				seen[key] = true
				all = append(all, e)
			}
		}
	}
	return all
}

func expand(name string) []Entry {
	info, err := os.Stat(name)
	if Remote(name) || name == "-" || err != nil || !info.IsDir() {
		return []Entry{{Name: name}}
	}
	files, err := listTOMLFiles(name)
	if err != nil {
		return []Entry{{Name: name, Fault: unreadable(name, err)}}
	}
	if len(files) == 0 {
		return []Entry{{Name: name, Fault: []*baiv1.Fault{{File: name, Message: "there is no *.toml file in it"}}}}
	}
	all := make([]Entry, len(files))
	for i, file := range files {
		all[i] = Entry{Name: file, Found: true}
	}
	return all
}

func listTOMLFiles(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		hidden := path != folder && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return fs.SkipDir
		case !hidden && !d.IsDir() && filepath.Ext(path) == ".toml" && !isLinkToFolder(path, d):
			files = append(files, path)
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

func isLinkToFolder(path string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || errors.Is(err, fs.ErrNotExist)
}

// IsForeign says whether a text is clearly something else than a descriptor, as
// pyproject.toml is: TOML that is in order and has keys, but none of those that
// only descriptors have.
func IsForeign(text []byte) bool {
	var keys map[string]any
	if len(text) > parser.MaxSize || toml.Unmarshal(text, &keys) != nil || len(keys) == 0 {
		return false
	}
	for _, own := range []string{"spec_version", "info", "hardware", "ml", "suite"} {
		if _, ok := keys[own]; ok {
			return false
		}
	}
	return true
}
