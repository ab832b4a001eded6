package transpile

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Images returns the questions to registries before a run is planned: for each role
// without a command, the entrypoint of its image. There are none for the local cluster,
// which runs no images, and none if images are never pulled, since then no registry
// knows which image a node has.
func Images(d *descriptors.Descriptor, s Settings) []cluster.ImageQuery {
	if s.OneMachine || s.NoRegistry || s.PullPolicy == string(corev1.PullNever) || d.Hardware.Strategy == descriptors.MPI {
		return nil
	}
	var all []cluster.ImageQuery
	ask := func(e descriptors.Env, h descriptors.Hardware) {
		q := cluster.ImageQuery{Name: e.DockerImage, Arch: cmp.Or(s.NodeSelector[corev1.LabelArchStable], h.NodeSelector[corev1.LabelArchStable]), Scope: s.scope(), Secrets: slices.Clone(s.PullSecrets)}
		if e.ImagePullSecret != "" {
			q.Secrets = append([]string{e.ImagePullSecret}, q.Secrets...)
		}
		all = append(all, q)
	}
	if argv, _, err := d.Command(); err == nil && len(argv) == 0 {
		ask(d.Env, d.Hardware)
	}
	if d.Server == nil {
		return all
	}
	if argv, _, err := d.Server.Env.Command(); err == nil && len(argv) == 0 {
		ask(d.Server.Env.Env, d.Server.Hardware)
	}
	return all
}

// image returns the answer about an image, or the zero value if there is no answer.
func (in Input) image(name string) cluster.Image {
	for _, i := range in.Images {
		if i.Name == name && i.UnreadReason == "" {
			return i
		}
	}
	return cluster.Image{}
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
