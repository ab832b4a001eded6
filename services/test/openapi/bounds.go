package main

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Patterns of texts that the server reads; empty ones may be left out.
const (
	digits64 = "^[0-9a-f]{64}$"
	any64    = "^[0-9a-fA-F]{64}$"
	maybe64  = "^([0-9a-fA-F]{64})?$"
	maybe32  = "^([0-9a-fA-F]{32})?$"
	counted  = "^[0-9]+$"
)

// bound adds the server's bounds to an operation's parameters.
func bound(op *openapi3.Operation) {
	for _, p := range op.Parameters {
		name := p.Value.Name[strings.LastIndexByte(p.Value.Name, '.')+1:]
		schema := p.Value.Schema.Value
		switch {
		case slices.Contains([]string{"pageSize", "tail", "attempt"}, name):
			schema.WithMin(0)
		case name == "afterRevision":
			schema.Pattern = counted
		case name == "sha256":
			schema.Pattern = digits64
		case name == "uri" && p.Value.In == openapi3.ParameterInQuery:
			p.Value.Required = true
		}
		if p.Value.In == openapi3.ParameterInPath {
			schema.WithMinLength(1)
		}
	}
}

// boundBodies adds the server's bounds to request bodies.
func boundBodies(schemas openapi3.Schemas) {
	for name, required := range map[string][]string{
		"v1SubmitRunRequest":                  {"descriptorToml"},
		"v1ValidateDescriptorRequest":         {"descriptorToml"},
		"v1RenderDescriptorRequest":           {"descriptorToml"},
		"v1PreflightDescriptorRequest":        {"descriptorToml"},
		"v1PushDescriptorRequest":             {"descriptorToml", "name"},
		"v1PrefetchDataRequest":               {"src"},
		"v1Origination":                       {"sha256", "uri"},
		"ScheduleServiceBackfillScheduleBody": {"from"},
		"v1Override":                          {"path"},
	} {
		schemas[name].Value.Required = required
	}
	for name, patterns := range map[string]map[string]string{
		"v1SubmitRunRequest":    {"scriptSha256": maybe64},
		"v1PrefetchDataRequest": {"sha256": maybe64, "md5": maybe32},
		"v1Origination":         {"sha256": any64},
	} {
		for property, pattern := range patterns {
			schemas[name].Value.Properties[property].Value.Pattern = pattern
		}
	}
}
