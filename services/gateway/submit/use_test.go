package submit_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/submit"
)

func TestARunKeepsAllThatItsDescriptorSaysForPeople(t *testing.T) {
	text, err := os.ReadFile("../../../descriptors/examples/every-key.toml")
	if err != nil {
		t.Fatal(err)
	}
	d, faults := parser.Parse("every-key.toml", text)
	if d == nil {
		t.Fatal(faults)
	}
	for field, value := range reflect.ValueOf(submit.UseOf(d)).Fields() {
		if value.IsZero() {
			t.Errorf("useOf, in decide.go, leaves out %s", field.Name)
		}
	}
}
