// Package repeat decides how a run is repeated, and lists the parts that cannot be
// reproduced.
package repeat

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A Gap is something that may differ when the run is repeated.
type Gap struct {
	Subject string // such as the image
	Why     string
	Remedy  string // may be empty
}

// OriginState is the current state of the place that a descriptor came from.
type OriginState struct {
	Checked bool
	Sha256  string // of the current content
	Fault   string // why it cannot be read; empty where it can
}

// Gaps are the parts of a run that cannot be reproduced. The descriptor is nil if it is
// invalid by now, and the environment is nil if it is unknown.
func Gaps(run *baiv1.Run, d *descriptors.Descriptor, environment *baiv1.Environment, now OriginState) []Gap {
	gaps := origin(run.GetOrigination(), now)
	if run.GetDescriptorToml() == "" {
		return append(gaps, Gap{"the descriptor", "the platform does not have it any more", ""})
	}
	if d == nil {
		return append(gaps, Gap{
			"the descriptor", "it is invalid for this baictl",
			"see baictl validate, with the text of baictl repro --descriptor",
		})
	}
	own := programs(environment, d)
	gaps = append(gaps, own...)
	if len(own) == 0 {
		gaps = append(gaps, image("the image", d.Env.DockerImage)...)
	}
	for _, r := range d.Roles {
		if len(own) == 0 && r.DockerImage != "" {
			gaps = append(gaps, image("the image of role "+r.Name, r.DockerImage)...)
		}
	}
	sources := d.Data.Sources
	if d.Server != nil {
		if len(own) == 0 {
			gaps = append(gaps, image("the server's image", d.Server.Env.DockerImage)...)
		}
		sources = slices.Concat(sources, d.Server.Models)
	}
	for _, s := range sources {
		gaps = append(gaps, data(s, run.GetData())...)
	}
	gaps = append(gaps, code(run.GetScript(), d)...)
	return append(gaps, environmentGaps(d)...)
}

// noImage is the image of pods on the local cluster.
const noImage = "none"

// programs says that a machine's own programs ran, not those of an image, and which,
// where that is so.
func programs(environment *baiv1.Environment, d *descriptors.Descriptor) []Gap {
	pods := slices.DeleteFunc(slices.Clone(environment.GetPods()),
		func(p *baiv1.PodEnvironment) bool { return p.GetImageDigest() != noImage })
	if len(pods) == 0 {
		if d.Info.ExecutionEngine == "local" {
			return []Gap{{"the programs", "the local engine runs those of its machine, not the image's", ""}}
		}
		return nil
	}
	m, tools := pods[0].GetMachine(), make(map[string]string)
	for _, p := range pods { // of one machine
		maps.Copy(tools, p.GetTools())
	}
	for _, name := range programNames(d) {
		if tools[name] == "" {
			tools[name] = "version not known"
		}
	}
	versions := make([]string, 0, len(tools))
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		versions = append(versions, fmt.Sprintf("%s (%s)", name, tools[name]))
	}
	var on []string
	for _, fact := range []string{m.GetNode(), m.GetOs(), strings.TrimSpace("Linux " + m.GetKernel()), m.GetArchitecture()} {
		if fact != "" {
			on = append(on, fact)
		}
	}
	why := "no image was pulled: the machine's own programs ran, on " + strings.Join(on, ", ")
	if len(versions) > 0 {
		why += ": " + strings.Join(versions, ", ")
	}
	return []Gap{{"the programs", why, "install the same versions, or run the image on a Kubernetes cluster"}}
}

// programNames are the programs that the commands of a descriptor name, without those that
// came with its code or its data.
func programNames(d *descriptors.Descriptor) []string {
	var names []string
	add := func(argv, _ []string, err error) {
		if err == nil && len(argv) > 0 && !strings.Contains(argv[0], "$(") {
			names = append(names, path.Base(argv[0]))
		}
	}
	if len(d.Roles) == 0 {
		add(d.Command())
	}
	for _, r := range d.Roles {
		add(d.ForRole(r).Command())
	}
	if d.Server != nil {
		add(d.Server.Env.Command())
	}
	return names
}

// code is the gap of sent code that is not pinned.
func code(script *baiv1.Script, d *descriptors.Descriptor) []Gap {
	switch {
	case script != nil:
		return []Gap{{
			"the code", fmt.Sprintf("it was sent along, with sha256 %s; this platform keeps it for a while, others have to be sent it",
				script.GetSha256()),
			"keep what was sent: the same files have the same digest",
		}}
	case d.ML != nil && d.ML.Script != nil:
		return []Gap{{"the code", d.ML.Script.Archive + " was sent along and is not part of the descriptor", ""}}
	}
	return nil
}

