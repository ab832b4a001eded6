package contexts

import "fmt"

// A ResolveInput is what a command line and its environment say.
type ResolveInput struct {
	Context, Server, Owner string // flags; empty: not given

	EnvContext, EnvServer, EnvOwner string // BAI_CONTEXT, BAI_SERVER, BAI_OWNER

	DefaultServer, DefaultOwner string
}

// Resolve says which platform is meant, and who one is there. What is typed wins
// over the environment, that over the context that is current, that over the
// defaults; a context that is typed counts as typed, one that the environment
// names is that which is current. It is an error where there is no such context.
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
	From  string // what named it
	Known []string
}

// Error says which there are.
func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("%s %q: there are no contexts yet (make one: baictl config set-context %s --server HOST:PORT)", e.From, e.Name, e.Name)
	}
	return fmt.Sprintf("%s %q: there is no such context, only %q", e.From, e.Name, e.Known)
}
