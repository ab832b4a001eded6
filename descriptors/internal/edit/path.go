package edit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// A Step is one part of a Path: a key, or the number of an element of a list.
type Step struct {
	Name    string
	Bracket bool // written as [0]: no key
}

// number is the number of an element.
func (s Step) number() (int, bool) {
	n, err := strconv.ParseUint(s.Name, 10, 16)
	return int(n), err == nil
}

// ReadPath reads a dotted path: env.vars.A, env.vars."A.B", output.metrics.0.units or
// output.metrics[0].units. Its error has the column of the fault.
func ReadPath(s string) ([]Step, error) {
	r := pathReader{in: s}
	for {
		if err := r.name(); err != nil {
			return nil, err
		}
		for strings.HasPrefix(r.rest(), "[") {
			if err := r.bracket(); err != nil {
				return nil, err
			}
		}
		if r.rest() == "" {
			return r.steps, nil
		}
		if r.rest()[0] != '.' {
			return nil, r.pathError("write . between two keys")
		}
		r.at++
	}
}

// A PathError is the fault of a path, and its column.
type PathError struct {
	Offset int
	Remedy string
}

// Error is a constant text; the fields have the details.
func (e *PathError) Error() string { return "not a path" }

type pathReader struct {
	in    string
	at    int
	steps []Step
}

func (r *pathReader) rest() string { return r.in[r.at:] }

func (r *pathReader) pathError(remedy string) error { return &PathError{r.at, remedy} }

func (r *pathReader) name() error {
	rest := r.rest()
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		return r.quoted()
	}
	end := strings.IndexAny(rest, `.["'=]`)
	if end < 0 {
		end = len(rest)
	}
	if end == 0 {
		return r.pathError("write a key here, as in info.labels.team")
	}
	r.steps = append(r.steps, Step{Name: rest[:end]})
	r.at += end
	return nil
}

// quoted reads a key in quotes, as TOML has them.
func (r *pathReader) quoted() error {
	rest := r.rest()
	for end := 1; end < len(rest); end++ {
		switch {
		case rest[end] == '\\' && rest[0] == '"':
			end++
		case rest[end] == rest[0]:
			tree, broken := syntax.Parse([]byte("x = " + rest[:end+1]))
			if len(broken) > 0 || len(tree.Entries) != 1 {
				return r.pathError(broken[0].Message)
			}
			r.steps = append(r.steps, Step{Name: tree.Entries[0].Value.Text})
			r.at += end + 1
			return nil
		}
	}
	return r.pathError("close the quotes")
}

func (r *pathReader) bracket() error {
	number, _, found := strings.Cut(r.rest()[1:], "]")
	step := Step{Name: number, Bracket: true}
	if _, ok := step.number(); !found || !ok {
		return r.pathError("write the number of an element, from 0, as in output.metrics[0].units")
	}
	r.steps = append(r.steps, step)
	r.at += len(number) + 2
	return nil
}

// The errors of a path that leads nowhere in a file.
var (
	errNoTable = errors.New("is no table and has no keys")
	errNoList  = errors.New("is a table and has no numbers")
	errNumber  = errors.New("is a list; its elements have numbers, from 0")
)

// A PathNotFoundError says at which step a path leads nowhere.
type PathNotFoundError struct {
	Step int // the last one that leads somewhere
	Err  error
}

// Error says why.
func (e *PathNotFoundError) Error() string { return e.Err.Error() }

// Unwrap is why.
func (e *PathNotFoundError) Unwrap() error { return e.Err }

// follow goes along path as far as tree has it: to the node at, after done
// steps.
func follow(tree *syntax.Node, path []Step) (at *syntax.Node, done int, err error) {
	at = tree
	for done < len(path) {
		next, err := enter(at, path[done])
		if err != nil {
			return nil, 0, &PathNotFoundError{done - 1, err}
		}
		if next == nil {
			return at, done, nil
		}
		at = next
		done++
	}
	return at, done, nil
}

// enter is the node that step leads to, and nil where it may be added.
func enter(at *syntax.Node, step Step) (*syntax.Node, error) {
	switch at.Kind { //nolint:exhaustive // nothing is in the others
	case syntax.Table:
		if step.Bracket {
			return nil, errNoList
		}
		return at.Get(step.Name), nil
	case syntax.List:
		n, ok := step.number()
		switch {
		case !ok:
			return nil, errNumber
		case n < len(at.Items):
			return at.Items[n], nil
		case n > len(at.Items):
			return nil, indexError(len(at.Items))
		}
		return nil, nil //nolint:nilnil // the next element may be added
	}
	return nil, errNoTable
}

// indexError says that a list of n elements has no such number.
func indexError(n int) error {
	elements := "elements"
	if n == 1 {
		elements = "element"
	}
	return fmt.Errorf("has %d %s; the next to be added is %d", n, elements, n)
}
