package main

import (
	"go/ast"
	"io/fs"
	"path"
	"strings"

	"github.com/benchmark-ai/bai/services/test/gofiles"
)

// name is something that a source file names.
type name struct {
	dir  string // of the file, slash-separated, below the root
	kind string // package, file, type, function, method or field
	text string
}

// read returns the names in the Go files of the tree, generated ones left out.
func read(root fs.FS) (names []name, err error) {
	_, files, err := gofiles.Read(root)
	for _, f := range files {
		names = append(names, namesIn(f.Path, f.AST)...)
	}
	return names, err
}

// namesIn returns the names in a file. The file's own name is without the suffixes that
// go build interprets: _test, _linux.
func namesIn(file string, f *ast.File) []name {
	dir := path.Dir(file)
	base, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(path.Base(file), ".go"), "decide_"), "_")
	names := []name{{dir, "package", strings.TrimSuffix(f.Name.Name, "_test")}, {dir, "file", base}}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			kind := "function"
			if n.Recv != nil {
				kind = "method"
			}
			names = append(names, name{dir, kind, n.Name.Name})
		case *ast.TypeSpec:
			names = append(names, name{dir, "type", n.Name.Name})
		case *ast.StructType:
			names = append(names, members(dir, "field", n.Fields)...)
		case *ast.InterfaceType:
			names = append(names, members(dir, "method", n.Methods)...)
		}
		return true
	})
	return names
}

func members(dir, kind string, list *ast.FieldList) (names []name) {
	for _, member := range list.List {
		for _, id := range member.Names {
			names = append(names, name{dir, kind, id.Name})
		}
	}
	return names
}
