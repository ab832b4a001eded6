// Package gofiles reads the Go files of a tree as text and syntax.
package gofiles

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strings"
)

// File is one Go file.
type File struct {
	Path string // slash-separated, below the root
	Text []byte
	AST  *ast.File
}

// Read reads the Go files below a folder, in lexical order. It leaves out generated
// files, testdata, bin, node_modules, and folders whose name begins with a dot.
func Read(root fs.FS) (*token.FileSet, []File, error) {
	fset, files := token.NewFileSet(), []File(nil)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"testdata", "bin", "node_modules"}, d.Name()) ||
			len(d.Name()) > 1 && d.Name()[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil && !ast.IsGenerated(parsed) {
			files = append(files, File{name, text, parsed})
		}
		return err
	})
	return fset, files, err
}
