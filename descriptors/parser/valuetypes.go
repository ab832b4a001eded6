package parser

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/edit"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
	"github.com/benchmark-ai/bai/descriptors/internal/types"
)

// valueTypes are those of package kind, and those that have a type of their own.
func valueTypes() decode.ValueTypes {
	all := types.All()
	maps.Copy(all, decode.ValueTypes{
		"processes": {
			Type: "string or integer", Rule: "`gpus`, or a whole number from 1 on", Read: processes,
		},
		"manifest file": {
			Type: "string or table", Rule: "a path from the folder of the descriptor; or name and text of such a file", Read: manifestFile,
		},
		"keep": {
			Type: "string", Rule: "`never`, `failed`, or a span of time: `90s`, `1h30m`, `2d`", Read: keep,
		},
	})
	return all
}

// lists tell the lists of the language.
func lists() edit.Lists { return decode.Lists(&descriptors.Descriptor{}, valueTypes()) }

// valueTypesOf are the kinds of a file: those of version 0.1 take more.
func valueTypesOf(tree *syntax.Node) decode.ValueTypes {
	all := valueTypes()
	for _, e := range tree.Entries {
		if e.Name == "spec_version" && e.Value.Kind == syntax.String && (e.Value.Text == "0.1" || strings.HasPrefix(e.Value.Text, "0.1.")) {
			maps.Copy(all, types.Legacy())
		}
	}
	return all
}

// schemas are those of package kind, and those of the kinds that have a type of
// their own.
func schemas() map[string]map[string]any {
	all := types.Schemas()
	all["processes"] = map[string]any{"type": []any{"string", "integer"}}
	fileName := map[string]any{"type": "string", "pattern": `^[^/\\:\x00-\x1f]([^\\:\x00-\x1f]*[^/\\:\x00-\x1f])?$`}
	all["manifest file"] = map[string]any{"anyOf": []any{fileName, map[string]any{
		"type": "object", "properties": map[string]any{"name": fileName, "text": map[string]any{"type": "string"}},
		"required": []any{"name", "text"}, "additionalProperties": false,
	}}}
	all["keep"] = map[string]any{"anyOf": []any{map[string]any{"enum": []any{descriptors.KeepNever, descriptors.KeepFailed}}, types.Span()}}
	return all
}

func processes(v decode.Value) any {
	if v.Kind != syntax.String && v.Kind != syntax.Integer {
		v.WrongType(`a whole number or "gpus"`)
		return nil
	}
	if v.Kind == syntax.String && v.Text == "gpus" {
		return descriptors.Processes{OnePerGPU: true}
	}
	const most = 4096
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < 1 || n > most || v.Text[0] == '+' {
		v.Fault(fault.BadProcesses, fmt.Sprintf("%q is no number of processes", v.Text),
			fmt.Sprintf(`write "gpus", or a whole number from 1 to %d`, most))
		return nil
	}
	return descriptors.Processes{Number: n}
}

func keep(v decode.Value) any {
	switch {
	case v.Kind == syntax.String && (v.Text == descriptors.KeepNever || v.Text == descriptors.KeepFailed):
		return descriptors.Keep{Rule: v.Text}
	case v.Kind == syntax.String && strings.IndexAny(v.Text, "-.0123456789") != 0:
		remedy := `write "never", "failed" or a span of time, as "2d"`
		if suggestion := suggest.Find(v.Text, []string{descriptors.KeepNever, descriptors.KeepFailed}); suggestion != "" {
			remedy = fmt.Sprintf("did you mean %q?", suggestion)
		}
		v.Fault(fault.NotOneOf, fmt.Sprintf("%q is not one of its values", v.Text), remedy)
		return nil
	}
	if d, ok := types.Duration(v); ok {
		return descriptors.Keep{Rule: descriptors.KeepFor, For: d}
	}
	return nil
}
