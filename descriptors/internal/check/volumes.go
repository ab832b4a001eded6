package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
)

// shared finds data that all pods read and that one of them may change.
func (c rules) shared(at string, sources []descriptors.Source) {
	for i, s := range sources {
		at := fmt.Sprintf("%s[%d]", at, i)
		if s.Mount == descriptors.MountShared && !s.ReadOnly && !c.r.HasError(at+".mount") && !c.r.HasError(at+".read_only") {
			c.r.Fault(at+".read_only", fault.SharedWritable, "shared data are read by all pods, and none may change them",
				`leave it out, or write mount = "copy"`)
		}
	}
}

// mostVolumes is how many volumes a run can have.
const mostVolumes = 100

// volumes checks each volume's type, its pods and its path.
func (c rules) volumes() {
	if n := len(c.d.Volumes); n > mostVolumes {
		c.r.Fault("volumes", fault.OutOfRange, fmt.Sprintf("are %d, %d at most are mounted", n, mostVolumes), "")
		return
	}
	for i, v := range c.d.Volumes {
		at := fmt.Sprintf("volumes[%d]", i)
		if c.r.HasError(at) {
			continue
		}
		c.kindOf(at)
		c.role(at+".role", v.Role)
		c.overlaps(i)
	}
}

// kindOf finds a volume that is nothing, or several things.
func (c rules) kindOf(at string) {
	given := c.given(at, "claim", "template", "ephemeral", "nfs")
	switch {
	case len(given) == 0 && !c.damaged && !c.r.HasErrorBelow(at):
		c.r.Fault(at, fault.VolumeKind, "says nothing about what it is", "add one of claim, template, ephemeral and nfs")
	case len(given) > 1:
		c.r.Fault(at+"."+given[1], fault.VolumeKind, "it is a "+given[0]+" already", "keep one of the two")
	}
}

// role finds one that the run does not have.
func (c rules) role(at, role string) {
	roles := c.d.RoleNames()
	if role == "" || c.r.HasError(at) || c.r.HasError("hardware.strategy") || slices.Contains(roles, role) {
		return
	}
	ofStrategies := []string{"benchmark", "server", "client", "worker", "launcher"}
	if c.d.Hardware.Strategy == descriptors.OwnRoles || slices.Contains(ofStrategies, role) {
		c.r.Fault(at, fault.NoRole, fmt.Sprintf("%s has no role %s", c.strategy(), role), "its roles are "+strings.Join(roles, " and "))
		return
	}
	remedy := "write one of " + strings.Join(ofStrategies, ", ")
	if suggestion := suggest.Find(role, ofStrategies); suggestion != "" {
		remedy = fmt.Sprintf("did you mean %q?", suggestion)
	}
	c.r.Fault(at, fault.NotOneOf, fmt.Sprintf("%q is not one of its values", role), remedy)
}

// strategy is what decides about the roles of the run, in words.
func (c rules) strategy() string {
	if c.d.Hardware.Strategy == descriptors.OwnRoles {
		return "this file with [[roles]]"
	}
	return "strategy " + string(c.d.Hardware.Strategy)
}

// overlaps finds the first mount that a volume hides, or is hidden by, in a pod: other
// volumes, data and models.
func (c rules) overlaps(n int) {
	v, at := c.d.Volumes[n], fmt.Sprintf("volumes[%d].path", n)
	if v.Path == "" {
		return
	}
	for i, w := range c.d.Volumes[:n] {
		if (v.Role == "" || w.Role == "" || v.Role == w.Role) && c.overlap(at, v.Path, fmt.Sprintf("volumes[%d]", i), w.Path) {
			return
		}
	}
	for i, s := range c.d.Data.Sources {
		if (v.Role == "" || slices.Contains(c.d.Readers(s), v.Role)) &&
			c.overlap(at, v.Path, fmt.Sprintf("data.sources[%d]", i), s.Path) {
			return
		}
	}
	if v.Role == "" || c.isServer(v.Role) {
		c.covers(at, v.Path)
	}
}

// isServer reports whether a role is that of the table server, which has the models, too.
func (c rules) isServer(role string) bool {
	return role == "server" && c.d.Hardware.Strategy != descriptors.OwnRoles
}

// models finds data of the server that hide a model, or are hidden by one.
func (c rules) models() {
	for i, s := range c.d.Data.Sources {
		if c.isServer(c.d.Readers(s)[0]) {
			c.covers(fmt.Sprintf("data.sources[%d].path", i), s.Path)
		}
	}
}

// covers reports the first model that a path overlaps with.
func (c rules) covers(at, path string) {
	if c.d.Server == nil {
		return
	}
	for i, s := range c.d.Server.Models {
		if c.overlap(at, path, fmt.Sprintf("server.models[%d]", i), s.Path) {
			return
		}
	}
}

// overlap reports whether one path is another, or lies in it.
func (c rules) overlap(at, path, other, taken string) bool {
	switch {
	case taken == "":
		return false
	case path == taken:
		c.r.Fault(at, fault.SamePath, fmt.Sprintf("%q is the path of %s too", path, other), "choose another path")
	case strings.HasPrefix(path, taken+"/"):
		c.r.Fault(at, fault.NestedPath, fmt.Sprintf("%q lies inside %q, the path of %s", path, taken, other),
			"choose folders beside each other")
	case strings.HasPrefix(taken, path+"/"):
		c.r.Fault(at, fault.NestedPath, fmt.Sprintf("%q, the path of %s, lies inside %q", taken, other, path),
			"choose folders beside each other")
	default:
		return false
	}
	return true
}

// A mount is a path in a pod, and the key that gives it.
type mount struct{ key, path string }

// mounts are the paths of data, models and volumes in the pods of the server, or in all others.
func (c rules) mounts(ofServer bool) []mount {
	var all []mount
	for i, v := range c.d.Volumes {
		if v.Role == "" || c.isServer(v.Role) == ofServer {
			all = append(all, mount{fmt.Sprintf("volumes[%d]", i), v.Path})
		}
	}
	for i, s := range c.d.Data.Sources {
		if c.isServer(c.d.Readers(s)[0]) == ofServer {
			all = append(all, mount{fmt.Sprintf("data.sources[%d]", i), s.Path})
		}
	}
	if !ofServer {
		return all
	}
	for i, s := range c.d.Server.Models {
		all = append(all, mount{fmt.Sprintf("server.models[%d]", i), s.Path})
	}
	return all
}

// secretFiles finds files with secrets that a mount hides, or is hidden by, and artifacts that would store a secret; table
// is that of their pods: "" or "server.".
func (c rules) secretFiles(table string, env descriptors.Env, out *descriptors.Output) {
	mounts, files := c.mounts(table != ""), slices.Sorted(maps.Keys(env.SecretFiles))
	for _, file := range files {
		at := table + "env.secret_files." + decode.Quoted(file)
		for _, m := range mounts {
			if c.overlap(at, file, m.key, m.path) {
				break
			}
		}
		mounts = append(mounts, mount{at, file})
	}
	if out == nil {
		return
	}
	for i, a := range out.Artifacts {
		in := func(file string) bool {
			return a.Path != "" && strings.HasPrefix(file+"/", strings.TrimSuffix(a.Path, "/")+"/")
		}
		if n := slices.IndexFunc(files, in); n >= 0 {
			c.r.Fault(fmt.Sprintf("%soutput.artifacts[%d].path", table, i), fault.SecretArtifact,
				fmt.Sprintf("would store the secret %q", files[n]), "keep the artifact and the secret in folders beside each other")
		}
	}
}
