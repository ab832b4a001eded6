package descriptors

import (
	_ "embed"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// language is the text of the types, whose comments are the manual.
//
//go:embed language.go
var language string

// Comments returns the comments of the fields of the types, by Type.Field: the manual.
func Comments() map[string]string {
	docs := map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), "language.go", language, parser.ParseComments)
	if err != nil {
		return docs // it was compiled: there is none
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					docs[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return false
	})
	return docs
}
