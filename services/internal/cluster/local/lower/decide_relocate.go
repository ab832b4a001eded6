package lower

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/validate"
	"github.com/benchmark-ai/bai/services/internal/pod"
)

// pathMapping is the real path of a container's path.
type pathMapping struct{ containerPath, hostPath string }

// relocate rewrites a container's arguments and environment to the paths of the volumes that cannot be mounted for it.
func (o *Output) relocate(in Input, c *shimapi.Container) {
	places := o.pathMappings(in, *c)
	for i, a := range c.Args {
		c.Args[i] = mapPath(a, places)
	}
	c.Dir = mapPath(c.Dir, places)
	for i, e := range c.Env {
		name, value, _ := strings.Cut(e, "=")
		c.Env[i] = name + "=" + mapPath(value, places)
	}
	for _, p := range places {
		switch p.containerPath {
		case pod.Dir:
			c.Env = setVariable(c.Env, pod.EnvDir, p.hostPath)
		case pod.SecretDir:
			c.Env = setVariable(c.Env, pod.EnvSecretDir, p.hostPath)
		}
	}
	if m := mapPath(c.MessagePath, places); m != c.MessagePath {
		c.MessagePath = m
	} else {
		c.MessagePath = path.Join(in.Dir, shimapi.Logs, c.Name+".message")
	}
	c.Env = setVariable(c.Env, pod.EnvMessage, c.MessagePath)
	c.Env = setVariable(c.Env, shimapi.EnvPodID, o.Pod.ID)
	c.Mounts = nil
}

// pathMappings returns the real paths of a container's mounts, the innermost first, and adds links for mounts that lie in others.
func (o *Output) pathMappings(in Input, c shimapi.Container) []pathMapping {
	places := []pathMapping{{pod.ImageBinary, in.Binary}}
	for _, m := range c.Mounts {
		if validate.IsRelocated(m.Path) {
			places = append(places, pathMapping{m.Path, path.Join(volumePath(in, m.Volume), m.SubPath)})
		}
	}
	slices.SortFunc(places, func(a, b pathMapping) int { return cmp.Compare(len(b.containerPath), len(a.containerPath)) })
	for i, p := range places {
		if at := mapPath(p.containerPath, places[i+1:]); at != p.containerPath {
			o.Links[at] = p.hostPath
		}
	}
	return places
}

// mapPath returns the real path of value if value is at or below one of the mappings.
func mapPath(value string, mappings []pathMapping) string {
	for _, p := range mappings {
		if rest, ok := strings.CutPrefix(value, p.containerPath); ok && (rest == "" || rest[0] == '/') {
			return p.hostPath + rest
		}
	}
	return value
}
