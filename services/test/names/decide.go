package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rules say which names are not the field's.
type rules struct {
	words []string            // that name nothing, lower case
	homes map[string][]string // folders that have a type of a term's name, by term in lower case
}

// check returns the names that break a rule, each once, sorted.
func (r rules) check(names []name) (found []string) {
	for _, n := range names {
		lower := strings.ToLower(n.text)
		homes, term := r.homes[lower]
		switch {
		case slices.Contains(r.words, lower):
			found = append(found, fmt.Sprintf("%s: %s %s", n.dir, n.kind, n.text))
		case n.kind == "type" && term && !slices.Contains(homes, n.dir):
			found = append(found, fmt.Sprintf("%s: type %s is not the glossary's", n.dir, n.text))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// compare returns the names that are found and not allowed, and those that are allowed
// and not found.
func compare(found, allowed []string) (added, gone []string) {
	for _, f := range found {
		if !slices.Contains(allowed, f) {
			added = append(added, f)
		}
	}
	for _, a := range allowed {
		if !slices.Contains(found, a) {
			gone = append(gone, a)
		}
	}
	return added, gone
}

// listed returns the lines of a text, without comments and empty ones.
func listed(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

var row = regexp.MustCompile(`(?m)^\| \*\*([A-Za-z -]+)\*\* \|.*\| (.*) \|$`)

// homesIn reads the glossary's tables: term, meaning, and the folders, in
// backquotes, that have a type of the term's name.
func homesIn(glossary string) map[string][]string {
	homes := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(glossary, -1) {
		var dirs []string
		for i, part := range strings.Split(m[2], "`") {
			if i%2 == 1 {
				dirs = append(dirs, part)
			}
		}
		if len(dirs) > 0 {
			homes[strings.ToLower(strings.ReplaceAll(m[1], " ", ""))] = dirs
		}
	}
	return homes
}
