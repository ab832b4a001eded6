package open_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/metrics-pusher/sink/open"
)

// Settings of a sink without values lack at least one that is needed.
func TestEverySinkIsValidatedAndInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for field := range reflect.ValueOf(open.Settings{}).Fields() {
		name := field.Tag.Get("toml")
		var s open.Settings
		reflect.ValueOf(&s).Elem().FieldByIndex(field.Index).Set(reflect.New(field.Type.Elem()))
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "sinks."+name+".") {
			t.Errorf("Validate of sink %s: %v, want a fault of a key of [sinks.%[1]s]: sinks, in open.go, may lack it", name, err)
		}
		if !strings.Contains(string(page), "\n[sinks."+name+"]") {
			t.Errorf("docs/operations.md has no table [sinks.%s]", name)
		}
	}
}
