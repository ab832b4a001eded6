package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Condition says when an object has reached a state, as the option --for of kubectl wait
// does: condition=TYPE, or jsonpath={.status.phase}=VALUE. A path may have several values,
// with | between them, one of which has to be there. The zero value never holds.
type Condition struct {
	Type   string   // of a condition of the status that is True
	Path   []string // names of keys, and numbers of items, from the object down
	Values []string
}

// A State is what an object says about a condition that holds.
type State struct {
	Reason  string
	Message string
	Since   time.Time // zero if the object does not say it
}

// ParseCondition reads a condition. The error is for the user.
func ParseCondition(text string) (Condition, error) {
	form, rest, _ := strings.Cut(text, "=")
	switch form {
	case "condition":
		if rest == "" || strings.ContainsAny(rest, "= {}|") {
			return Condition{}, fmt.Errorf("%q names no type of a condition: write it as condition=Complete", text)
		}
		return Condition{Type: rest}, nil
	case "jsonpath":
		return parsePath(text, rest)
	}
	return Condition{}, fmt.Errorf("%q is neither condition=TYPE nor jsonpath={.status.phase}=VALUE", text)
}

func parsePath(text, rest string) (Condition, error) {
	const example = "write it as jsonpath={.status.phase}=Succeeded"
	path, values, ok := strings.Cut(rest, "}=")
	path, braced := strings.CutPrefix(path, "{.")
	if !ok || !braced || path == "" || values == "" {
		return Condition{}, fmt.Errorf("%q has no path and value: %s", text, example)
	}
	c := Condition{Values: strings.Split(values, "|")}
	for part := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(part, "[")
		if _, err := strconv.ParseUint(name, 10, 64); err == nil || name == "" || strings.ContainsAny(name, "*?@(){}'\"$ ]") {
			return Condition{}, fmt.Errorf("%q has a path that is not keys with points between them: %s", text, example)
		}
		c.Path = append(c.Path, name)
		if !indexed {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSuffix(index, "]"), 10, 16); err != nil || !strings.HasSuffix(index, "]") {
			return Condition{}, fmt.Errorf("%q has an index that is not a number: %s", text, example)
		} else if c.Path = append(c.Path, strconv.FormatUint(n, 10)); len(c.Path) > maxDepth {
			break
		}
	}
	if slices.Contains(c.Values, "") || len(c.Path) > maxDepth {
		return Condition{}, fmt.Errorf("%q has an empty value, or a path without end: %s", text, example)
	}
	return c, nil
}

// IsZero reports whether the condition never holds.
func (c Condition) IsZero() bool { return c.Type == "" && len(c.Path) == 0 }

// String writes the condition as ParseCondition reads it.
func (c Condition) String() string {
	switch {
	case c.Type != "":
		return "condition=" + c.Type
	case len(c.Path) == 0:
		return ""
	}
	var path strings.Builder
	for _, part := range c.Path {
		if _, err := strconv.ParseUint(part, 10, 64); err == nil {
			path.WriteString("[" + part + "]")
			continue
		}
		path.WriteString("." + part)
	}
	return "jsonpath={" + path.String() + "}=" + strings.Join(c.Values, "|")
}

// Holds returns what an object says about the condition, if it holds.
func (c Condition) Holds(object map[string]any) (State, bool) {
	if c.Type != "" {
		return ofConditions(object, c.Type)
	}
	value, ok := lookup(object, c.Path)
	if !ok || len(c.Path) == 0 || !slices.Contains(c.Values, fmt.Sprint(value)) {
		return State{}, false
	}
	status, _ := object["status"].(map[string]any)
	message, _ := status["message"].(string)
	return State{Reason: fmt.Sprint(value), Message: message, Since: timeOf(status["finishedAt"])}, true
}

func ofConditions(object map[string]any, name string) (State, bool) {
	all, _ := lookup(object, []string{"status", "conditions"})
	list, _ := all.([]any)
	for _, item := range list {
		one, _ := item.(map[string]any)
		if one["type"] != name || one["status"] != "True" {
			continue
		}
		reason, _ := one["reason"].(string)
		message, _ := one["message"].(string)
		return State{Reason: reason, Message: message, Since: timeOf(one["lastTransitionTime"])}, true
	}
	return State{}, false
}

func timeOf(value any) time.Time {
	text, _ := value.(string)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// lookup returns the value at a path.
func lookup(in any, path []string) (any, bool) {
	for _, part := range path {
		switch level := in.(type) {
		case map[string]any:
			next, ok := level[part]
			if !ok {
				return nil, false
			}
			in = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(level) {
				return nil, false
			}
			in = level[i]
		default:
			return nil, false
		}
	}
	return in, true
}
