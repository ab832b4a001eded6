package kube

import (
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
)

// A Container is one of a pod, as far as a descriptor can have it.
type Container struct {
	At         document.Value
	Image      string
	Command    []string
	Args       []string
	Vars       draft.Inline
	Secrets    draft.Inline // name/key of each
	Resources  []Setting
	Pull       string
	Privileged bool
	Mounts     []Mount
}

// A Mount is a volume in a container.
type Mount struct {
	At       document.Value
	Volume   string // its name in the pod
	Path     string
	ReadOnly bool
}

// ReadContainer reads a container of Kubernetes.
func ReadContainer(v document.Value) Container {
	c := Container{At: v, Image: v.Get("image").String(), Command: v.Get("command").Strings(), Args: v.Get("args").Strings()}
	v.Get("name")
	if c.Image == "" {
		v.Fault("add it", "has no image")
	}
	c.env(v.Get("env"))
	if at := v.Get("resources"); at.Has() {
		c.Resources = Resources(at)
	}
	if at := v.Get("imagePullPolicy"); at.Has() {
		c.Pull = at.String()
	}
	c.Privileged = v.Get("securityContext", "privileged").Bool()
	for _, m := range v.Get("volumeMounts").Items() {
		c.Mounts = append(c.Mounts,
			Mount{At: m, Volume: m.Get("name").String(), Path: m.Get("mountPath").String(), ReadOnly: m.Get("readOnly").Bool()})
		m.Drop("volumes are mounted as a whole: left out", "subPath", "subPathExpr", "mountPropagation")
	}
	v.Drop("containers of a run have the folder that their image gives them: left out", "workingDir")
	v.Drop("the pods of a run reach each other on all ports: left out", "ports")
	return c
}

// env reads the variables of a container.
func (c *Container) env(v document.Value) {
	for _, one := range v.Items() {
		name, secret := one.Get("name").String(), one.Peek("valueFrom", "secretKeyRef")
		switch {
		case !draft.IsVariable(name) || c.hasVariable(name):
			one.Remark("%q is no name of a variable, or has a value already: left out", name)
		case secret.Kind() == document.Table:
			at := one.Get("valueFrom", "secretKeyRef")
			c.Secrets = append(c.Secrets, draft.Pair{Key: name, Value: at.Get("name").String() + "/" + at.Get("key").String()})
		case one.Peek("valueFrom").Has():
			one.Get("valueFrom").Remark("variables have texts and secrets alone: left out")
		default:
			c.Vars = append(c.Vars, draft.Pair{Key: name, Value: one.Get("value").Scalar()})
		}
	}
}

func (c *Container) hasVariable(name string) bool {
	is := func(p draft.Pair) bool { return p.Key == name }
	return slices.ContainsFunc(c.Vars, is) || slices.ContainsFunc(c.Secrets, is)
}

// Code returns the command of the container with its arguments: a script for "sh -c TEXT". It
// is empty if the image's own command is run.
func (c *Container) Code() any {
	if len(c.Command) == 0 {
		return ""
	}
	words := slices.Concat(c.Command, c.Args)
	if shell, text, ok := script(words); ok {
		return draft.Script("#!" + shell + "\n" + text)
	}
	return draft.Words(words)
}

// script returns the shell and the text of a command like "sh -c TEXT". One in which Kubernetes
// puts values in place of $(NAME) is none: a shell reads that as a command.
func script(words []string) (shell, text string, ok bool) {
	if len(words) != 3 || words[1] != "-c" || strings.Contains(words[2], "$(") || strings.TrimSpace(words[2]) == "" {
		return "", "", false
	}
	for _, name := range []string{"sh", "bash"} {
		if words[0] == name || words[0] == "/bin/"+name {
			return "/bin/" + name, words[2], true
		}
	}
	return "", "", false
}

// Write writes the container as the benchmark.
func (c *Container) Write(d *draft.Draft, vars draft.Inline) {
	d.Table("hardware").Set("gpus", 0)
	for _, table := range []string{
		"hardware.distributed", requests, limits, "network", "env", "env.vars",
		"env.secrets", "env.secret_files",
	} {
		d.Table(table) // in this order
	}
	Apply(d, c.Resources...)
	env := d.Table("env").Set("docker_image", c.Image).SetText("pull_policy", c.Pull)
	if c.Privileged {
		env.Set("privileged", true)
	}
	for _, p := range slices.Concat(vars, c.Vars) {
		d.Table("env.vars").Set(p.Key, p.Value)
	}
	for _, p := range c.Secrets {
		d.Table("env.secrets").Set(p.Key, p.Value)
	}
	if code := c.Code(); code != "" {
		d.Table("ml").Set("benchmark_code", code)
	} else if len(c.Args) > 0 {
		d.Table("ml").Set("args", draft.Words(c.Args))
	}
}

// Volume reads a volume of a pod. It is nil, with a remark, if a run cannot have it.
func Volume(v document.Value) *draft.Pair {
	const standard = "10GiB"
	switch claim, nfs, empty := v.Get("persistentVolumeClaim"), v.Get("nfs"), v.Get("emptyDir"); {
	case claim.Has():
		return &draft.Pair{Key: "claim", Value: claim.Get("claimName").String()}
	case nfs.Has():
		return &draft.Pair{
			Key:   "nfs",
			Value: draft.Inline{{Key: "server", Value: nfs.Get("server").String()}, {Key: "path", Value: nfs.Get("path").String()}},
		}
	case empty.Has():
		size := empty.Get("sizeLimit").Scalar()
		if size == "" {
			size = standard
			empty.Remark("has no size: %s", standard)
		}
		return &draft.Pair{Key: "ephemeral", Value: draft.Inline{{Key: "size", Value: size}}}
	}
	v.Remark("a run has volumes by claim, of NFS, and of its own: left out")
	v.Forget()
	return nil
}
