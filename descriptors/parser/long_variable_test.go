package parser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

func TestAVariableIsAsLongAsTheKernelTakesIt(t *testing.T) {
	t.Parallel()
	const most = 128<<10 - 1 // of NAME=VALUE
	accepted := parser.Parser{Accepted: true}
	tests := map[string]struct {
		parser parser.Parser
		table  string
		size   int // of NAME=VALUE
		fault  string
	}{
		"as long as may be":                    {size: most, table: "env"},
		"a byte longer":                        {size: most + 1, table: "env", fault: "env.vars.LONG"},
		"200 KB":                               {size: 200_000, table: "env", fault: "env.vars.LONG"},
		"that of a server":                     {size: 200_000, table: "server.env", fault: "server.env.vars.LONG"},
		"what was accepted is not judged anew": {parser: accepted, size: 200_000, table: "env"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf("[%s.vars]\nLONG = %q\n", tt.table, strings.Repeat("x", tt.size-len("LONG=")))
			_, faults := tt.parser.Parse("f.toml", []byte(minimal(nil)+text))
			if got := tooLong(faults); got != tt.fault {
				t.Errorf("%q is too long, want %q", got, tt.fault)
			}
		})
	}
}

// tooLong returns the variable that is too long, by the faults of a descriptor.
func tooLong(faults parser.Faults) string {
	i := slices.IndexFunc(faults, func(f parser.Fault) bool {
		return strings.Contains(f.Message, "the kernel takes 131071") && f.Remedy != ""
	})
	if i < 0 {
		return ""
	}
	return faults[i].Path
}
