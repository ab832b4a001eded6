package descriptors

import (
	_ "embed"
	"slices"
)

// schema is generated from the keys.
//
//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (2020-12) of the language, for editors. It takes
// every descriptor that Parse takes, and refuses what a schema can tell to be
// wrong.
func Schema() []byte { return slices.Clone(schema) }
