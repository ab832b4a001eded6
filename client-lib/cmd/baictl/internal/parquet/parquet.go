// Package parquet writes tables as Apache Parquet.
package parquet

import (
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// Kind is the type of a column's values, which in a row are int64, float64, bool or string.
type Kind int

// The kinds of columns.
const (
	Text   Kind = iota // STRING
	Int                // INT64
	Number             // DOUBLE
	Bool               // BOOLEAN
)

// Column is a column of a table. No two columns of a table have one name.
type Column struct {
	Name string
	Kind Kind
}

// Write writes a table, with the columns in their order, compressed with Snappy. A value
// that is nil is missing. The file names the version of baictl. The same table has the same
// bytes.
func Write(w io.Writer, version string, columns []Column, rows [][]any) error {
	out := parquet.NewWriter(w, parquet.NewSchema("results", newSchema(columns)), parquet.Compression(&parquet.Snappy),
		parquet.CreatedBy("baictl", version, ""))
	for _, row := range rows {
		values := make(parquet.Row, len(row))
		for i, v := range row {
			level := 1 // there is a value
			if v == nil {
				level = 0
			}
			values[i] = parquet.ValueOf(v).Level(0, level, i)
		}
		if _, err := out.WriteRows([]parquet.Row{values}); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// schema is a group whose fields keep their order. A parquet.Group sorts them by name.
type schema struct {
	parquet.Group

	fields []parquet.Field
}

// Fields implements parquet.Node.
func (s schema) Fields() []parquet.Field { return s.fields }

func newSchema(columns []Column) schema {
	s := schema{Group: parquet.Group{}}
	for _, c := range columns {
		s.Group[c.Name] = parquet.Optional(leaf(c.Kind))
	}
	sorted := s.Group.Fields()
	for _, c := range columns {
		at := slices.IndexFunc(sorted, func(f parquet.Field) bool { return f.Name() == c.Name })
		s.fields = append(s.fields, sorted[at])
	}
	return s
}

// leaf is the node of a column.
func leaf(kind Kind) parquet.Node { //nolint:ireturn // as the library has it
	switch kind {
	case Int:
		return parquet.Leaf(parquet.Int64Type)
	case Number:
		return parquet.Leaf(parquet.DoubleType)
	case Bool:
		return parquet.Leaf(parquet.BooleanType)
	case Text:
	}
	return parquet.String()
}
