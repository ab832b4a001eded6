package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/proto"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(proto.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTheDocumentIsCurrent(t *testing.T) {
	out := filepath.Join(t.TempDir(), "openapi.json")
	run := exec.CommandContext(t.Context(), "go", "run", ".", "-in", "../../gateway/rest/gen/openapi.swagger.json", "-out", out)
	if text, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(proto.OpenAPI())); diff != "" {
		t.Errorf("make generate makes another (-want +got):\n%s", diff)
	}
}

func TestTheDocumentSaysWhatTheServerRefuses(t *testing.T) {
	doc := load(t)
	digest := strings.Repeat("0af9", 16)
	lists, digests := 0, 0
	for _, path := range doc.Paths.InMatchingOrder() {
		for method, op := range doc.Paths.Value(path).Operations() {
			for _, p := range op.Parameters {
				what := method + " " + path
				lists += bounded(t, what, p.Value, "pageSize", float64(0), float64(-1))
				digests += bounded(t, what, p.Value, "sha256", digest, digest[1:], strings.ToUpper(digest), "g"+digest[1:])
			}
		}
	}
	if lists < 4 || digests < 4 {
		t.Errorf("%d lists have pages, %d paths a digest", lists, digests)
	}
	for name, required := range map[string]string{
		"v1SubmitRunRequest": "descriptorToml", "v1ValidateDescriptorRequest": "descriptorToml", "v1PreflightDescriptorRequest": "descriptorToml",
		"v1PushDescriptorRequest": "name", "v1PrefetchDataRequest": "src",
	} {
		schema := doc.Components.Schemas[name].Value
		if !slices.Contains(schema.Required, required) || schema.VisitJSON(map[string]any{}) == nil {
			t.Errorf("%s does not require %s", name, required)
		}
	}
	if !doc.Paths.Value("/v1/descriptors:get").Get.Parameters.GetByInAndName("query", "uri").Required {
		t.Error("a descriptor may be read without its uri")
	}
}

// bounded counts a parameter of a name of an operation, and checks that it takes one value and
// none of others.
func bounded(t *testing.T, what string, p *openapi3.Parameter, name string, good any, bad ...any) int {
	t.Helper()
	if !strings.HasSuffix(p.Name, name) {
		return 0
	}
	if err := p.Schema.Value.VisitJSON(good); err != nil {
		t.Errorf("%s refuses %s %v: %v", what, name, good, err)
	}
	for _, v := range bad {
		if p.Schema.Value.VisitJSON(v) == nil {
			t.Errorf("%s takes %s %v", what, name, v)
		}
	}
	return 1
}

func TestTheDocumentIsValid(t *testing.T) {
	if err := load(t).Validate(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestTheDocumentKeepsItsRules checks the rules of OpenAPI linters.
func TestTheDocumentKeepsItsRules(t *testing.T) {
	doc := load(t)
	seen := make(map[string]bool)
	tags := make(map[string]bool)
	for _, tag := range doc.Tags {
		tags[tag.Name] = tag.Description != ""
	}
	for _, path := range doc.Paths.InMatchingOrder() {
		for method, op := range doc.Paths.Value(path).Operations() {
			what := method + " " + path
			if op.OperationID == "" || seen[op.OperationID] {
				t.Errorf("%s: operationId %q is none of its own", what, op.OperationID)
			}
			seen[op.OperationID] = true
			if op.Summary == "" || len(op.Tags) != 1 || !tags[op.Tags[0]] {
				t.Errorf("%s: summary %q, tags %q", what, op.Summary, op.Tags)
			}
			if op.Responses.Status(200) == nil {
				t.Errorf("%s: nothing is said of its success", what)
			}
			checkParameters(t, what, path, op)
		}
	}
}

func checkParameters(t *testing.T, what, path string, op *openapi3.Operation) {
	t.Helper()
	var inPath []string
	for _, p := range op.Parameters {
		if p.Value.Description == "" {
			t.Errorf("%s: parameter %s is not described", what, p.Value.Name)
		}
		if p.Value.In == "path" {
			inPath = append(inPath, p.Value.Name)
		}
	}
	var want []string
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
		want = append(want, m[1])
	}
	if !slices.Equal(want, inPath) {
		t.Errorf("%s: path parameters %q, want %q", what, inPath, want)
	}
}

func TestNoSchemaIsUnused(t *testing.T) {
	text := string(proto.OpenAPI())
	for name := range load(t).Components.Schemas {
		if !strings.Contains(text, `"#/components/schemas/`+name+`"`) {
			t.Errorf("nothing refers to %s", name)
		}
	}
}

func TestEveryMethodIsServedOverHTTP(t *testing.T) {
	text := string(proto.OpenAPI())
	services := baiv1.File_bai_v1_run_service_proto.Services()
	more := baiv1.File_bai_v1_descriptor_service_proto.Services()
	for _, s := range []interface{ Len() int }{services, more} {
		if s.Len() != 1 {
			t.Errorf("%d services in a file", s.Len())
		}
	}
	for _, s := range []string{"RunService", "DescriptorService"} {
		service := services.ByName("RunService")
		if s == "DescriptorService" {
			service = more.ByName("DescriptorService")
		}
		for i := range service.Methods().Len() {
			if id := s + "_" + string(service.Methods().Get(i).Name()); !strings.Contains(text, `"`+id+`"`) {
				t.Errorf("%s is not in the document", id)
			}
		}
	}
}
