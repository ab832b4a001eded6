package parser

import (
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// A Key is one key of the language, as the manual has it.
type Key struct {
	Path     string   // data.sources[].path; [] stands for every item of a list
	Type     string   // string, integer, bool, table, list of tables, …
	Required bool     // in the table that holds it
	Default  string   // what is taken without the key; "" where nothing is
	Values   []string // those there are; nil where there are others
	Aliases  []string // other spellings of some of these
	Example  string   // a value, as it is written in a file; "" where none is given
	Rule     string   // rule for values beyond their type
	Doc      string   // purpose of the key

	// Schema is the JSON Schema of a value, without the keys in it.
	Schema map[string]any
}

// Keys are the keys of the language, each table before the keys in it.
func Keys() []Key {
	all, docs, schemas := valueTypes(), descriptors.Comments(), schemas()
	var keys []Key
	for _, row := range decode.KeySpecs(&descriptors.Descriptor{}, all) {
		keys = append(keys, Key{
			Path: row.Path, Type: row.Type, Required: row.Required, Default: row.Default,
			Values: row.Values, Aliases: row.Aliases, Example: row.Example, Rule: all[row.ValueType].Rule,
			Doc: keyDoc(row, docs[row.Field]), Schema: row.Schema(schemas),
		})
	}
	return keys
}

// keyDoc is the comment of a field with the name of its key in place of that of
// the field, with which it begins.
func keyDoc(row decode.KeySpec, comment string) string {
	field := row.Field[strings.LastIndexByte(row.Field, '.')+1:]
	if rest, ok := strings.CutPrefix(comment, field+" "); ok {
		return row.Path[strings.LastIndexByte(row.Path, '.')+1:] + " " + rest
	}
	return comment
}

// Explanation explains one kind of fault. An example is a piece of a descriptor; one that
// begins with "$ " is a command that writes such a file, one that begins with "--set " an
// override.
type Explanation struct {
	Code    string
	Title   string // the fault, in a few words
	Text    string // why it is refused, and how to mend it
	Example string // a piece of a descriptor with the fault
	Mended  string // the same piece without it
}

// Explain returns the explanation of a Fault's code. It is false for an unknown code.
func Explain(code string) (Explanation, bool) {
	for _, e := range fault.Explanations() {
		if e.Code == code {
			return Explanation(e), true
		}
	}
	return Explanation{}, false
}

// Codes are the codes that Explain knows, in order.
func Codes() []string {
	var codes []string
	for _, e := range fault.Explanations() {
		codes = append(codes, e.Code)
	}
	return codes
}
