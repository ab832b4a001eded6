package suite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sequentialList is the list in .ci/test of the packages whose tests run without the
// race detector.
var sequentialList = regexp.MustCompile(`(?m)^sequential=\(([^)]*)\)$`)

func TestPackagesThatRunWithoutTheRaceDetectorStartNoGoroutine(t *testing.T) {
	t.Parallel()
	root := filepath.Join(services, "..")
	text, err := os.ReadFile(filepath.Join(root, ".ci", "test"))
	if err != nil {
		t.Fatal(err)
	}
	list := sequentialList.FindSubmatch(text)
	if list == nil {
		t.Fatal(".ci/test names no packages that run without the race detector")
	}
	for pattern := range strings.FieldsSeq(string(list[1])) {
		files := goFiles(t, filepath.Join(root, pattern))
		if len(files) == 0 {
			t.Errorf("%s matches no file", pattern)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(path, "_test.go") && startsGoroutine(file) {
				t.Errorf("%s starts a goroutine: take its package out of `sequential` in .ci/test", path)
			}
		}
	}
}

// The linker takes one copy of each instance of generic code, and of each function that several packages compile, for all of them. Where
// that copy does not know the detector, as one of sync.Map, the detector reports races that are none.
func TestSQLiteWithoutTheRaceDetectorSharesNoCode(t *testing.T) {
	t.Parallel()
	const lib = "modernc.org/sqlite/lib"
	archive, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-f", "{{.Export}}", lib).Output()
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", strings.TrimSpace(string(archive))).Output() //nolint:gosec // of the compiler
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for line := range strings.Lines(string(symbols)) {
		f := strings.Fields(line)
		switch {
		case len(f) < 3 || f[1] != "T" || strings.HasPrefix(f[2], "type:.eq."): // comparisons make no order
		case strings.HasPrefix(f[2], lib+".") && !strings.Contains(f[2], "["):
			own++
		default:
			t.Errorf("%s compiles %s, which others may share: take its flag out of .ci/test", lib, f[2])
		}
	}
	if own < 1000 {
		t.Errorf("%d functions of its own: the symbols are not read as they are written", own)
	}
}

// goFiles returns the Go files that a pattern of packages matches.
func goFiles(t *testing.T, pattern string) (files []string) {
	t.Helper()
	folder, below := strings.CutSuffix(pattern, "/...")
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && !below && path != folder:
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// startsGoroutine reports whether a file has a go statement or calls a method Go, as that of a sync.WaitGroup.
func startsGoroutine(file *ast.File) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			method, is := n.Fun.(*ast.SelectorExpr)
			found = found || is && method.Sel.Name == "Go"
		}
		return !found
	})
	return found
}
