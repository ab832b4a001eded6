package input

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/suite"
	"github.com/benchmark-ai/bai/descriptors/sweep"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// CheckResult holds the diagnostics of a document.
type CheckResult struct {
	Descriptor *descriptors.Descriptor // nil where a fault is an error
	Effective  []byte                  // the text with the overrides in it; nil where they cannot be put in
	Faults     []*baiv1.Fault
}

// Plan is that of a suite, or of the sweep of a document; nil if it has none, or a fault that is an error.
func (c CheckResult) Plan() *sweep.Plan {
	if c.Descriptor == nil || c.Descriptor.Sweep == nil {
		return nil
	}
	plan, _ := suite.ReadPlan(parser.Parser{Accepted: true}, "", c.Effective) // the faults are known
	return plan
}

// Check returns all that is wrong with a document that has values put in place
// of its own. A strict one takes warnings for errors.
func (d Document) Check(set []*baiv1.Override, strict bool) CheckResult {
	overrides := make([]parser.Override, len(set))
	for i, o := range set {
		overrides[i] = parser.Override{Path: o.GetPath(), Value: o.GetValue()}
	}
	parsed, effective, faults := suite.ParseWith(parser.Parser{}, d.Name, d.Text, overrides)
	return CheckResult{Descriptor: parsed, Effective: effective, Faults: Faults(faults, strict)}
}

// Faults returns faults as a platform sends them. A strict one takes warnings for errors.
func Faults(faults parser.Faults, strict bool) []*baiv1.Fault {
	var all []*baiv1.Fault
	for _, f := range faults {
		all = append(all, &baiv1.Fault{
			File: f.File, Line: int32(f.Line), Column: int32(f.Column), Path: f.Path,
			Code: f.Code, Message: f.Message, Remedy: f.Remedy, Warning: f.Warning && !strict,
		})
	}
	return all
}

// SizeFaults returns the faults of a document that no platform would take.
func (d Document) SizeFaults() []*baiv1.Fault {
	if len(d.Text) <= parser.MaxSize || suite.Is(d.Text) {
		return nil
	}
	return d.Check(nil, false).Faults
}

// CountErrors counts the faults that are not warnings.
func CountErrors(faults []*baiv1.Fault) int {
	n := 0
	for _, f := range faults {
		if !f.GetWarning() {
			n++
		}
	}
	return n
}

// Overrides reads PATH=VALUE. The path may hold "=" in quotes.
func Overrides(all []string) ([]*baiv1.Override, error) {
	var set []*baiv1.Override
	for _, one := range all {
		i := equals(one)
		if i <= 0 {
			return nil, fmt.Errorf("--set %q: want PATH=VALUE, as hardware.gpus=4", one)
		}
		set = append(set, &baiv1.Override{Path: strings.TrimSpace(one[:i]), Value: one[i+1:]})
	}
	return set, nil
}

// equals is the offset of the first "=" outside of quotes; -1 for none.
func equals(text string) int {
	var quote rune
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote == '"' && r == '\\':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '=':
			return i
		}
	}
	return -1
}
