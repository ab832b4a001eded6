package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/test/gofiles"
)

// modulePath is the prefix of this tree's import paths.
const modulePath = "github.com/benchmark-ai/bai/"

// file is one source file.
type file struct {
	dir  string // slash-separated, below the root
	name string
	test bool
	text []byte
	ast  *ast.File
}

// tree is all source files of the modules.
type tree struct {
	fset  *token.FileSet
	files []file
}

// modules are the folders whose files count.
func modules() []string { return []string{"client-lib", "descriptors", "proto", "services"} }

// read reads the modules below root.
func read(root fs.FS) (tree, error) {
	fset, files, err := gofiles.Read(root)
	t := tree{fset: fset}
	for _, f := range files {
		if module, _, _ := strings.Cut(f.Path, "/"); !slices.Contains(modules(), module) {
			continue
		}
		test := strings.HasSuffix(f.Path, "_test.go") || strings.HasPrefix(f.Path, "services/test/") ||
			strings.HasSuffix(f.AST.Name.Name, "test")
		t.files = append(t.files, file{path.Dir(f.Path), f.Path, test, f.Text, f.AST})
	}
	return t, err
}

// wayPage is the page that lists the files on a descriptor's way.
const wayPage = "docs/architecture.md"

// readWay returns the files on a descriptor's way, as the page lists them. A listed file
// that does not exist is an error.
func readWay(root fs.FS) ([]string, error) {
	page, err := fs.ReadFile(root, wayPage)
	if err != nil {
		return nil, err
	}
	files, err := filesOnWay(string(page))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wayPage, err)
	}
	var errs []error
	for _, name := range files {
		if info, err := fs.Stat(root, name); err != nil || !info.Mode().IsRegular() {
			errs = append(errs, fmt.Errorf("%s lists %s, and there is no such file", wayPage, name))
		}
	}
	return files, errors.Join(errs...)
}

// lines returns how many lines a file has.
func (f file) lines() int { return bytes.Count(f.text, []byte("\n")) }
