package points

import (
	"cmp"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// A Span is the points of a series from First to Last, which ran on equal machines.
type Span struct{ First, Last int }

// Spans splits points where the fingerprint of their machines changes. A point whose
// machine is not known, which is the empty text, belongs to the span before it.
func Spans(machines []string) []Span {
	var all []Span
	machine := ""
	for i, next := range machines {
		if len(all) == 0 || next != "" && machine != "" && next != machine {
			all = append(all, Span{First: i})
		}
		all[len(all)-1].Last = i
		machine = cmp.Or(next, machine)
	}
	return all
}

// DigestText returns the beginning of a digest, which is enough for people.
func DigestText(kind, digest string) string { return kind + ":" + digest[:min(12, len(digest))] }

// ImageText returns the image of a run as its descriptor names it, with the digests that the
// cluster ran.
func ImageText(p store.PointRun) string {
	texts := []string{p.Image}
	for _, image := range p.Images {
		kind, digest, _ := strings.Cut(image, ":")
		texts = append(texts, DigestText(kind, digest))
	}
	return strings.TrimSpace(strings.Join(slices.Compact(texts), " "))
}
