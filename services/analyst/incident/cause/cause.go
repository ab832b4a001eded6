// Package cause says what an incident comes from: which of what is measured, how and where
// differs between the points before and after it. It is pure.
package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/points"
)

// A subject is one thing that may differ between two runs.
type subject struct {
	name  string
	class incident.Cause
	of    func(store.PointRun) (key, text string) // an empty key is not known
}

// subjects are what may differ, in the order in which they decide: the first one that differs
// gives the class.
//
// Other machines make numbers incomparable, and other data do: whatever else differs cannot be
// told from them. The descriptor comes after the image, because a new version has its image in
// the descriptor, and so the descriptor differs, too.
func subjects() []subject {
	return []subject{
		{"machine", incident.CauseEnvironment, func(p store.PointRun) (string, string) { return p.Machine, cmp.Or(p.Hardware, p.Machine) }},
		{"data", incident.CauseMethod, func(p store.PointRun) (string, string) { return p.Data, digest(p.Data) }},
		{"version", incident.CauseRegression, func(p store.PointRun) (string, string) { return p.Version, p.Version }},
		{"image", incident.CauseRegression, func(p store.PointRun) (string, string) { return imageKey(p), points.ImageText(p) }},
		{"code", incident.CauseRegression, func(p store.PointRun) (string, string) { return p.Code, digest(p.Code) }},
		{"descriptor", incident.CauseMethod, func(p store.PointRun) (string, string) { return p.Descriptor, digest(p.Descriptor) }},
		{"platform", incident.CauseMethod, func(p store.PointRun) (string, string) { return p.Platform, p.Platform }},
	}
}

func digest(sum string) string { return points.DigestText("sha256", sum) }

// imageKey is that of the images that ran, or of the name where no digest is known.
func imageKey(p store.PointRun) string {
	return cmp.Or(strings.Join(p.Images, " "), p.Image)
}

// Of returns the class of a change between the newest point that is surely before it and the
// first one that is surely after it, and the reasons as sentences.
//
// The class is that of the first subject that differs, in the order machine (environment), data
// (method), version, image, code (regression), descriptor, platform (method). Where none of them
// differs, and the nodes are others, it is environment. Where nothing differs that is known, it
// is environment, too, if the digests of the images and of the descriptor are known, and
// otherwise insufficient. What is known of one point only does not differ.
func Of(before, after store.PointRun) (incident.Cause, []string) {
	var class incident.Cause
	var reasons []string
	for _, s := range subjects() {
		old, oldText := s.of(before)
		next, nextText := s.of(after)
		if s.name == "image" && (len(before.Images) == 0) != (len(after.Images) == 0) {
			old, next = before.Image, after.Image
		}
		if old == "" || next == "" || old == next {
			continue
		}
		class = cmp.Or(class, s.class)
		reasons = append(reasons, fmt.Sprintf("the %s changed from %s to %s", s.name, oldText, nextText))
	}
	if class != "" {
		return class, append(reasons, conclusion(class))
	}
	return unexplained(before, after)
}

// conclusion says what follows from a class.
func conclusion(c incident.Cause) string {
	switch c {
	case incident.CauseRegression:
		return "what is measured has changed, on equal machines and with equal data"
	case incident.CauseMethod:
		return "how it is measured has changed: the values before and after it may not compare"
	case incident.CauseEnvironment:
		return "where it is measured has changed"
	case incident.CauseNoise, incident.CauseInsufficient:
	}
	return ""
}

// unexplained returns the class of a change across which no subject differs.
func unexplained(before, after store.PointRun) (incident.Cause, []string) {
	switch {
	case len(before.Nodes) > 0 && len(after.Nodes) > 0 &&
		!slices.ContainsFunc(after.Nodes, func(n string) bool { return slices.Contains(before.Nodes, n) }):
		return incident.CauseEnvironment, []string{
			fmt.Sprintf("the nodes changed from %s to %s", strings.Join(before.Nodes, ", "), strings.Join(after.Nodes, ", ")),
			conclusion(incident.CauseEnvironment),
		}
	case len(before.Images) > 0 && len(after.Images) > 0 && before.Descriptor != "" && after.Descriptor != "":
		return incident.CauseEnvironment,
			[]string{
				"version, image, code, data, descriptor and platform are the same before and after it",
				conclusion(incident.CauseEnvironment),
			}
	}
	return incident.CauseInsufficient,
		[]string{"it is not known whether the same was measured: the runs have no label version and no digests of their images"}
}
