// Package settings_test holds docs/settings.md to the settings that programs read.
package settings_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/config"
)

const (
	root    = "../../.."
	module  = "github.com/benchmark-ai/bai/"
	page    = root + "/docs/settings.md"
	heading = `# Settings

Every table and key that a settings file may have, what it means, and which programs read it. The comments of the source are where this page comes
from, and a test holds it to them. A duration is written as "90s", "10m" or "1h30m"; sizes are in bytes unless a key says otherwise. A key that no
program knows is refused at its start, with its place. [operations.md](operations.md) shows the tables at work.
`
)

// declared is a type, and the file that declares it.
type declared struct {
	dir  string // below root
	file *ast.File
	spec *ast.TypeSpec
}

// packages are the types of folders that were parsed.
type packages map[string]map[string]declared

func (p packages) find(t *testing.T, dir, name string) (declared, bool) {
	t.Helper()
	if p[dir] == nil {
		p[dir] = map[string]declared{}
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			p.add(t, dir, path)
		}
	}
	d, ok := p[dir][name]
	if ok && d.spec.Assign.IsValid() { // an alias
		return p.resolve(t, d, d.spec.Type)
	}
	return d, ok
}

// add adds the types of a file.
func (p packages) add(t *testing.T, dir, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range typesOf(file) {
		p[dir][spec.Name.Name] = declared{dir, file, spec}
	}
}

func typesOf(file *ast.File) []*ast.TypeSpec {
	var all []*ast.TypeSpec
	for _, decl := range file.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
			for _, spec := range gen.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok {
					all = append(all, ts)
				}
			}
		}
	}
	return all
}

// resolve returns the declaration of a type that a file names, if it is one of ours.
func (p packages) resolve(t *testing.T, in declared, e ast.Expr) (declared, bool) {
	t.Helper()
	switch e := e.(type) {
	case *ast.Ident:
		return p.find(t, in.dir, e.Name)
	case *ast.StarExpr:
		return p.resolve(t, in, e.X)
	case *ast.SelectorExpr:
		alias, _ := e.X.(*ast.Ident)
		for _, imp := range in.file.Imports {
			where, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			name := path.Base(where)
			if imp.Name != nil {
				name = imp.Name.Name
			}
			if dir, ours := strings.CutPrefix(where, module); ours && name == alias.Name {
				return p.find(t, dir, e.Sel.Name)
			}
		}
	}
	return declared{}, false
}

// key is one setting.
type key struct{ name, kind, means string }

// table is one table of a settings file; the one without a name is the top.
type table struct {
	name  string
	means string
	keys  []key
	by    []string // programs
}

// reader reads the settings of one program.
type reader struct {
	packages packages
	program  string
	tables   map[string]*table
}

// read reads a struct whose keys stand in a table.
func (r *reader) read(t *testing.T, at string, d declared, means string) {
	t.Helper()
	fields, ok := d.spec.Type.(*ast.StructType)
	if !ok {
		t.Fatalf("%s is no struct", d.spec.Name)
	}
	tab := r.tables[at]
	if tab == nil {
		tab = &table{name: at, means: means}
		r.tables[at] = tab
	}
	if !slices.Contains(tab.by, r.program) {
		tab.by = append(tab.by, r.program)
	}
	for _, f := range fields.Fields.List {
		r.field(t, tab, d, f)
	}
}

func (r *reader) field(t *testing.T, tab *table, d declared, f *ast.Field) {
	t.Helper()
	if len(f.Names) == 0 && tagOf(f) == "" { // embedded: its keys are the table's
		if inner, ok := r.packages.resolve(t, d, f.Type); ok {
			r.read(t, tab.name, inner, "")
		}
		return
	}
	for _, name := range f.Names {
		word := wordOf(f, name)
		if word == "-" {
			continue
		}
		if inner, ok := r.inner(t, d, f.Type); ok {
			r.read(t, r.nameOf(t, d, f, strings.TrimPrefix(tab.name+"."+word, ".")), inner, comment(f))
			continue
		}
		k := key{word, r.kind(t, d, f.Type), comment(f)}
		if i := slices.IndexFunc(tab.keys, func(o key) bool { return o.name == k.name }); i < 0 {
			tab.keys = append(tab.keys, k)
		}
	}
}

// inner returns the struct of ours that a field is, or is a list of, or a table of
// under names that the user chooses.
func (r *reader) inner(t *testing.T, d declared, e ast.Expr) (inner declared, ok bool) {
	t.Helper()
	switch e := e.(type) {
	case *ast.ArrayType:
		return r.inner(t, d, e.Elt)
	case *ast.MapType:
		return r.inner(t, d, e.Value)
	}
	inner, ok = r.packages.resolve(t, d, e)
	if ok {
		if all, named := inner.spec.Type.(*ast.MapType); named {
			return r.inner(t, inner, all.Value)
		}
		_, ok = inner.spec.Type.(*ast.StructType)
	}
	return inner, ok
}

