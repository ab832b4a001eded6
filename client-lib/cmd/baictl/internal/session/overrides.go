package session

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/descriptors/values"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// OverrideFlags are the flags that put values in place of a descriptor's.
type OverrideFlags struct{ set, files []string }

// Register adds the flags to a verb.
func (f *OverrideFlags) Register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringArrayVar(&f.set, "set", nil,
		"put a value in place of one of the descriptor's: `PATH=VALUE`, as hardware.gpus=4; PATH= takes the key away; may be repeated")
	flags.StringArrayVar(&f.files, "values", nil,
		"put the values of a `FILE` in place of the descriptor's, below those of --set: TOML with the tables of a descriptor; may be repeated, later files win")
}

// Overrides reads the values of --values and --set. It prints the faults of the files, and
// returns their number as a FaultsError. From then on PrintFaults and Locate know the places
// of the values in their files.
func (s *Session) Overrides(cmd *cobra.Command, f OverrideFlags) ([]*baiv1.Override, error) {
	set, err := input.Overrides(f.set)
	if err != nil {
		return nil, UsageErrorf(cmd, "%s", err)
	}
	var all []values.Value
	for _, file := range f.files {
		doc, faults, err := s.Reader("").Read(cmd.Context(), file)
		if err != nil {
			return nil, err
		}
		if len(faults) > 0 {
			return nil, s.FailWithFaults(faults)
		}
		upper, bad := values.Read(doc.Name, doc.Text)
		if len(bad) > 0 {
			return nil, s.FailWithFaults(input.Faults(bad, false))
		}
		all = values.Merge(all, upper)
	}
	s.values = slices.DeleteFunc(all, func(v values.Value) bool {
		return slices.ContainsFunc(set, func(o *baiv1.Override) bool { return o.GetPath() == v.Path })
	})
	var below []*baiv1.Override
	for _, o := range values.Overrides(s.values) {
		below = append(below, &baiv1.Override{Path: o.Path, Value: o.Value})
	}
	return append(below, set...), nil
}

// Locate gives faults of values of --values their places in the files.
func (s *Session) Locate(faults []*baiv1.Fault) []*baiv1.Fault {
	if len(s.values) == 0 {
		return faults
	}
	all := make(parser.Faults, len(faults))
	for i, f := range faults {
		all[i] = values.Locate(parser.Fault{
			File: f.GetFile(), Line: int(f.GetLine()), Column: int(f.GetColumn()), Path: f.GetPath(),
			Code: f.GetCode(), Message: f.GetMessage(), Remedy: f.GetRemedy(), Warning: f.GetWarning(),
		}, s.values)
	}
	return input.Faults(all, false)
}
