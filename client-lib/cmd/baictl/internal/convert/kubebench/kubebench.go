// Package kubebench converts jobs of Kubebench: a main job, with containers before and after it.
package kubebench

import (
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// Is reports whether a document is a job of Kubebench.
func Is(v document.Value) bool { return v.Peek("kind").Raw() == "KubebenchJob" }

// A job is what a document says, whatever its version.
type job struct {
	main        workload
	steps       []step
	vars        draft.Inline // those that Kubebench gives its containers
	folders     []string     // variables of folders that have to be there
	mounts      []mounted
	volumeNames map[string]*draft.Pair // the volumes of the job by their names
	secretFile  *draft.Pair
	nested      []document.Value // objects in texts of the document
	deadline    string
}

// A step is a container that runs before or after the main job.
type step struct {
	name      string
	container kube.Container
	after     bool
	needs     []string // names of steps
	deadline  string   // "" for that of all steps
}

// mounted is a volume at a path.
type mounted struct {
	path     string
	volume   draft.Pair
	readOnly bool
}

// Convert returns the descriptor of a job, and a name for its file.
func Convert(v document.Value) (d *draft.Draft, name string) {
	v.Get("kind")
	v.Get("apiVersion")
	v.Drop("written by the operator: left out", "status")
	spec := v.Get("spec")
	j := &job{volumeNames: map[string]*draft.Pair{}}
	switch {
	case spec.Peek("jobSpecs").Has():
		j.readFirst(spec)
	case spec.Peek("tasks").Has():
		j.readSecond(spec)
	default:
		v.Fault("a KubebenchJob has spec.jobSpecs, or spec.tasks", "has no jobs")
		return &draft.Draft{}, ""
	}
	d = &draft.Draft{}
	name = j.write(d, v)
	v.Unknown()
	for _, one := range j.nested {
		one.Unknown()
	}
	return d, name
}

// write writes the descriptor.
func (j *job) write(d *draft.Draft, v document.Value) string {
	d.Comment("Converted from Kubebench: %s.", v.Peek("metadata", "name").Raw())
	d.Table("").Set("spec_version", "1.0")
	d.Table("info").Set("description", "A job of Kubebench")
	name := kube.Metadata(d, v.Get("metadata"), "kubebench-job")
	j.main.container.Write(d, j.vars)
	if j.secretFile != nil {
		d.Table("env.secret_files").Set(j.secretFile.Key, j.secretFile.Value)
	}
	if j.main.pods > 1 {
		d.Table("hardware").Set("strategy", "mpi")
		d.Table("hardware.distributed").Set("num_instances", j.main.pods).Set("processes_per_instance", max(j.main.slots, 1))
		if d.Table("ml").Lacks("benchmark_code") {
			d.Table("ml").Set("benchmark_code", missingCommand)
			j.main.container.At.Remark("has no command, which strategy mpi needs: write it in place of %q", missingCommand)
		}
	}
	j.writeSteps(d)
	for _, m := range j.allMounts() {
		volume := d.Item("volumes").Set("path", m.path).Set(m.volume.Key, m.volume.Value)
		if m.readOnly {
			volume.Set("read_only", true)
		}
	}
	d.Table("limits").SetText("deadline", j.deadline)
	return name
}

// writeSteps writes the steps, if the run can have them.
func (j *job) writeSteps(d *draft.Draft) {
	if j.main.pods > 1 {
		for _, s := range j.steps {
			s.container.At.Remark("a run of several pods has no steps: left out")
		}
		return
	}
	if len(j.folders) > 0 {
		d.Item("steps").Set("name", "folders").Set("when", "before").
			Set("command", draft.Script(`#!/bin/sh -e`+"\n"+`mkdir -p "$`+strings.Join(j.folders, `" "$`)+`"`))
	}
	written := []string{}
	for _, s := range j.steps {
		code := s.container.Code()
		if code == "" {
			s.container.At.Remark("has no command, and a step needs one: left out (add the command of the image)")
			continue
		}
		if s.after && d.Table("ml").Lacks("benchmark_code") {
			s.container.At.Remark("runs after a benchmark whose command is not known: left out (add the command of the main job)")
			continue
		}
		written = append(written, s.name)
		s.write(d, code, written)
	}
}

func (s step) write(d *draft.Draft, code any, written []string) {
	when := "before"
	if s.after {
		when = "after"
	}
	t := d.Item("steps").Set("name", s.name).Set("when", when).Set("image", s.container.Image)
	if text, ok := code.(string); ok {
		t.Set("command", text)
	} else {
		t.Set("command", code)
	}
	needs := slices.DeleteFunc(slices.Clone(s.needs), func(name string) bool { return !slices.Contains(written, name) })
	if len(needs) > 0 {
		t.Set("needs", needs)
	}
	t.SetText("deadline", s.deadline)
	if len(s.container.Vars) > 0 {
		t.Set("vars", s.container.Vars)
	}
	at := s.container.At
	if len(s.container.Resources) > 0 {
		at.Get("resources").Remark("a step has the resources of the benchmark: left out")
	}
	for _, p := range s.container.Secrets {
		at.Get("env").Remark("a step has the secrets of the benchmark: %s is left out", p.Key)
	}
	if s.container.Pull != "" {
		at.Get("imagePullPolicy").Remark("a step has no pull policy of its own: left out")
	}
	if s.container.Privileged {
		at.Get("securityContext", "privileged").Remark("a step has no rights of its own: left out")
	}
}

// addStep adds a container that runs before or after the main job, under a name that a step can have.
func (j *job) addStep(s step) {
	short := draft.ShortName(s.name)
	for n := 2; short == "" || short == "folders" || slices.ContainsFunc(j.steps, func(s step) bool { return s.name == short }); n++ {
		short = draft.ShortName("step-" + strings.Repeat("x", n-1))
	}
	s.name = short
	j.steps = append(j.steps, s)
}

// mount adds a volume at a path, unless there is one.
func (j *job) mount(at document.Value, path string, volume *draft.Pair, readOnly bool) {
	volumeAt := func(m mounted) bool { return m.path == path && volume != nil && same(m.volume, *volume) }
	overlaps := func(m mounted) bool {
		return m.path == path || strings.HasPrefix(m.path, path+"/") || strings.HasPrefix(path, m.path+"/")
	}
	switch {
	case volume == nil: // there is a remark
	case path == "":
		at.Fault("", "has no path")
	case slices.ContainsFunc(j.mounts, volumeAt):
		if i := slices.IndexFunc(j.mounts, volumeAt); !readOnly {
			j.mounts[i].readOnly = false
		}
	case slices.ContainsFunc(j.mounts, overlaps):
		at.Remark("lies at the path of another volume: left out")
	default:
		j.mounts = append(j.mounts, mounted{path, *volume, readOnly})
	}
}

func same(a, b draft.Pair) bool {
	return a.Key == b.Key && draft.Literal(a.Value) == draft.Literal(b.Value)
}

// allMounts returns the volumes of the job, and those of the containers.
func (j *job) allMounts() []mounted {
	containers := []kube.Container{j.main.container}
	for _, s := range j.steps {
		containers = append(containers, s.container)
	}
	for _, c := range containers {
		for _, m := range c.Mounts {
			volume, ok := j.volumeNames[m.Volume]
			if !ok {
				m.At.Remark("there is no volume %q: left out", m.Volume)
			}
			j.mount(m.At, strings.TrimSuffix(m.Path, "/"), volume, m.ReadOnly)
		}
	}
	return j.mounts
}

// volumes reads a list of volumes.
func (j *job) volumes(v document.Value) {
	for _, one := range v.Items() {
		j.volumeNames[one.Get("name").String()] = kube.Volume(one)
	}
}
