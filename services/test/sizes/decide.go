package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// counts are the sizes of a tree. Lists are sorted, largest first.
type counts struct {
	Production, Test int // lines, comments and blank ones counted
	Functions        quantiles
	SmallInterfaces  float64 // per cent of interfaces that have at most 3 methods
	LongLines        int     // of production code, over 140 columns
	Longest          []string
	Large            []string // packages of more than 2,000 lines
	Methods          []string
	Unused           []string // exported, and named by no other production package
	Way              int      // files on a descriptor's way
}

// quantiles are of the lines of functions of production code.
type quantiles struct{ P50, P90, Max int }

// sized is a thing and its size.
type sized struct {
	name string
	size int
}

func count(t tree) counts {
	var c counts
	var functions []sized
	packages, methods := map[string]int{}, map[string]int{}
	small, interfaces := 0, 0
	for _, f := range t.files {
		if f.test {
			c.Test += f.lines()
			continue
		}
		c.Production += f.lines()
		packages[f.dir] += f.lines()
		c.LongLines += longLines(string(f.text))
		functions = append(functions, functionsOf(t.fset, f)...)
		for name, n := range methodsOf(f) {
			methods[name] += n
		}
		few, all := interfacesOf(f)
		small, interfaces = small+few, interfaces+all
	}
	bySize(functions)
	c.Functions = quantilesOf(functions)
	c.Longest = top(functions, 10)
	if interfaces > 0 {
		c.SmallInterfaces = float64(1000*small/interfaces) / 10
	}
	c.Large = over(packages, 2000)
	c.Methods = over(methods, 30)
	c.Unused = unused(t)
	return c
}

// maxWay is how many files a descriptor's way may have.
const maxWay = 60

// Comments that enclose the list of files on a descriptor's way.
const (
	wayBegins = "<!-- way begins -->"
	wayEnds   = "<!-- way ends -->"
)

// filesOnWay returns the files in backquotes between the two comments of a page.
func filesOnWay(page string) ([]string, error) {
	_, rest, begins := strings.Cut(page, wayBegins)
	list, _, ends := strings.Cut(rest, wayEnds)
	if !begins || !ends {
		return nil, fmt.Errorf("%s and %s do not enclose a list", wayBegins, wayEnds)
	}
	var files []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list, -1) {
		if slices.Contains(files, match[1]) {
			return nil, fmt.Errorf("the list has %s twice", match[1])
		}
		files = append(files, match[1])
	}
	return files, nil
}

func longLines(text string) (n int) {
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ")) > 140 {
			n++
		}
	}
	return n
}

// functionsOf returns the functions of a file with their lines, from the first of
// the signature to the last of the body. The lines of a table (the largest literal
// in it) do not count.
func functionsOf(fset *token.FileSet, f file) []sized {
	var all []sized
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		table := 0
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if literal, ok := n.(*ast.CompositeLit); ok {
				table = max(table, lines(fset, literal, literal)-1)
			}
			return true
		})
		all = append(all, sized{f.name + " " + fn.Name.Name, lines(fset, fn.Type, fn.Body) - table})
	}
	return all
}

// lines counts from the beginning of one node to the end of another.
func lines(fset *token.FileSet, from, to ast.Node) int {
	return fset.Position(to.End()).Line - fset.Position(from.Pos()).Line + 1
}

// methodsOf counts the methods that a file declares, by type.
func methodsOf(f file) map[string]int {
	all := map[string]int{}
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil {
			continue
		}
		receiver := fn.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if index, ok := receiver.(*ast.IndexExpr); ok {
			receiver = index.X
		}
		if name, ok := receiver.(*ast.Ident); ok {
			all[f.dir+" "+name.Name]++
		}
	}
	return all
}

// interfacesOf counts the named interfaces of a file that have methods or embed
// others, and of them those with at most three.
func interfacesOf(f file) (small, all int) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if i, ok := spec.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > 0 {
			if all++; i.Methods.NumFields() <= 3 {
				small++
			}
		}
		return true
	})
	return small, all
}

func quantilesOf(sorted []sized) quantiles {
	if len(sorted) == 0 {
		return quantiles{}
	}
	at := func(share float64) int { return sorted[int(float64(len(sorted)-1)*(1-share))].size }
	return quantiles{at(0.5), at(0.9), at(1)}
}

func bySize(all []sized) {
	slices.SortFunc(all, func(a, b sized) int { return cmp.Or(b.size-a.size, strings.Compare(a.name, b.name)) })
}

func top(sorted []sized, n int) (lines []string) {
	for _, s := range sorted[:min(n, len(sorted))] {
		lines = append(lines, fmt.Sprintf("%5d  %s", s.size, s.name))
	}
	return lines
}

func over(sizes map[string]int, bar int) []string {
	var all []sized
	for name, size := range sizes {
		if size > bar {
			all = append(all, sized{name, size})
		}
	}
	bySize(all)
	return top(all, len(all))
}
