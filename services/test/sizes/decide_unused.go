package main

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// unused returns the exported types and functions of production packages of services
// that no other folder uses, in its tests either: none names them, and they are in
// no signature and no exported field of another name that is used.
func unused(t tree) []string {
	declared, surface, queue := map[string]bool{}, map[string][]string{}, []string(nil)
	for _, f := range t.files {
		if !f.test && strings.HasPrefix(f.dir, "services/") && f.ast.Name.Name != "main" {
			addDeclared(f, declared, surface)
		}
		queue = append(queue, namedBy(f)...)
	}
	used := map[string]bool{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if !used[name] {
			used[name] = true
			queue = append(queue, surface[name]...)
		}
	}
	maps.DeleteFunc(declared, func(name string, _ bool) bool { return used[name] })
	return slices.Sorted(maps.Keys(declared))
}

// addDeclared adds the exported types and functions of a file to declared, and for
// each name the names of its package that its signature, its exported fields or its
// exported methods have to surface.
func addDeclared(f file, declared map[string]bool, surface map[string][]string) {
	add := func(name string, of ast.Node) {
		surface[f.dir+"."+name] = append(surface[f.dir+"."+name], namesIn(f.dir, of)...)
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() {
				continue
			}
			name := receiverOf(d)
			if name == "" {
				name = d.Name.Name
				declared[f.dir+"."+name] = true
			}
			add(name, d.Type)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				addSpec(s, func(name string) { declared[f.dir+"."+name] = true }, add)
			}
		}
	}
}

// addSpec adds the types, variables and constants of a declaration.
func addSpec(s ast.Spec, declare func(name string), add func(name string, of ast.Node)) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			declare(s.Name.Name)
		}
		add(s.Name.Name, s.Type)
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if s.Type != nil {
				add(name.Name, s.Type)
			}
		}
	}
}

// receiverOf returns the name of the type that a method has, or "".
func receiverOf(d *ast.FuncDecl) (name string) {
	if d.Recv == nil {
		return ""
	}
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// namesIn returns the names of the package in a folder that a type or a signature
// has, without those of unexported fields.
func namesIn(dir string, of ast.Node) (names []string) {
	ast.Inspect(of, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
					names = append(names, namesIn(dir, field.Type)...)
				}
			}
			return false
		case *ast.SelectorExpr:
			return false // of another package
		case *ast.Field:
			names = append(names, namesIn(dir, n.Type)...)
			return false // the names of parameters name no type
		case *ast.Ident:
			names = append(names, dir+"."+n.Name)
		}
		return true
	})
	return names
}

// namedBy returns the names of other folders of this tree that a file uses, each as
// folder and name.
func namedBy(f file) (names []string) {
	imports := map[string]string{}
	for _, spec := range f.ast.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		dir, ours := strings.CutPrefix(imported, modulePath)
		if !ours {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = dir
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && imports[of.Name] != "" && imports[of.Name] != f.dir {
			names = append(names, imports[of.Name]+"."+selector.Sel.Name)
		}
		return true
	})
	return names
}
