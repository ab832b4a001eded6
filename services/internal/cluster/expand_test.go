package cluster_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

func TestExpandIsWhatKubernetesDoes(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"A": "a", "B": "$(A)", "EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	for in, want := range map[string]string{
		"":                "",
		"plain":           "plain",
		"$(A)":            "a",
		"x$(A)y$(A)":      "xaya",
		"$(B)":            "$(A)",
		"$(EMPTY)":        "",
		"$(NONE)":         "$(NONE)",
		"$$(A)":           "$(A)",
		"$$$(A)":          "$a",
		"$$":              "$",
		"$":               "$",
		"a$":              "a$",
		"$A":              "$A",
		"$(A":             "$(A",
		"$(":              "$(",
		"$()":             "$()",
		"${A} `x` \\$(A)": "${A} `x` \\a",
		"$é":              "$é",
	} {
		if got := cluster.Expand(in, lookup); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzWithoutVariablesOnlyPairsOfDollarsBecomeOne(f *testing.F) {
	f.Add("a$(B)c")
	f.Fuzz(func(t *testing.T, s string) {
		none := func(string) (string, bool) { return "", false }
		got := cluster.Expand(s, none)
		if strings.ReplaceAll(got, "$", "") != strings.ReplaceAll(s, "$", "") {
			t.Errorf("Expand(%q) = %q changes more than dollars", s, got)
		}
		if !strings.Contains(s, "$$") && got != s {
			t.Errorf("Expand(%q) = %q, and there is no pair of dollars", s, got)
		}
	})
}
