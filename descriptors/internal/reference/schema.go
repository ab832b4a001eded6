// Package reference generates the language's manual and the JSON Schema for editors.
package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// ID names the schema.
const ID = "https://raw.githubusercontent.com/benchmark-ai/bai/main/descriptors/schema.json"

// schema is a part of a JSON Schema.
type schema = map[string]any

// Schema is the JSON Schema (2020-12) of the language. It accepts every descriptor that
// Parse accepts, unless its sweep gives a required key that is missing or replaces a value
// that is refused, and refuses faults that a schema can express.
func Schema() ([]byte, error) {
	root := table(schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID,
		"title":       "Benchmark AI descriptor",
		"description": "One benchmark: what runs, on what, with which data, and which numbers are read from it.",
		"type":        "object",
	})
	root["$defs"] = schema{"parameter": schema{
		"description": "Text with {{name}}, a parameter of [sweep].", "type": "string", "pattern": `\{\{[A-Za-z_][A-Za-z0-9_]*\}\}`,
	}}
	tables := map[string]schema{"": root}
	for _, key := range parser.Keys() {
		parent, name := cut(key.Path)
		if key.Schema == nil {
			return nil, fmt.Errorf("the type of %s has no schema: add one to Schemas of internal/types/schema.go", key.Path)
		}
		property := property(key)
		switch key.Type {
		case "table":
			tables[key.Path] = table(property)
		case "list of tables":
			items := table(schema{"type": "object"})
			property["items"] = items
			tables[key.Path+"[]"] = items
		}
		if all, ok := tables[parent]["properties"].(schema); ok {
			all[name] = property
		}
		if key.Required {
			required, _ := tables[parent]["required"].([]string)
			tables[parent]["required"] = append(required, name)
		}
	}
	for path, rules := range tableRules() {
		tables[path]["allOf"] = rules
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return out.Bytes(), nil
}

// table is s, which takes no keys but those that are added to its properties.
func table(s schema) schema {
	s["properties"], s["additionalProperties"] = schema{}, false
	return s
}

