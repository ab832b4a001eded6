package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/points"
)

// Subjects of differences, in the order in which they are listed.
const (
	subjectMachine    = "machine"
	subjectImage      = "image"
	subjectData       = "data"
	subjectCode       = "code"
	subjectDescriptor = "descriptor"
	subjectPlatform   = "platform"
)

// A Difference is one thing that differs between two groups of runs.
type Difference struct {
	Subject      string
	Old, New     []string // what it is on either side, the most frequent first
	Incomparable bool     // numbers do not compare across it
}

// attributes are what may differ between runs, by subject. A subject without a value is not
// known.
type attributes map[string]attribute

// attribute is one value: equal ones have one key.
type attribute struct{ key, text string }

// attributesOf returns the attributes of a run.
func attributesOf(m member) attributes {
	all, p := attributes{}, m.points
	if p.Machine != "" {
		all[subjectMachine] = attribute{p.Machine, fmt.Sprintf("%s (%s)", p.Hardware, p.Machine[:8])}
	}
	all.set(subjectImage, points.ImageText(p.PointRun))
	all.set(subjectPlatform, p.Platform)
	all.set(subjectDescriptor, points.DigestText("sha256", p.Descriptor))
	data, code := dataTexts(m.run.Data)
	all.set(subjectData, data)
	all.set(subjectCode, code)
	return all
}

func (a attributes) set(subject, text string) {
	if text != "" {
		a[subject] = attribute{text, text}
	}
}

// dataTexts describes the data sets of a run, and the code that was sent along.
func dataTexts(all []event.Data) (data, code string) {
	var sets []string
	for _, d := range all {
		text := points.DigestText("sha256", d.SHA256)
		if strings.HasPrefix(d.Source, pod.CodeScheme) {
			code = text
			continue
		}
		sets = append(sets, d.Path+" "+text)
	}
	slices.Sort(sets)
	return strings.Join(sets, ", "), code
}

// differences returns what differs between two groups of runs: the values that each of the
// groups has of a subject are not the same ones.
func differences(base, other []attributes) []Difference {
	var all []Difference
	for _, subject := range []string{subjectMachine, subjectImage, subjectData, subjectCode, subjectDescriptor, subjectPlatform} {
		before, after := frequencies(base, subject), frequencies(other, subject)
		if sameKeys(before, after) {
			continue
		}
		all = append(all, Difference{
			Subject: subject, Old: texts(before), New: texts(after),
			Incomparable: subject == subjectMachine && len(before) > 0 && len(after) > 0,
		})
	}
	return all
}

// frequency is how many runs have an attribute.
type frequency struct {
	attribute

	runs int
}

// frequencies counts the values of a subject, the most frequent first.
func frequencies(of []attributes, subject string) []frequency {
	var all []frequency
	for _, a := range of {
		value, known := a[subject]
		if !known {
			continue
		}
		i := slices.IndexFunc(all, func(f frequency) bool { return f.key == value.key })
		if i < 0 {
			i, all = len(all), append(all, frequency{attribute: value})
		}
		all[i].runs++
	}
	slices.SortStableFunc(all, func(a, b frequency) int { return cmp.Or(cmp.Compare(b.runs, a.runs), cmp.Compare(a.key, b.key)) })
	return all
}

func sameKeys(a, b []frequency) bool {
	if len(a) != len(b) {
		return false
	}
	return !slices.ContainsFunc(a, func(f frequency) bool {
		return !slices.ContainsFunc(b, func(g frequency) bool { return g.key == f.key })
	})
}

// maxTexts is how many values of a subject are listed.
const maxTexts = 5

// texts returns the values for people.
func texts(all []frequency) []string {
	var out []string
	for _, f := range all[:min(maxTexts, len(all))] {
		out = append(out, f.text)
	}
	return out
}
