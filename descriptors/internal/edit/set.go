package edit

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// Lists reports whether a language has a list at the path of keys.
type Lists func(keys string) bool

// Set replaces the value at path by newValue, and adds missing tables and elements; lists
// decides whether a missing one is a list. The text must be TOML. Errors are
// *PathNotFoundError, and *BrokenError if the result would not be TOML; the text is then
// unchanged.
func (t *Text) Set(path []Step, newValue string, origin int, lists Lists) error {
	before := *t
	s := setter{t: t, path: path, value: read(newValue, origin), lists: lists}
	again, err := s.apply()
	if again {
		_, err = s.apply()
	}
	if err == nil {
		if _, _, broken := t.read(); len(broken) > 0 {
			err = &BrokenError{broken[0]}
		}
	}
	if err != nil {
		*t = before
	}
	return err
}

// A BrokenError says why a text would not be TOML.
type BrokenError struct{ Fault syntax.Fault }

// Error says why.
func (e *BrokenError) Error() string { return e.Fault.Message }

// setter puts one value into a text.
type setter struct {
	t     *Text
	path  []Step
	value value
	lists Lists

	text []byte // as it was parsed
	tree *syntax.Node
}

// apply inserts the value, or removes the old one and has to be called again.
func (s *setter) apply() (again bool, err error) {
	s.text, s.tree, _ = s.t.read()
	at, done, err := follow(s.tree, s.path)
	switch {
	case err != nil:
		return false, err
	case done < len(s.path):
		return false, s.add(at, done)
	case at.Span != syntax.Span{}:
		s.t.splice(at.Span.From, at.Span.To, s.value.text...)
		return false, nil
	}
	parent, _, err := follow(s.tree, s.path[:done-1])
	if err != nil {
		return false, err
	}
	if parent.Kind == syntax.List {
		return false, s.refill(at)
	}
	s.remove(at)
	return true, nil
}

var errElement = errors.New("has tables as its elements; write one as {key = value}, or name one of its keys")

// refill gives an element of [[tables]] the keys of the value.
func (s *setter) refill(element *syntax.Node) error {
	if s.value.node.Kind != syntax.Table {
		return &PathNotFoundError{len(s.path) - 2, errElement}
	}
	sections := element.InsertPoint.Sections
	for i, section := range slices.Backward(sections) {
		from, to := section.Span.From, s.lineEnd(section.Span.To)
		if i == 0 {
			from = s.lineEnd(s.headerEnd(section))
			s.t.splice(from, max(from, to), s.lines("")...)
			continue
		}
		s.t.splice(from, to)
	}
	return nil
}

// headerEnd is an offset on the line of the header of section.
func (s *setter) headerEnd(section *syntax.Section) int {
	rest := s.text[section.Span.From:]
	return section.Span.From + bytes.IndexByte(rest, '[')
}

// lines are the keys of the value, a table, each on a line.
func (s *setter) lines(indent string) []piece {
	var all []piece
	for _, p := range pairs(s.value.node) {
		all = append(all, s.value.glue(indent), piece{s.value.source[p.From:p.To], s.value.origin, p.From - len(before)},
			s.value.glue(s.newline()))
	}
	return all
}

// remove takes a table, or a list of tables, out of the text.
func (s *setter) remove(n *syntax.Node) {
	var spans []syntax.Span
	for _, section := range n.InsertPoint.Sections {
		spans = append(spans, syntax.Span{From: section.Span.From, To: s.lineEnd(section.Span.To)})
	}
	if n.InsertPoint.Parent != nil {
		for _, pair := range pairs(n) {
			spans = append(spans, s.removalSpan(n, pair))
		}
	}
	slices.SortFunc(spans, func(a, b syntax.Span) int { return b.From - a.From })
	for i, span := range spans {
		if i+1 < len(spans) && spans[i+1].To > span.From { // the last two of a table of one line share a comma
			spans[i+1] = s.withCommaBefore(syntax.Span{From: spans[i+1].From, To: span.To})
			continue
		}
		s.t.splice(span.From, span.To)
	}
}

