package contexts

import (
	"fmt"
	"strconv"
	"strings"
)

// A ResolveInput holds the settings of a command line and its environment.
type ResolveInput struct {
	Context, Server, Owner string // flags; empty: not given

	EnvContext, EnvServer, EnvOwner string // BAI_CONTEXT, BAI_SERVER, BAI_OWNER

	DefaultServer, DefaultOwner string
}

// Resolve returns the platform and the user's identity there. Flags win over the
// environment, the environment over the current context, and that over the defaults. A
// context named by a flag counts as a flag; one named by the environment replaces the
// current one. An unknown context is an error.
func (c Contexts) Resolve(ch ResolveInput) (Context, error) {
	typed, err := c.lookup(ch.Context, "--context")
	if err != nil {
		return Context{}, err
	}
	name, from := ch.EnvContext, "BAI_CONTEXT"
	if name == "" {
		name, from = c.Current, "current"
	}
	if ch.Context != "" { // it is the current one then
		name = ""
	}
	current, err := c.lookup(name, from)
	if err != nil {
		return Context{}, err
	}
	return Context{
		Server:    firstNonEmpty(ch.Server, typed.Server, ch.EnvServer, current.Server, ch.DefaultServer),
		Owner:     firstNonEmpty(ch.Owner, typed.Owner, ch.EnvOwner, current.Owner, ch.DefaultOwner),
		Namespace: firstNonEmpty(typed.Namespace, current.Namespace),
		Kibana:    firstNonEmpty(typed.Kibana, current.Kibana),

		KibanaPrefix: firstNonEmpty(typed.KibanaPrefix, current.KibanaPrefix),
	}, nil
}

func (c Contexts) lookup(name, from string) (Context, error) {
	one, ok := c.All[name]
	if name != "" && !ok {
		return Context{}, &UnknownError{Name: name, From: from, Known: c.Names()}
	}
	return one, nil
}

func firstNonEmpty(all ...string) string {
	for _, one := range all {
		if one != "" {
			return one
		}
	}
	return ""
}

// An UnknownError says that there is no such context.
type UnknownError struct {
	Name  string
	From  string // the flag, variable or file that named it
	Known []string
}

// Error says which there are.
func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("%s %q: there are no contexts yet (make one: baictl config set-context %s --server HOST:PORT)", e.From, e.Name,
			e.Name)
	}
	known := make([]string, len(e.Known))
	for i, name := range e.Known {
		known[i] = strconv.Quote(name)
	}
	return fmt.Sprintf("%s %q: there is no such context, only %s", e.From, e.Name, strings.Join(known, ", "))
}