// cut parts the last key of a path from the table that it is in.
func cut(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

func property(key parser.Key) schema {
	p := maps.Clone(key.Schema)
	if key.Path != "sweep" && !strings.HasPrefix(key.Path, "sweep.") {
		p = withParameters(p)
	}
	p["description"] = key.Doc
	if key.Default == "" {
		return p
	}
	switch key.Schema["type"] {
	case "integer":
		n, err := strconv.Atoi(key.Default)
		if err == nil {
			p["default"] = n
		}
	case "boolean":
		p["default"] = key.Default == "true"
	default:
		p["default"] = key.Default
	}
	return p
}

// withParameters is s with {{name}} in each string that may not be any text.
func withParameters(s schema) schema {
	parameter := schema{"$ref": "#/$defs/parameter"}
	if some, ok := s["anyOf"].([]any); ok {
		return schema{"anyOf": append(slices.Clone(some), parameter)}
	}
	if s["type"] == "string" && len(s) > 1 {
		return schema{"anyOf": []any{s, parameter}}
	}
	all := maps.Clone(s)
	for _, key := range []string{"additionalProperties", "items"} {
		if inner, ok := s[key].(schema); ok {
			all[key] = withParameters(inner)
		}
	}
	return all
}

// tableRules are the rules between the keys of a table.
func tableRules() map[string][]schema {
	machine := schema{"anyOf": needs("instance_type", "gpus", "cpus", "memory", "requests", "limits", "node_selector")}
	outputRules := []schema{{"anyOf": needs("metrics", "parsers", "artifacts", "system", "prometheus", "otlp", "destinations")}}
	block := []schema{when(one("parser", "blocks"), need("block"))}
	return map[string][]schema{
		"": {
			when(with("hardware", one("strategy", "inference", "client_server")), need("server")),
			rolesOrStrategy(),
			{"properties": schema{"steps": schema{"maxItems": 32}}},
		},
		"hardware":                      {machine, when(one("strategy", "mpi", "horovod"), distributed())},
		"server.hardware":               {machine},
		"hardware.tolerations[]":        toleration(),
		"server.hardware.tolerations[]": toleration(),
		"network": {
			when(with("host_network", schema{"const": true}), schema{"not": schema{"anyOf": needs("attachment", "mtu")}}),
			when(one("transport", "rdma"), need("rdma")),
		},
		"manifest": {{"oneOf": needs("objects", "file")}},
		"alarms[]": alarm(),
		"ml": {when(with("framework_version", schema{"minLength": 1}),
			with("framework", schema{"minLength": 1}))},
		"roles[]":                 {schema{"properties": schema{"replicas": schema{"minimum": 1, "maximum": 1000}}}},
		"roles[].ready":           {schema{"oneOf": needs("port", "http", "file", "log")}},
		"output":                  outputRules,
		"server.output":           outputRules,
		"output.metrics[]":        block,
		"server.output.metrics[]": block,
		"output.parsers[]":        {when(one("kind", "command"), need("command"))},
		"server.output.parsers[]": {when(one("kind", "command"), need("command"))},
	}
}

// rolesOrStrategy is the rule that a file with roles has no strategy, and one without roles
// names those of strategies.
func rolesOrStrategy() schema {
	role := withParameters(schema{"type": "string", "enum": []string{"benchmark", "server", "client", "worker", "launcher"}})
	list := schema{"items": schema{"properties": schema{"role": role}}}
	rule := when(with("roles", schema{"minItems": 1}), schema{"properties": schema{"hardware": schema{"not": need("strategy")}}})
	rule["else"] = schema{"properties": schema{"volumes": list, "data": schema{"properties": schema{"sources": list}}}}
	return rule
}

// distributed is the schema of the table distributed with strategy mpi.
func distributed() schema {
	const most, processes = 100_000, 4096
	return schema{"properties": schema{"distributed": schema{"properties": schema{
		"num_instances": schema{"minimum": 2, "maximum": most},
		"processes_per_instance": schema{"anyOf": []any{
			schema{"const": "gpus"},
			schema{"type": "integer", "minimum": 1, "maximum": processes},
			schema{"type": "string", "pattern": "^0*[1-9][0-9]*$"},
		}},
	}}}}
}

// alarm are the rules between the keys of an alarm.
func alarm() []schema {
	keys := needs("above", "below", "beyond")
	rules := []schema{
		{"anyOf": append(needs("when"), keys...)},
		{"not": schema{"anyOf": []schema{need("above", "below"), need("above", "beyond"), need("below", "beyond")}}},
		when(need("beyond"), need("baseline")),
		{"anyOf": []schema{need("metric"), one("when", "failed")}},
	}
	rules = append(rules, when(schema{"anyOf": []schema{one("when", "failed"), one("when", "missing")}}, schema{"not": need("confirm")}))
	for _, limit := range []string{"above", "below", "beyond"} {
		rules = append(rules, when(one("when", limit), need(limit)), when(schema{"required": []string{"when", limit}}, one("when", limit)))
	}
	return rules
}

func toleration() []schema {
	exists := when(one("operator", "Exists"), schema{"properties": schema{"value": schema{"maxLength": 0}}})
	exists["else"] = need("key")
	return []schema{exists, when(need("toleration_seconds"), one("effect", "NoExecute"))}
}

func when(condition, then schema) schema { return schema{"if": condition, "then": then} }

func need(keys ...string) schema { return schema{"required": keys} }

func needs(keys ...string) []schema {
	var all []schema
	for _, key := range keys {
		all = append(all, need(key))
	}
	return all
}

// with is a table in which a key exists and follows a schema.
func with(key string, value schema) schema {
	return schema{"required": []string{key}, "properties": schema{key: value}}
}

// one is a table in which a key exists and has one of some values.
func one(key string, values ...string) schema { return with(key, schema{"enum": values}) }
