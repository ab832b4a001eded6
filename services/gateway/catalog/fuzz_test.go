package catalog_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/gateway/catalog"
)

// FuzzParse searches for URIs that are parsed wrongly.
func FuzzParse(f *testing.F) {
	for _, uri := range []string{"stored:a", "stored:a@1", "https://h/x", "s3://b/k", "http://h", "file:///x", "https:x", "://", "stored:a@b@2"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		ref, err := catalog.ParseRef(uri, catalog.Settings{})
		switch {
		case err != nil:
		case ref.URL != "" && !strings.HasPrefix(strings.ToLower(uri), "https://") && !strings.HasPrefix(strings.ToLower(uri), "s3://"):
			t.Errorf("%q is read from %q", uri, ref.URL)
		case ref.URL == "" && (!strings.HasPrefix(uri, "stored:") || ref.Name == ""):
			t.Errorf("%q is %+v", uri, ref)
		}
	})
}