// removalSpan is a pair of the table n with its line or, in a table of one line, with
// its comma.
func (s *setter) removalSpan(n *syntax.Node, pair syntax.Span) syntax.Span {
	if n.InsertPoint.Parent != nil { // dotted keys made it
		n = n.InsertPoint.Parent
	}
	if (n.Span == syntax.Span{}) {
		return syntax.Span{From: s.lineStart(pair.From), To: s.lineEnd(pair.To)}
	}
	to := s.blanks(pair.To)
	if to < len(s.text) && s.text[to] == ',' {
		return syntax.Span{From: pair.From, To: s.blanks(to + 1)}
	}
	return s.withCommaBefore(pair)
}

// withCommaBefore is a pair, or several, with the comma before it.
func (s *setter) withCommaBefore(pair syntax.Span) syntax.Span {
	from := len(bytes.TrimRight(s.text[:pair.From], " \t\r\n"))
	if from > 0 && s.text[from-1] == ',' {
		return syntax.Span{From: from - 1, To: pair.To}
	}
	return pair
}

func (s *setter) blanks(at int) int {
	return len(s.text) - len(bytes.TrimLeft(s.text[at:], " \t\r\n"))
}

// add writes the steps from done on, which at does not have, with the value.
func (s *setter) add(at *syntax.Node, done int) error {
	for i := done + 1; i < len(s.path); i++ {
		if n, _ := s.path[i].number(); n > 0 && s.element(i) {
			return &PathNotFoundError{i - 1, indexError(0)}
		}
	}
	switch {
	case at.Kind == syntax.List && at.Span != syntax.Span{}:
		s.append(at, s.nested(done+1, s.value))
		return nil
	case at.Kind == syntax.List:
		return s.extend(at, done)
	}
	return s.key(at, s.path[:done], s.path[done:])
}

// append writes one more element into [ … ].
func (s *setter) append(list *syntax.Node, element value) {
	if len(list.Items) == 0 {
		s.t.splice(list.Span.From+1, list.Span.From+1, element.text...)
		return
	}
	last := list.Items[len(list.Items)-1].Span.To
	s.t.splice(last, last, element.in(", ", "")...)
}

// extend writes one more [[table]] into the list at the first done steps.
func (s *setter) extend(list *syntax.Node, done int) error {
	var body []piece
	switch rest := s.path[done+1:]; {
	case len(rest) > 0:
		name, v := s.chain(done + 1)
		body = v.in(name+" = ", s.newline())
	case s.value.node.Kind == syntax.Table:
		body = s.lines("")
	default:
		return &PathNotFoundError{done - 1, errElement}
	}
	sections := list.InsertPoint.Sections
	s.section(s.lineEnd(sections[len(sections)-1].Span.To), "[["+s.names(s.path[:done])+"]]", body)
	return nil
}

// names are the keys of steps without numbers: as headers have them.
func (s *setter) names(steps []Step) string {
	at := s.tree
	var some []Step
	for _, step := range steps {
		if at.Kind != syntax.List {
			some = append(some, step)
		}
		at, _ = enter(at, step)
	}
	return keys(some)
}

// chain is the dotted key that the steps from first on are, and its value: that
// of the setter, in lists and tables where a list is on the way.
func (s *setter) chain(first int) (string, value) {
	end := first + 1
	for end < len(s.path) && !s.element(end) {
		end++
	}
	if end == len(s.path) {
		return keys(s.path[first:]), s.value
	}
	v := s.nested(end+1, s.value)
	v.text = v.in("[", "]")
	return keys(s.path[first:end]), v
}

// nested is the value for the steps from first on.
func (s *setter) nested(first int, v value) value {
	switch {
	case first >= len(s.path):
		return v
	case s.element(first):
		v = s.nested(first+1, v)
		v.text = v.in("[", "]")
		return v
	}
	name, v := s.chain(first)
	v.text = v.in("{ "+name+" = ", " }")
	return v
}

// element reports whether step i, which the text does not have, is the number of
// an element.
func (s *setter) element(i int) bool {
	if s.path[i].Bracket {
		return true
	}
	if _, ok := s.path[i].number(); !ok {
		return false
	}
	var names []string
	for _, step := range s.path[:i] {
		if _, ok := step.number(); !ok {
			names = append(names, step.Name)
		}
	}
	return s.lists(strings.Join(names, "."))
}
