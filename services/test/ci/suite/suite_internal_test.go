package suite

import (
	"strings"
	"testing"
)

func TestAListThatCannotBeCarriedOutIsRefused(t *testing.T) {
	t.Parallel()
	const good = "[[suite]]\nname = %q\nneeds = %q\npackages = [\"a\"]\nbudget = \"1m\"\nshort = \"all\"\n"
	one := func(name, needs string) string {
		return strings.Replace(strings.Replace(good, "%q", `"`+name+`"`, 1), "%q", `"`+needs+`"`, 1)
	}
	for name, tt := range map[string]struct{ text, says string }{
		"suites of every kind":        {one("a", Servers) + one("b", Cluster) + "cluster = true\n" + one("c", ""), ""},
		"the cluster in another lane": {one("b", Cluster), "has cluster = true"},
		"two suites of one name":      {one("a", "") + one("a", ""), "a name of its own"},
		"a key that nobody knows":     {one("a", "") + "sort = 1\n", "unknown key suite.sort"},
		"something that there is not": {one("a", "moon"), `needs = "moon"`},
	} {
		_, err := parse([]byte(tt.text))
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v, want %q", name, err, tt.says)
		}
	}
}
