package transpile

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Images returns what is to be asked of registries before a run is planned: of each
// role without a command, what its image runs by itself. The local cluster runs no
// images. Where images are never pulled, no registry knows which of them a node
// has.
func Images(d *descriptors.Descriptor, s Settings) []cluster.ImageQuery {
	if s.OneMachine || s.NoRegistry || s.PullPolicy == string(corev1.PullNever) || d.Hardware.Strategy == descriptors.MPI {
		return nil
	}
	var all []cluster.ImageQuery
	ask := func(e descriptors.Env, h descriptors.Hardware) {
		q := cluster.ImageQuery{Name: e.DockerImage, Arch: h.NodeSelector[corev1.LabelArchStable], Scope: s.scope(), Secrets: slices.Clone(s.PullSecrets)}
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

// image returns the answer about an image, of which one that was not read has no
// digest.
func (in Input) image(name string) cluster.Image {
	for _, i := range in.Images {
		if i.Name == name && i.UnreadReason == "" {
			return i
		}
	}
	return cluster.Image{}
}

// pinnedImage is the image that an answer is about, whatever becomes of its tag.
func pinnedImage(i cluster.Image) string {
	if strings.Contains(i.Name, "@") {
		return i.Name
	}
	return i.Name + "@" + i.Digest
}

// escapeDollars has Kubernetes hand on words as they are: in those of an image it puts no
// variables.
func escapeDollars(words []string) []string {
	var escaped []string
	for _, w := range words {
		escaped = append(escaped, strings.ReplaceAll(w, "$", "$$"))
	}
	return escaped
}
