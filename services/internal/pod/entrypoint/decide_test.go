//go:build linux

package entrypoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAParsersWordsHaveTheValuesOfVariables(t *testing.T) {
	t.Parallel()
	variables := map[string]string{"A": "1", "EMPTY": "", "OTHER": "$(A)"}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	got := expandAll([]string{"plain", "$(A)/x-$(A)", "$(EMPTY)", "$(NONE)$(A)", "$$(A)", "$A $$ $", "$(OTHER)", "$(A", "$("}, lookup)
	want := []string{"plain", "1/x-1", "", "$(NONE)1", "$(A)", "$A $$ $", "$(A)", "$(A", "$("}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