// nameOf is the name of the table that a field is, as a file of settings has it.
func (r *reader) nameOf(t *testing.T, d declared, f *ast.Field, whole string) string {
	t.Helper()
	of := f.Type
	if named, ok := r.packages.resolve(t, d, of); ok {
		of = named.spec.Type
	}
	switch of.(type) {
	case *ast.MapType:
		return whole + ".NAME"
	case *ast.ArrayType:
		return "[" + whole + "]"
	}
	return whole
}

// kind is the TOML type of a value.
func (r *reader) kind(t *testing.T, d declared, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.ArrayType:
		return "list of " + r.kind(t, d, e.Elt)
	case *ast.MapType:
		return "table of " + r.kind(t, d, e.Value)
	case *ast.StarExpr:
		return r.kind(t, d, e.X)
	case *ast.Ident:
		switch name := e.Name; {
		case strings.HasPrefix(name, "int") || strings.HasPrefix(name, "uint"):
			return "integer"
		case strings.HasPrefix(name, "float"):
			return "number"
		case name == "string" || name == "bool":
			return map[string]string{"string": "text", "bool": "true or false"}[name]
		}
		if inner, ok := r.packages.find(t, d.dir, e.Name); ok {
			return r.kind(t, inner, inner.spec.Type)
		}
	case *ast.SelectorExpr:
		if e.Sel.Name == "Duration" {
			return "duration"
		}
		if inner, ok := r.packages.resolve(t, d, e); ok {
			return r.kind(t, inner, inner.spec.Type)
		}
		return "as Kubernetes' " + e.Sel.Name
	case *ast.StructType:
		return "table"
	}
	t.Fatalf("%s: a setting of a kind that this test does not know: %T", d.spec.Name, e)
	return ""
}

// wordOf is the key by which a field is set; "-" for one that no file sets.
func wordOf(f *ast.Field, name *ast.Ident) string {
	if !name.IsExported() {
		return "-"
	}
	return cmp.Or(tagOf(f), strings.ToLower(name.Name))
}

func tagOf(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	word, _, _ := strings.Cut(reflect.StructTag(text).Get("toml"), ",")
	return word
}

func comment(f *ast.Field) string {
	text := f.Comment.Text()
	if text == "" {
		text = f.Doc.Text()
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(f.Names) > 0 { // a sentence that begins with the name of the field
		text = strings.TrimPrefix(strings.Replace(text, f.Names[0].Name+" says that ", "whether ", 1), f.Names[0].Name+" is ")
	}
	return strings.ReplaceAll(strings.TrimSuffix(text, "."), "|", `\|`)
}

// programs returns the folders of the programs that read settings, by name.
func programs(t *testing.T, p packages) map[string]declared {
	t.Helper()
	all := map[string]declared{}
	mains, err := filepath.Glob(root + "/services/cmd/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range mains {
		name := filepath.Base(filepath.Dir(file))
		if d, ok := p.find(t, "services/cmd/"+name, "settings"); ok {
			all[name] = d
		}
	}
	return all
}

// write writes the page.
func write(tables map[string]*table, readers int) string {
	var b bytes.Buffer
	b.WriteString(heading)
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		tab := tables[name]
		if len(tab.keys) == 0 {
			continue
		}
		title := "At the top"
		if name != "" {
			title = "`[" + name + "]`"
		}
		by := "all programs"
		if len(tab.by) < readers {
			by = "`" + strings.Join(tab.by, "`, `") + "`"
		}
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		if tab.means != "" {
			fmt.Fprintf(&b, "%s. ", strings.ToUpper(tab.means[:1])+strings.TrimSuffix(tab.means[1:], "."))
		}
		fmt.Fprintf(&b, "Read by %s.\n\n| key | value | meaning |\n|---|---|---|\n", by)
		for _, k := range tab.keys {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, k.kind, k.means)
		}
	}
	return b.String()
}

func TestThePageOfSettingsIsWhatProgramsRead(t *testing.T) {
	t.Parallel()
	p, tables := packages{}, map[string]*table{}
	readers := programs(t, p)
	for _, name := range slices.Sorted(maps.Keys(readers)) {
		r := &reader{packages: p, program: name, tables: tables}
		r.read(t, "", readers[name], "")
	}
	for name, tab := range tables {
		for _, k := range tab.keys {
			if k.means == "" {
				t.Errorf("[%s] %s: its field has no comment", name, k.name)
			}
		}
	}
	wantShared(t, tables)
	want := write(tables, len(readers))
	if os.Getenv("GOLDEN") == "write" {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // as the rest of the pages
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/settings.md is not what programs read: GOLDEN=write go test ./test/settings (-want +got):\n%s", diff)
	}
}

// wantShared compares each top-level setting and each table with the list of known ones
// in other programs: all programs read one folder.
func wantShared(t *testing.T, tables map[string]*table) {
	t.Helper()
	for name, tab := range tables {
		tops := []string{name}
		if name == "" {
			tops = nil
			for _, k := range tab.keys {
				tops = append(tops, k.name)
			}
		}
		for _, top := range tops {
			if top, _, _ = strings.Cut(strings.TrimPrefix(top, "["), "."); !slices.Contains(config.Sections(), top) {
				t.Errorf("%s: programs without it refuse a folder that has it: it is missing in config.Sections", top)
			}
		}
	}
}
