package suite

import (
	"cmp"
	"maps"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/internal/types"
)

// table is the table [suite]. Keys that [sweep] and [info] have too mean the same here.
type table struct {
	Name        string               `toml:"name" need:"yes" kind:"name"`
	Description string               `toml:"description"`
	Repetitions int                  `toml:"repetitions" default:"1" kind:"repetitions"`
	Warmup      int                  `toml:"warmup" default:"0" kind:"warm-up runs"`
	Order       descriptors.Order    `toml:"order" default:"sequential" one:"sequential random interleaved"`
	Seed        int64                `toml:"seed" kind:"seed"`
	MaxParallel int                  `toml:"max_parallel" default:"0" kind:"parallel runs"`
	OnFailure   string               `toml:"on_failure" default:"continue" one:"continue stop"`
	Scheduling  string               `toml:"scheduling" default:"single_run" kind:"schedule"`
	Timezone    string               `toml:"timezone" default:"UTC" kind:"time zone"`
	Schedule    descriptors.Schedule `toml:"schedule"`
	Labels      map[string]string    `toml:"labels" kind:"labels"`
	Notify      []string             `toml:"notify" kind:"receivers"`
	Entries     []entry              `toml:"entries" need:"yes"`
	Descriptors []text               `toml:"descriptors"`
}

// entry is one of [[suite.entries]].
type entry struct {
	Name        string `toml:"name" need:"yes" kind:"name"`
	Descriptor  string `toml:"descriptor" need:"yes"`
	Repetitions int    `toml:"repetitions" kind:"repetitions"`
	Warmup      int    `toml:"warmup" kind:"warm-up runs"`
	Values      laid   `toml:"values" kind:"values"`
}

// laid is a table of values, as package values reads it.
type laid struct{ table *syntax.Node }

// text is one of [[suite.descriptors]]: the text of a descriptor that entries name.
type text struct {
	Name string `toml:"name" need:"yes"` // as the entries have it
	File string `toml:"file"`            // where it was read; empty: at its name
	Text string `toml:"text" need:"yes"`
}

// file is where the text was read.
func (t text) file() string { return cmp.Or(t.File, t.Name) }

func valueTypes() decode.ValueTypes {
	all := types.All()
	maps.Copy(all, decode.ValueTypes{
		"values": {Type: "table", Read: func(v decode.Value) any {
			if v.Kind != syntax.Table {
				v.WrongType(syntax.Table.String())
				return nil
			}
			return laid{v.Node}
		}},
	})
	return all
}
