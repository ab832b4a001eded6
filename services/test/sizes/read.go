package main

import (
	"bytes"
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
		test := strings.HasSuffix(f.Path, "_test.go") || strings.HasPrefix(f.Path, "services/test/") || strings.HasSuffix(f.AST.Name.Name, "test")
		t.files = append(t.files, file{path.Dir(f.Path), f.Path, test, f.Text, f.AST})
	}
	return t, err
}

// lines returns how many lines a file has.
func (f file) lines() int { return bytes.Count(f.text, []byte("\n")) }
