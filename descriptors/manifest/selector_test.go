package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/manifest"
)

func TestASelectorIsReadAsKubectlReadsIt(t *testing.T) {
	labels := map[string]string{"app": "x", "role": "b", "example.com/of": "bai-r1-1", "empty": ""}
	for text, row := range map[string]struct {
		written string
		matches bool
	}{
		"app=x":                         {"app=x", true},
		" app == x , role in (a, b) ":   {"app=x,role in (a,b)", true},
		"role in(a)":                    {"role in (a)", false},
		"role notin (a,c),app!=y":       {"role notin (a,c),app!=y", true},
		"none!=y,none notin (a)":        {"none!=y,none notin (a)", true},
		"app,!none":                     {"app,!none", true},
		"!app":                          {"!app", false},
		"none":                          {"none", false},
		"none=":                         {"none=", false},
		"empty=":                        {"empty=", true},
		"in=a":                          {"in=a", false},
		"example.com/of=$(BAI_OBJECTS)": {"example.com/of=bai-r1-1", true},
		"example.com/of in ($(BAI_OBJECTS),other)": {"example.com/of in (bai-r1-1,other)", true},
	} {
		s, err := manifest.ParseSelector(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		s = s.With("bai-r1-1")
		if s.String() != row.written || s.Matches(labels) != row.matches {
			t.Errorf("%q: %q, %t", text, s, s.Matches(labels))
		}
	}
}

func TestASelectorThatNoLabelMeetsIsRefused(t *testing.T) {
	for _, text := range []string{
		"", ",", "app=x,", "=x", "app=a b", "app in a", "app in (a", "app in (a b)", "app>1", "a=b=c", "A_/b=c", "/b=c", "b/=c", "-a=b", "a=-b", "!", "!a=b", "a.=b",
		"a=" + strings.Repeat("x", 64), "a=$(OTHER)", "a=b-" + manifest.ObjectsVariable + strings.Repeat("x", 30), strings.Repeat("a", 64) + "=b",
	} {
		if s, err := manifest.ParseSelector(text); err == nil {
			t.Errorf("%q: %q", text, s)
		}
	}
}

func TestASelectorIsOfARunIfALabelHasToHaveItsName(t *testing.T) {
	for text, want := range map[string][]string{
		"a=$(BAI_OBJECTS)": {"bai-r1-1"},
		"app=x,a in ($(BAI_OBJECTS)-b,c.$(BAI_OBJECTS))": {"bai-r1-1-b", "c.bai-r1-1"},
		"app=x":                    nil,
		"a in ($(BAI_OBJECTS),x)":  nil,
		"a!=$(BAI_OBJECTS)":        nil,
		"a notin ($(BAI_OBJECTS))": nil,
		"a,!b":                     nil,
	} {
		s, err := manifest.ParseSelector(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, s.With("bai-r1-1").Named("bai-r1-1")); diff != "" || (s.Named(manifest.ObjectsVariable) == nil) != (want == nil) {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func FuzzSelectorsAreWrittenAsTheyAreRead(f *testing.F) {
	f.Add("app=x,role in (a,b),!old")
	f.Add("a notin ($(BAI_OBJECTS)),b!=c")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := manifest.ParseSelector(text)
		if err != nil {
			return
		}
		again, err := manifest.ParseSelector(s.String())
		if err != nil || again.String() != s.String() {
			t.Errorf("%q: %q, then %q, %v", text, s, again, err)
		}
	})
}
