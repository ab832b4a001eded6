package descriptors

import (
	_ "embed"
	"slices"
)

// schema is generated from the keys.
//
//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (2020-12) of the language, for editors. It accepts every
// descriptor that the parser accepts, unless its sweep gives a required key that is missing or
// replaces a value that is refused, and refuses faults that a schema can express.
func Schema() []byte { return slices.Clone(schema) }
