package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// description applies to all operations.
const description = `The platform's API over HTTP with JSON, in the canonical JSON form of protobuf: names in camel case, 64-bit numbers as strings, bytes in base64, times as RFC 3339. It is served on the port of gRPC (bai.v1.RunService, bai.v1.DescriptorService) and does the same.

Errors are a rpcStatus, whose details say, as bai.v1.Fault, what must be changed, where (file, line, column, path), under which code, and how. Streams are one JSON object a line (application/x-ndjson): each has a result, or, as the last one, an error.

The header Bai-User says who calls. The header Bai-Revision says which revision of the API a call needs; a server that is older refuses it.`

// convert returns the OpenAPI document of a Swagger document.
func convert(swagger []byte) ([]byte, error) {
	var old openapi2.T
	if err := json.Unmarshal(swagger, &old); err != nil {
		return nil, err
	}
	doc, err := openapi2conv.ToV3(&old)
	if err != nil {
		return nil, err
	}
	doc.OpenAPI = "3.0.3"
	doc.Info = &openapi3.Info{
		Title: "Benchmark AI", Version: fmt.Sprintf("v1, revision %d", baiv1.Revision), Description: description,
		License: &openapi3.License{Name: "Apache-2.0"},
	}
	doc.Servers = openapi3.Servers{{URL: "http://127.0.0.1:7070", Description: "bai standalone"}}
	doc.Components.SecuritySchemes = openapi3.SecuritySchemes{"run": {Value: &openapi3.SecurityScheme{
		Type: "http", Scheme: "bearer",
		Description: "The token of the run, which its pods have.",
	}}}
	for _, path := range doc.Paths.InMatchingOrder() {
		for _, op := range doc.Paths.Value(path).Operations() {
			tidy(op)
			bound(op)
		}
	}
	for path, item := range own() {
		doc.Paths.Set(path, item)
	}
	if code := doc.Paths.Value("/v1/scripts/{sha256}"); code != nil {
		code.Put = putCodeBundle()
	}
	boundBodies(doc.Components.Schemas)
	doc.Tags = append(doc.Tags, &openapi3.Tag{Name: "Server", Description: "What the server says of itself."})
	if err := prune(doc); err != nil {
		return nil, err
	}
	return write(doc)
}

// prune removes unreferenced schemas: requests whose fields are parameters.
func prune(doc *openapi3.T) error {
	for before := -1; before != len(doc.Components.Schemas); {
		before = len(doc.Components.Schemas)
		text, err := doc.MarshalJSON()
		if err != nil {
			return err
		}
		maps.DeleteFunc(doc.Components.Schemas, func(name string, _ *openapi3.SchemaRef) bool {
			return !bytes.Contains(text, []byte(`"#/components/schemas/`+name+`"`))
		})
	}
	return nil
}

func write(doc *openapi3.T) ([]byte, error) {
	b, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// tidy adds the facts that Swagger lacks: streams are lines, and a descriptor alone is a
// request, too.
func tidy(op *openapi3.Operation) {
	op.Summary, op.Description = split(op.Summary + "\n" + op.Description)
	for _, r := range op.Responses.Map() {
		media := r.Value.Content["application/json"]
		if media != nil && media.Schema != nil && media.Schema.Value != nil &&
			strings.HasPrefix(media.Schema.Value.Title, "Stream result") {
			r.Value.Content = openapi3.Content{"application/x-ndjson": media}
		}
	}
	switch op.OperationID {
	case "RunService_SubmitRun", "DescriptorService_ValidateDescriptor", "DescriptorService_RenderDescriptor":
		op.RequestBody.Value.Content["application/toml"] = &openapi3.MediaType{Schema: openapi3.NewStringSchema().NewRef()}
	}
}

// split returns the first sentence of a text, and the rest.
func split(text string) (first, rest string) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
	first, rest, found := strings.Cut(text, ". ")
	if found {
		first += "."
	}
	return first, rest
}

