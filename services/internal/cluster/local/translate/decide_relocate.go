package translate

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/accept"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/spec"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// place is where a path of a container really is.
type place struct{ seen, real string }

// relocate makes a container find by its arguments and environment what cannot
// be mounted for it.
func (o *Output) relocate(in Input, c *spec.Container) {
	places := o.places(in, *c)
	for i, a := range c.Args {
		c.Args[i] = moved(a, places)
	}
	c.Dir = moved(c.Dir, places)
	for i, e := range c.Env {
		name, value, _ := strings.Cut(e, "=")
		c.Env[i] = name + "=" + moved(value, places)
	}
	for _, p := range places {
		switch p.seen {
		case pod.Dir:
			c.Env = set(c.Env, pod.EnvDir, p.real)
		case pod.SecretDir:
			c.Env = set(c.Env, pod.EnvSecretDir, p.real)
		}
	}
	if m := moved(c.Message, places); m != c.Message {
		c.Message = m
	} else {
		c.Message = path.Join(in.Dir, spec.Logs, c.Name+".message")
	}
	c.Env = set(c.Env, pod.EnvMessage, c.Message)
	c.Env = set(c.Env, spec.Mark, o.Pod.ID)
	c.Mounts = nil
}

// places returns where a container's mounts really are, the innermost first,
// and has links made for those that lie in others.
func (o *Output) places(in Input, c spec.Container) []place {
	places := []place{{pod.ImageBinary, in.Binary}}
	for _, m := range c.Mounts {
		if accept.Relocated(m.Path) {
			places = append(places, place{m.Path, path.Join(volumePath(in, m.Volume), m.SubPath)})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(len(b.seen), len(a.seen)) })
	for i, p := range places {
		if at := moved(p.seen, places[i+1:]); at != p.seen {
			o.Links[at] = p.real
		}
	}
	return places
}

// moved returns where value is if it is a path at or below one of places.
func moved(value string, places []place) string {
	for _, p := range places {
		if rest, ok := strings.CutPrefix(value, p.seen); ok && (rest == "" || rest[0] == '/') {
			return p.real + rest
		}
	}
	return value
}
