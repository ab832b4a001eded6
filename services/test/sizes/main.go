// Command sizes measures the tree of a module set: lines, functions, interfaces,
// packages, the exported names that no other package uses, and the files on a
// descriptor's way, which docs/architecture.md lists. It reads the sources as text and
// syntax, without compiling them.
//
// Generated files and testdata are left out. Test code is *_test.go, all below
// services/test, and packages whose name ends with "test".
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"text/tabwriter"
)

func main() {
	root := flag.String("root", "..", "`folder` of the tree")
	flag.Parse()
	if err := measure(os.DirFS(*root), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
}

// measure prints the sizes of the tree below root.
func measure(root fs.FS, out io.Writer) error {
	t, err := read(root)
	if err != nil {
		return err
	}
	way, err := readWay(root)
	if err != nil {
		return err
	}
	c := count(t)
	c.Way = len(way)
	return report(out, c)
}

func report(out io.Writer, c counts) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range []struct {
		name string
		n    any
		bar  string
	}{
		{"production lines", c.Production, ""},
		{"test lines", c.Test, ""},
		{"function lines p50", c.Functions.P50, "<= 10"},
		{"function lines p90", c.Functions.P90, "<= 24"},
		{"function lines max, tables left out", c.Functions.Max, "<= 60"},
		{"interfaces of at most 3 methods, %", c.SmallInterfaces, ">= 88"},
		{"lines over 140 columns", c.LongLines, ""},
		{"exported and unused elsewhere", len(c.Unused), "0 in services"},
		{"packages over 2,000 lines", len(c.Large), "none over 2,400"},
		{"files on a descriptor's way", c.Way, fmt.Sprintf("<= %d", maxWay)},
	} {
		fmt.Fprintf(w, "%s\t%v\t%s\n", line.name, line.n, line.bar)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"The longest functions", c.Longest},
		{"Packages over 2,000 lines", c.Large},
		{"Types with the most methods", c.Methods},
		{"Exported names that no other package uses", c.Unused},
	} {
		if _, err := fmt.Fprintf(out, "\n%s\n", part.title); err != nil {
			return err
		}
		for line := range slices.Values(part.lines) {
			if _, err := fmt.Fprintf(out, "  %s\n", line); err != nil {
				return err
			}
		}
	}
	return nil
}