// own returns the paths that are no RPC.
func own() map[string]*openapi3.PathItem {
	run := openapi3.NewPathParameter("run").WithDescription("ID of the run, or, to read, its name.").WithSchema(openapi3.NewStringSchema())
	name := openapi3.NewPathParameter("name").WithDescription(`Of the file: ATTEMPT/ROLE-INDEX/PATH, such as "1/benchmark-0/results/out.json". Its slashes are those of the path.`).WithSchema(openapi3.NewStringSchema())
	owner := openapi3.NewQueryParameter("owner").WithDescription("Whose name the run's is; empty means the caller.").WithSchema(openapi3.NewStringSchema())
	span := openapi3.NewHeaderParameter("Range").WithDescription("bytes=N- for what follows the first N bytes.").WithSchema(openapi3.NewStringSchema())
	content := openapi3.NewContentWithSchema(&openapi3.Schema{Type: &openapi3.Types{"string"}, Format: "binary"},
		[]string{"application/octet-stream"})
	get := operation("RunService", "GetArtifact", "Sends a file that was kept of a run, as it is.", map[int]*openapi3.Response{
		200: response("The file.", content), 206: response("What follows the first bytes of the file.", content),
		404: response("The run or the file does not exist.", failure()), 416: response("The file has no such place.", failure()),
	})
	get.Parameters = openapi3.Parameters{{Value: run}, {Value: name}, {Value: owner}, {Value: span}}
	put := operation("RunService", "PutArtifact",
		"Keeps a file of a run, which only its pods may do. What is kept never changes; the same again is fine.",
		map[int]*openapi3.Response{
			200: response("It was kept before.", nil), 201: response("It is kept.", nil),
			400: response("The name is none, or the file did not come whole.", failure()),
			401: response("There is no token.", failure()), 403: response("The token is not that of the run.", failure()),
			404: response("The run does not exist.", failure()),
			409: response("Another content is kept under that name.", failure()), 413: response("It is more than is kept.", failure()),
			503: response("It may work later.", failure()),
		})
	put.Parameters = openapi3.Parameters{{Value: run}, {Value: name}}
	put.RequestBody = &openapi3.RequestBodyRef{
		Value: openapi3.NewRequestBody().WithRequired(true).WithDescription("The file, as it is.").WithContent(content),
	}
	put.Security = &openapi3.SecurityRequirements{{"run": []string{}}}
	text := openapi3.NewContentWithSchema(openapi3.NewStringSchema(), []string{"text/plain"})
	document := openapi3.NewContentWithSchema(openapi3.NewObjectSchema(), []string{"application/json"})
	return map[string]*openapi3.PathItem{
		"/v1/runs/{run}/artifacts/{name}": {Get: get, Put: put},
		"/v1/openapi.json": {Get: operation("Server", "GetOpenAPI", "Returns this document.",
			map[int]*openapi3.Response{200: response("This document.", document)})},
		"/healthz": {Get: operation("Server", "Healthz", "Says that the server lives.",
			map[int]*openapi3.Response{200: response("It lives.", text)})},
		"/readyz": {Get: operation("Server", "Readyz", "Says whether calls can be expected to succeed.", map[int]*openapi3.Response{
			200: response("They can.", text), 503: response("They cannot, and why.", text),
		})},
	}
}

// putCodeBundle is how code is sent, which is no call.
func putCodeBundle() *openapi3.Operation {
	digest := openapi3.NewPathParameter("sha256").WithDescription("Digest of the archive's bytes, hex.").
		WithSchema(openapi3.NewStringSchema().WithPattern(digits64).WithMinLength(1))
	owner := openapi3.NewQueryParameter("owner").WithDescription("For whom it is kept; empty means the caller.").WithSchema(openapi3.NewStringSchema())
	reply := openapi3.NewContentWithSchemaRef(openapi3.NewSchemaRef("#/components/schemas/v1GetScriptResponse", nil),
		[]string{"application/json"})
	put := operation("ScriptService", "PutScript",
		"Keeps code that runs are sent along with: an archive (tar, also compressed with gzip, bzip2 or zstd, or zip), under the digest of its bytes. Submit runs with it as scriptSha256; they find it, unpacked, in the folder that BAI_SCRIPTS_PATH names. The same again is fine.", map[int]*openapi3.Response{
			200: response("It was kept before.", reply), 201: response("It is kept.", reply),
			400: response("What came has another digest, or did not come whole.", failure()),
			411: response("It is not said how many bytes come.", failure()), 413: response("It is more than is kept.", failure()),
			503: response("It may work later.", failure()),
		})
	put.Parameters = openapi3.Parameters{{Value: digest}, {Value: owner}}
	content := openapi3.NewContentWithSchema(&openapi3.Schema{Type: &openapi3.Types{"string"}, Format: "binary"},
		[]string{"application/octet-stream"})
	put.RequestBody = &openapi3.RequestBodyRef{
		Value: openapi3.NewRequestBody().WithRequired(true).WithDescription("The archive, as it is.").WithContent(content),
	}
	return put
}

func operation(tag, id, summary string, responses map[int]*openapi3.Response) *openapi3.Operation {
	op := &openapi3.Operation{
		OperationID: tag + "_" + id, Summary: summary, Tags: []string{tag},
		Responses: openapi3.NewResponsesWithCapacity(len(responses)),
	}
	op.Summary, op.Description = split(summary)
	for code, r := range responses {
		op.Responses.Set(fmt.Sprint(code), &openapi3.ResponseRef{Value: r})
	}
	return op
}

func response(description string, content openapi3.Content) *openapi3.Response {
	return &openapi3.Response{Description: &description, Content: content}
}

// failure is the body of an error.
func failure() openapi3.Content {
	return openapi3.NewContentWithSchemaRef(openapi3.NewSchemaRef("#/components/schemas/rpcStatus", nil), []string{"application/json"})
}
