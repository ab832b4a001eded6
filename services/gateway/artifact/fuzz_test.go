package artifact_test

import (
	"path"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
)

// FuzzCheckName searches for valid names whose paths lead out of the run.
func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"1/benchmark-0/a", "1/benchmark-0/../a", "1/benchmark-0/a//b", "01/x-1/ü", "", "1/a-0/\n:\\"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if artifact.CheckName(name) != nil {
			return
		}
		if path.Clean("/"+name) != "/"+name || strings.Count(name, "/") < 2 || len(name) > 4160 || strings.ContainsRune(name, 0) {
			t.Errorf("%q is taken", name)
		}
	})
}
