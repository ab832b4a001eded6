package edit

import (
	"errors"

	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

var errRemoveElement = errors.New("is a list, and no element is taken out of it; write the list without it")

// Remove removes the key at path from the text, with its line and the comment on it. A
// text without the key is not changed. The text must be TOML. Errors are
// *PathNotFoundError; the text is then unchanged.
func (t *Text) Remove(path []Step) error {
	s := setter{t: t, path: path}
	s.text, s.tree, _ = t.read()
	at, done, err := follow(s.tree, path)
	if err != nil || done < len(path) {
		return err
	}
	parent, _, err := follow(s.tree, path[:done-1])
	switch {
	case err != nil:
		return err
	case parent.Kind == syntax.List:
		return &PathNotFoundError{done - 2, errRemoveElement}
	case at.Span == syntax.Span{}: // headers or dotted keys made it
		s.remove(at)
	default:
		line := s.removalSpan(parent, at.Pair)
		t.splice(line.From, line.To)
	}
	return nil
}
