package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// ObjectsVariable stands in a selector for the beginning of the names of the objects of a copy,
// as the variable of that name does in programs.
const ObjectsVariable = "$(BAI_OBJECTS)"

// longestBase is as long as the beginning of the names of objects can be.
const longestBase = "bai-00000000000000000000000000-100-99"

// A Selector selects pods by their labels. The zero value selects all.
type Selector struct{ requirements []requirement }

// requirement is one of those that a pod has to meet.
type requirement struct {
	key    string
	is     string // one of the operators below
	values []string
}

// Operators, as kubectl writes them.
const (
	equal    = "="
	unequal  = "!="
	among    = "in"
	notAmong = "notin"
	exists   = ""
	lacks    = "!"
)

// ParseSelector reads a selector as kubectl takes it: app=x,role in (a,b),!old. The error is for
// the user.
func ParseSelector(text string) (Selector, error) {
	var s Selector
	for rest := text; ; {
		term, after, more := cutTerm(rest)
		r, err := parseTerm(strings.TrimSpace(term))
		if err != nil {
			return Selector{}, err
		}
		s.requirements = append(s.requirements, r)
		if !more {
			return s, nil
		}
		rest = after
	}
}

// cutTerm cuts the text at the first comma outside of parentheses.
func cutTerm(text string) (term, rest string, more bool) {
	inside := false
	for i, c := range text {
		switch {
		case c == '(' && !strings.HasSuffix(text[:i], "$"):
			inside = true
		case c == ')' && !strings.HasSuffix(text[:i+1], ObjectsVariable):
			inside = false
		case c == ',' && !inside:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

func parseTerm(term string) (requirement, error) {
	if key, no := strings.CutPrefix(term, lacks); no && !strings.Contains(term, equal) {
		return newRequirement(term, strings.TrimSpace(key), lacks)
	}
	if key, list, ok := cutOperator(term); ok {
		is := among
		if before, not := strings.CutSuffix(key, " "+notAmong); not {
			key, is = before, notAmong
		} else {
			key = strings.TrimSuffix(key, " "+among)
		}
		values := strings.Split(list, ",")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		return newRequirement(term, strings.TrimSpace(key), is, values...)
	}
	for _, is := range []string{unequal, "==", equal} {
		if key, value, ok := strings.Cut(term, is); ok {
			if is == "==" {
				is = equal
			}
			return newRequirement(term, strings.TrimSpace(key), is, strings.TrimSpace(value))
		}
	}
	return newRequirement(term, term, exists)
}

// cutOperator cuts a term with a list of values: the key with its operator, and the list.
func cutOperator(term string) (before, list string, ok bool) {
	for _, is := range []string{" " + notAmong, " " + among} {
		before, after, found := strings.Cut(term, is)
		list := strings.TrimSpace(after)
		if found && strings.HasPrefix(list, "(") && strings.HasSuffix(list, ")") && !strings.Contains(before, equal) {
			return strings.TrimSpace(before) + is, list[1 : len(list)-1], true
		}
	}
	return "", "", false
}

func newRequirement(term, key, is string, values ...string) (requirement, error) {
	if !isLabelKey(key) {
		return requirement{}, fmt.Errorf("%q is not a requirement as app=x, role in (a,b), gpu or !old", term)
	}
	for _, value := range values {
		if !isLabelValue(strings.ReplaceAll(value, ObjectsVariable, longestBase)) {
			return requirement{}, fmt.Errorf("%q has a value that no label can have: letters, digits and - _ . between them, 63 at most", term)
		}
	}
	return requirement{key, is, values}, nil
}

// isLabelKey reports whether a text is a name with or without a domain.
func isLabelKey(key string) bool {
	const longestDomain = 253
	domain, name, has := strings.Cut(key, "/")
	if !has {
		domain, name = "a", key
	}
	for part := range strings.SplitSeq(domain, ".") {
		if !isName(part) || part == "" {
			return false
		}
	}
	return len(domain) <= longestDomain && name != "" && isLabelValue(name)
}

func isLabelValue(value string) bool {
	const longest = 63
	const ends = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	inner := strings.Trim(value, ends+"-_.")
	return len(value) <= longest && inner == "" && strings.Trim(value, "-_.") == value
}

// String writes the selector as kubectl takes it.
func (s Selector) String() string {
	terms := make([]string, 0, len(s.requirements))
	for _, r := range s.requirements {
		switch r.is {
		case exists, lacks:
			terms = append(terms, r.is+r.key)
		case equal, unequal:
			terms = append(terms, r.key+r.is+r.values[0])
		default:
			terms = append(terms, r.key+" "+r.is+" ("+strings.Join(r.values, ",")+")")
		}
	}
	return strings.Join(terms, ",")
}

// With returns the selector for objects whose names begin with base.
func (s Selector) With(base string) Selector {
	var all Selector
	for _, r := range s.requirements {
		values := slices.Clone(r.values)
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], ObjectsVariable, base)
		}
		all.requirements = append(all.requirements, requirement{r.key, r.is, values})
	}
	return all
}

// Named returns the values of the first label that has to have one of some values, each with
// base in it, and nil if no label has to. Base is the beginning of the names of a run's objects,
// so that no pod of another run has such a value.
func (s Selector) Named(base string) []string {
	for _, r := range s.requirements {
		unnamed := func(value string) bool { return !strings.Contains(value, base) }
		if (r.is == equal || r.is == among) && !slices.ContainsFunc(r.values, unnamed) {
			return slices.Clone(r.values)
		}
	}
	return nil
}

// Matches reports whether a pod with these labels is selected.
func (s Selector) Matches(labels map[string]string) bool {
	for _, r := range s.requirements {
		if !r.matches(labels) {
			return false
		}
	}
	return true
}

func (r requirement) matches(labels map[string]string) bool {
	value, has := labels[r.key]
	switch r.is {
	case exists:
		return has
	case lacks:
		return !has
	case equal, among:
		return has && slices.Contains(r.values, value)
	}
	return !has || !slices.Contains(r.values, value)
}
