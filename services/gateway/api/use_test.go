package api_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway/api"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestARunIsAnsweredWithAllThatItsDescriptorSaysForPeople(t *testing.T) {
	var run store.Run
	use := reflect.ValueOf(&run.Use).Elem()
	for field, value := range use.Fields() {
		switch value.Kind() { //nolint:exhaustive // a field of another kind is a reason to fail
		case reflect.String:
			value.SetString("x")
		case reflect.Slice:
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		default:
			t.Fatalf("this test has no value for %s", field.Name)
		}
	}
	got := api.RunOf(run).ProtoReflect()
	for field := range use.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if f := got.Descriptor().Fields().ByName(protoreflect.Name(name)); f == nil || !got.Has(f) {
			t.Errorf("%s is lacking: Run of run.proto needs the field %s, and runOf in convert.go its value", field.Name, name)
		}
	}
}

func TestARunIsFoundByTheFrameworkAndTheDataThatItsDescriptorNames(t *testing.T) {
	w := newFixture(t, options{})
	other := w.submit(nil)
	id := w.submit(func(req *baiv1.SubmitRunRequest) {
		req.DescriptorToml = []byte(valid + "framework = \"PaddlePaddle\"\nframework_version = \"2.6 rc1\"\n" +
			"[[data.sources]]\nsrc = \"https://example.org/a\"\npath = \"/a\"\nid = \"imagenet\"\n[[data.sources]]\nsrc = \"https://example.org/b\"\npath = \"/b\"\n")
	})
	for _, run := range []string{other, id} { // both runs are projected
		stream, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
	if err != nil {
		t.Fatal(err)
	}
	if r := got.GetRun(); r.GetFramework() != "PaddlePaddle" || r.GetFrameworkVersion() != "2.6 rc1" || !cmp.Equal(r.GetDataIds(), []string{"imagenet"}) {
		t.Errorf("the run says framework %q, version %q, data %q", r.GetFramework(), r.GetFrameworkVersion(), r.GetDataIds())
	}
	for name, tt := range map[string]struct {
		req  *baiv1.ListRunsRequest
		want []string
	}{
		"by its framework":                {&baiv1.ListRunsRequest{Framework: "PaddlePaddle"}, []string{id}},
		"by another framework":            {&baiv1.ListRunsRequest{Framework: "jax"}, nil},
		"by its version":                  {&baiv1.ListRunsRequest{Framework: "PaddlePaddle", FrameworkVersion: "2.6 rc1"}, []string{id}},
		"by another version":              {&baiv1.ListRunsRequest{Framework: "PaddlePaddle", FrameworkVersion: "2.6"}, nil},
		"by the ID of its data":           {&baiv1.ListRunsRequest{DataId: "imagenet"}, []string{id}},
		"by the ID of other data":         {&baiv1.ListRunsRequest{DataId: "mnist"}, nil},
		"by its data and another's label": {&baiv1.ListRunsRequest{DataId: "imagenet", Labels: map[string]string{"color": "blue"}}, nil},
	} {
		list, err := w.client.ListRuns(t.Context(), tt.req)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range list.GetRuns() {
			ids = append(ids, r.GetId())
		}
		if diff := cmp.Diff(tt.want, ids); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