func origin(o *baiv1.Origination, now OriginState) []Gap {
	switch {
	case o == nil || !now.Checked:
		return nil
	case now.Fault != "":
		return []Gap{{
			"the origin", fmt.Sprintf("%s cannot be read now: %s", o.GetUri(), now.Fault),
			"the run's own copy is used, it is the same as it was",
		}}
	case now.Sha256 != o.GetSha256():
		return []Gap{{"the origin", fmt.Sprintf("%s is another text now (sha256 %.12s, it was %.12s)", o.GetUri(), now.Sha256,
			o.GetSha256()), "the run's own copy is used, it is the same as it was"}}
	}
	return nil
}

func image(subject, name string) []Gap {
	if name == "" || strings.Contains(name, "@sha256:") {
		return nil
	}
	return []Gap{{
		subject, fmt.Sprintf("%s is named by a tag, which may name another image by now", name),
		"name it by its digest: NAME@sha256:…",
	}}
}

// data is the gap of a source that the descriptor does not pin.
func data(s descriptors.Source, fetched []*baiv1.DataSet) []Gap {
	if s.SHA256 != "" || s.MD5 != "" {
		return nil
	}
	g := Gap{Subject: "the data at " + s.Path, Why: fmt.Sprintf("nothing holds %s to what it was", s.Src)}
	atPath := func(d *baiv1.DataSet) bool { return d.GetPath() == s.Path }
	// Roles may have others there.
	i := slices.IndexFunc(fetched, func(d *baiv1.DataSet) bool { return atPath(d) && d.GetSource() == s.Src })
	if i < 0 {
		i = slices.IndexFunc(fetched, atPath)
	}
	if i < 0 || fetched[i].GetSha256() == "" {
		g.Why += ", and what it was is not known"
		return []Gap{g}
	}
	g.Remedy = fmt.Sprintf("add sha256 = %q to the source", fetched[i].GetSha256())
	return []Gap{g}
}

// environmentGaps are the gaps in the program's environment.
func environmentGaps(d *descriptors.Descriptor) []Gap {
	var gaps []Gap
	if names := slices.Concat(slices.Sorted(maps.Keys(d.Env.Secrets)), slices.Sorted(maps.Keys(d.Env.SecretFiles))); len(names) > 0 {
		gaps = append(gaps, Gap{"the secrets", strings.Join(names, ", ") + ": their values are not kept", ""})
	}
	if d.Hardware.InstanceType == "" && len(d.Hardware.NodeSelector) == 0 {
		gaps = append(gaps, Gap{
			"the machine", "any that is large enough may be taken",
			"name hardware.instance_type or hardware.node_selector",
		})
	}
	return gaps
}

// Labels are those that a request gave a run, beyond those of its descriptor.
func Labels(run *baiv1.Run, d *descriptors.Descriptor) map[string]string {
	labels := maps.Clone(run.GetLabels())
	if d == nil {
		return labels
	}
	maps.DeleteFunc(labels, func(k, v string) bool {
		own, ok := d.Info.Labels[k]
		return ok && own == v || k == "task_name" && d.Info.TaskName == v
	})
	return labels
}

// Commands repeat a run: on the platform that has it, and on any other.
func Commands(run *baiv1.Run, labels map[string]string) []string {
	file := run.GetId() + ".toml"
	submit := append([]string{"baictl submit", file}, scriptFlags(run)...)
	submit = append(submit, metadataFlags(run, labels)...)
	return []string{
		"baictl rerun " + run.GetId(),
		fmt.Sprintf("baictl repro %s --descriptor > %s && %s", run.GetId(), file, strings.Join(submit, " ")),
	}
}

// scriptFlags are the flags that send code along, from where the user has it.
func scriptFlags(run *baiv1.Run) []string {
	if run.GetScript() == nil {
		return nil
	}
	return []string{"--script DIR"}
}

// metadataFlags are the flags that give a run its team and its labels.
func metadataFlags(run *baiv1.Run, labels map[string]string) (flags []string) {
	if n := run.GetNamespace(); n != "" && n != "default" {
		flags = append(flags, "--namespace", Quote(n))
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		flags = append(flags, "--label", Quote(k+"="+labels[k]))
	}
	return flags
}

// OriginalCommand is the command by which a run was asked for, as far as it is known.
// Labels are those that its request gave it.
func OriginalCommand(run *baiv1.Run, labels map[string]string) string {
	from := run.GetOrigination().GetUri()
	if from == "" {
		from = run.GetDescriptorFile()
	}
	words, flags := []string{"baictl submit", Quote(from)}, metadataFlags(run, labels)
	if rerun := run.GetLineage().GetRerunOf(); rerun != "" {
		words, flags = []string{"baictl rerun", rerun}, nil // it takes those of the other
	} else {
		words = append(words, scriptFlags(run)...)
	}
	for _, o := range run.GetOverrides() {
		words = append(words, "--set", Quote(o.GetPath()+"="+o.GetValue()))
	}
	if run.GetName() != "" {
		words = append(words, "--name", Quote(run.GetName()))
	}
	return strings.Join(append(words, flags...), " ")
}

// Quote is a word for a shell.
func Quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
