package parser_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

func TestAnEngineIsThatOfThePlatformWhereItIsKnown(t *testing.T) {
	t.Parallel()
	here := []string{"default", "local"}
	for name, tt := range map[string]struct {
		parser parser.Parser
		engine string
		want   string // of the one fault; empty for none
	}{
		"a file alone may name what a platform can have": {parser.Parser{}, "kubernetes", ""},
		"a file alone is warned of another": {
			parser.Parser{}, "kubernets", "BAI0105 warning: a platform without an engine \"kubernets\" refuses the run (did you mean \"kubernetes\"?)",
		},
		"the engine that is here": {parser.Parser{Engines: here}, "local", ""},
		"an engine that is not": {
			parser.Parser{Engines: here}, "kubernetes", "BAI0029 this platform has no engine \"kubernetes\" (use one of default, local, or leave it out)",
		},
		"what was accepted is not judged again": {parser.Parser{Engines: here, Accepted: true}, "kubernetes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(completeDescriptor("[hardware]\ncpus = 1"), "[info]", "[info]\nexecution_engine = \""+tt.engine+"\"", 1)
			_, faults := tt.parser.Parse("f.toml", []byte(text))
			got := ""
			for _, f := range faults {
				_, message, _ := strings.Cut(f.String(), "info.execution_engine: ")
				got += f.Code + " " + message
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
