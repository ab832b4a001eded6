package executable

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// schemaObject is an object in the schema.
type schemaObject struct {
	Properties map[string]json.RawMessage `json:"properties"`
}

func TestTheSchemaHasTheKeysOfTheProtocol(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]schemaObject `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var failure struct {
		Error schemaObject `json:"error"`
	}
	properties, err := json.Marshal(schema.Defs["answer"].Properties)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(properties, &failure); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		has schemaObject
		is  any
	}{
		"request": {schema.Defs["request"], request{}}, "answer": {schema.Defs["answer"], answer{}}, "plan": {schema.Defs["plan"], commandPlan{}},
		"state": {schema.Defs["state"], state{}}, "error": {failure.Error, fault{}},
	} {
		var want []string
		for f := range reflect.TypeOf(tt.is).Fields() {
			if !f.IsExported() { // it does not travel
				continue
			}
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			want = append(want, key)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(tt.has.Properties))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
