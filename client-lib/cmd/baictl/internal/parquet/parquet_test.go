package parquet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lib "github.com/parquet-go/parquet-go"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/parquet"
)

// columns are one of each kind, in an order that is not that of their names.
func columns() []parquet.Column {
	return []parquet.Column{{Name: "z", Kind: parquet.Text}, {Name: "env.a", Kind: parquet.Int}, {Name: "模", Kind: parquet.Number}, {Name: "a b", Kind: parquet.Bool}}
}

func write(t *testing.T, rows [][]any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, "v1", columns(), rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read returns the names and types of the columns, and the values, a line for each row.
func read(t *testing.T, text []byte) (schema, values string) {
	t.Helper()
	f, err := lib.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range f.Schema().Fields() {
		schema += fmt.Sprintf("%s %v %v\n", field.Name(), field.Type(), field.Optional())
	}
	r := lib.NewReader(f)
	for {
		rows := make([]lib.Row, 10)
		n, err := r.ReadRows(rows)
		for _, row := range rows[:n] {
			values += fmt.Sprintln(row)
		}
		if errors.Is(err, io.EOF) {
			return schema, values
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestATableIsReadBackWithItsTypes(t *testing.T) {
	rows := [][]any{{"x", int64(math.MinInt64), 1.5, true}, {nil, nil, nil, nil}, {"", int64(0), math.NaN(), false}}
	schema, values := read(t, write(t, rows))
	if diff := cmp.Diff("z STRING true\nenv.a INT(64,true) true\n模 DOUBLE true\na b BOOLEAN true\n", schema); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("[x -9223372036854775808 1.5 true]\n[<null> <null> <null> <null>]\n[ 0 NaN false]\n", values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestATableWithoutRowsHasItsColumns(t *testing.T) {
	if schema, values := read(t, write(t, nil)); strings.Count(schema, "\n") != 4 || values != "" {
		t.Errorf("schema %q, values %q", schema, values)
	}
}

func TestTheSameTableHasTheSameBytes(t *testing.T) {
	rows := make([][]any, 5000)
	for i := range rows {
		rows[i] = []any{fmt.Sprint("cell ", i%7), int64(i), float64(i) / 3, i%2 == 0}
	}
	if !bytes.Equal(write(t, rows), write(t, rows)) {
		t.Error("the bytes differ")
	}
}

func TestAWriterThatFailsIsAnError(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	if err := parquet.Write(w, "v1", columns(), [][]any{{"x", int64(1), 1.0, true}}); err == nil || !strings.HasPrefix(err.Error(), "write the output: ") {
		t.Errorf("error %v", err)
	}
}
