// Command names finds names in the tree that are not the field's: those that are
// a word of words.txt, and types that have the name of a term of docs/glossary.md
// and are something else. It fails if there are any that allowed.txt does not list.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

//go:embed words.txt
var words string

//go:embed allowed.txt
var allowed string

func main() {
	root := flag.String("root", "..", "`folder` of the tree")
	write := flag.Bool("write", false, "print the names that are found, as allowed.txt lists them, and do not fail")
	flag.Parse()
	if err := run(os.Stdout, *root, *write); err != nil {
		fmt.Fprintln(os.Stderr, "names:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, write bool) error {
	glossary, err := os.ReadFile(filepath.Join(root, "docs", "glossary.md"))
	if err != nil {
		return err
	}
	names, err := read(os.DirFS(root))
	if err != nil {
		return err
	}
	r := rules{words: listed(words), homes: homesIn(string(glossary))}
	found := r.check(names)
	if write {
		_, err := fmt.Fprintln(out, strings.Join(found, "\n"))
		return err
	}
	added, gone := compare(found, listed(allowed))
	var text bytes.Buffer
	for _, f := range added {
		fmt.Fprintf(&text, "\n  %s", f)
	}
	for _, f := range gone {
		fmt.Fprintf(&text, "\n  %s: no longer there; take it out of services/test/names/allowed.txt", f)
	}
	if text.Len() > 0 {
		return fmt.Errorf("use the field's words, docs/glossary.md has them:%s", &text)
	}
	return nil
}
