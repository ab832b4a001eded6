package transpile

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/plan/refusal"
	"github.com/benchmark-ai/bai/services/plan/roles"
)

// Images returns the questions to registries before a run is planned: for each role
// without a command, the entrypoint of its image. There are none for the local cluster,
// which runs no images, and none about an image that is never pulled, since then no
// registry knows which image a node has.
func Images(d *descriptors.Descriptor, s Settings) []cluster.ImageQuery {
	var all []cluster.ImageQuery
	for _, i := range entrypointImages(d, s) {
		if i.asked {
			all = append(all, i.query)
		}
	}
	return all
}

// entrypointImage is an image whose own entrypoint is run, and whether its registry is asked
// for it.
type entrypointImage struct {
	query cluster.ImageQuery
	asked bool
}

func entrypointImages(d *descriptors.Descriptor, s Settings) []entrypointImage {
	if s.OneMachine || d.Hardware.Strategy == descriptors.MPI || d.Hardware.Strategy == descriptors.FromManifest {
		return nil
	}
	var all []entrypointImage
	add := func(e descriptors.Env, h descriptors.Hardware) {
		arch := cmp.Or(s.NodeSelector[corev1.LabelArchStable], h.NodeSelector[corev1.LabelArchStable])
		q := cluster.ImageQuery{Name: e.DockerImage, Arch: arch, Scope: s.scope(), Secrets: slices.Clone(s.PullSecrets)}
		if e.ImagePullSecret != "" {
			q.Secrets = append([]string{e.ImagePullSecret}, q.Secrets...)
		}
		all = append(all, entrypointImage{q, !s.NoRegistry && s.pullPolicy(e) != corev1.PullNever})
	}
	for _, one := range descriptorsOfPods(d) {
		if argv, _, err := one.Command(); err == nil && len(argv) == 0 {
			add(one.Env, one.Hardware)
		}
	}
	if d.Server == nil || d.Hardware.Strategy == descriptors.OwnRoles {
		return all
	}
	if argv, _, err := d.Server.Env.Command(); err == nil && len(argv) == 0 {
		add(d.Server.Env.Env, d.Server.Hardware)
	}
	return all
}

// descriptorsOfPods returns the descriptor of the measured pod, or those of the roles of
// [[roles]].
func descriptorsOfPods(d *descriptors.Descriptor) []*descriptors.Descriptor {
	if d.Hardware.Strategy != descriptors.OwnRoles {
		return []*descriptors.Descriptor{d}
	}
	var all []*descriptors.Descriptor
	for _, r := range d.Roles {
		all = append(all, d.ForRole(r))
	}
	return all
}

// checkParsers refuses parsers of a role whose image is run as it is, because nothing reads
// its output in the container then. A manifest has no answers of registries.
func checkParsers(in Input, r roles.Role, s Settings) error {
	if in.Descriptor.Hardware.Strategy == descriptors.FromManifest { // whose containers may have commands of their own
		return nil
	}
	if len(r.Parsers) == 0 || len(r.Command) > 0 || r.Image.Digest != "" {
		return nil
	}
	image := r.Env.DockerImage
	asked := !s.NoRegistry && s.pullPolicy(r.Env) != corev1.PullNever
	if asked && !slices.ContainsFunc(in.Images, func(i cluster.Image) bool { return i.Name == image }) {
		return nil
	}
	return refusal.Descriptor("output.parsers read the output of a command, and no registry tells the entrypoint of image %q: write the command into the descriptor", image)
}

// pullPolicy returns the policy for the image of an environment: that of the settings, or
// of the descriptor, which has no other if the settings have one.
func (s Settings) pullPolicy(e descriptors.Env) corev1.PullPolicy {
	return corev1.PullPolicy(cmp.Or(s.PullPolicy, e.PullPolicy.Kubernetes()))
}

// checkPullPolicy refuses an environment with another policy than the settings.
func (s Settings) checkPullPolicy(e descriptors.Env) error {
	own := e.PullPolicy.Kubernetes()
	if own == "" || s.OneMachine || string(s.pullPolicy(e)) == own {
		return nil
	}
	return refusal.Descriptor("env.pull_policy is %q, and this platform pulls all images by the policy %s", e.PullPolicy, s.PullPolicy)
}

// pinnedImage returns the name of the image with the digest of an answer, so that a
// later change of the tag does not matter.
func pinnedImage(i cluster.Image) string {
	if strings.Contains(i.Name, "@") {
		return i.Name
	}
	return i.Name + "@" + i.Digest
}

// escapeDollars escapes words so that Kubernetes does not expand variables in them. The
// words of an image have no variables of Kubernetes.
func escapeDollars(words []string) []string {
	var escaped []string
	for _, w := range words {
		escaped = append(escaped, strings.ReplaceAll(w, "$", "$$"))
	}
	return escaped
}
