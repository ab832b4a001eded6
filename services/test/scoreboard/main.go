// Command scoreboard measures the detector of changes of level, beside another method and
// two simple rules, on series that it draws itself, and writes what it measured as a page
// of the documentation. The same detector gives the same page: the seed is in the code.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "../docs/detector.md", "`file` of the page")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "scoreboard:", err)
		os.Exit(1)
	}
}

// write measures everything and writes the page.
func write(path string) error {
	all, s := families(), sizes{still: 800, changed: 1000, grow: 300, steps: 100}
	scores, err := scoreAll(all, 1, s)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := report(&page, all, s, scores); err != nil {
		return err
	}
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
